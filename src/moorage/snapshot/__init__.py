"""The cluster as columns, one row a node, and read-only indexes of every other kind.

Belongs here: what a plugin may look at. It knows no cache and no queue: it can be built from
lists, so plugins, conformance and tests need no scheduler. `schema` names every fixed column with
its dtype, unit and fill; `table` keeps the columns current; `snapshot` is what plugins read;
`trial` asks "what if" and leaves no trace.
"""
