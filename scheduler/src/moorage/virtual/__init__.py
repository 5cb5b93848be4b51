"""A model of a cluster, in memory and under a virtual clock; the scheduler's own parts decide.

What-if, capacity, shadow, the traces and the fault simulation stand on it; it writes nothing.

- `objects` reads the objects of a cluster by the rules of their `kinds`. `deciding_half` puts the
  half of a scheduler that decides over them, and `live_objects` keeps both in step when an object
  changes.
- `model` lets time pass: `attempt_loop` decides about pods, and `effects` and `agenda` stand in
  place of the API server.
- `owner_kinds` says which owners make pods again.

Does not belong here: changes that are tried (`what_if`), controllers (`moorage.workloads`).
"""
