"""Server-side apply: which manager owns which field of an object, and what an apply changes.

Place in the flow: `writing` asks `managers` for the object that an apply makes, and for the fields
that an ordinary write changes. `field_sets` holds the format of owned fields. `values` takes
objects apart and puts them together by the layouts of their kinds.
"""
