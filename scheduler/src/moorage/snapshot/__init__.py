"""The cluster as columns, one row a node, and read-only indexes of every other kind.

Belongs here: all data that a plugin may read. The room does not depend on cache or queue: a
snapshot can be built from lists, so plugins, conformance and tests need no scheduler. `schema`
names every fixed column with its dtype, unit and fill; `table` keeps the columns current; plugins
read `snapshot`; `trial` changes rows and undoes the changes without a trace.
"""
