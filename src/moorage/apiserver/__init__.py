"""A Kubernetes API server in memory: what a cluster is to its clients.

HTTP (`http`) -> authentication (`auth`) -> routing (`routes`) -> verbs (`verbs_*`) -> the kinds'
own rules (`kind`, `kinds`) -> `store` -> `watch_log` -> watch streams. Objects are plain
dictionaries in here, as they were on the wire; nothing is shared with the scheduler but `api`
and `base`, so this room cannot lean on what the scheduler knows and hide its bugs.

Belongs here: the REST protocol and what a real API server adds to objects. What controllers and
node agents do belongs to their rooms, which are API clients like any other.
"""
