"""Admission: what a write needs of the rest of the cluster before it is stored.

Place in the flow: the verbs ask `checks` once an object is known to be valid: rights to grant,
policies, limit ranges and quotas (`quota`). `namespaces` lets objects into existing namespaces
only, and ends them with their namespace. `addresses` gives services their addresses.

What belongs here: rules about an object and other objects. Rules about one object alone belong to
its kind.
"""
