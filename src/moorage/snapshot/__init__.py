"""The cluster as columns, one row a node, and read-only indexes of every other kind.

Belongs here: everything a plugin may look at. The room knows no cache and no queue: a snapshot can
be built from lists, so plugins, conformance and tests need no scheduler. `schema` names every fixed
column with its dtype, unit and fill; `table` keeps the columns current; plugins read `snapshot`;
`trial` changes rows and undoes the changes without a trace.
"""
