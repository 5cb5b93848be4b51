"""What Kubernetes' objects are: the types, defaults, rules and columns of each kind.

Place in the flow: the API server stores objects as plain dicts and calls a kind of this room to
default, prepare, validate and tabulate them. What-if does the same with the objects of a cluster.
`facts` has the names and types of the API as data, and `schema` walks objects by them. `served`
puts one kind together from functions; `fields` and `cells` are the words for its rules and columns.

What belongs here: what is true of an object wherever it is kept. What does not belong here: a
store, a protocol, a clock of its own; rules of custom resources and of admission policies.
"""

from __future__ import annotations

from moorage.kinds.registry import all_kinds

__all__ = ["all_kinds"]
