"""Server-side apply: who owns which field of an object, and what follows from it.

Place in the flow: `writing` asks `managers` what an apply makes of an object, and whose fields an
ordinary write changes. `field_sets` is the language owners are written down in, `values` takes
objects apart and puts them together by the layouts of their kinds.
"""
