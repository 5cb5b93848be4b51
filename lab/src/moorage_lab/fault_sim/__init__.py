"""A whole cluster in one process, played from a seed, with faults: the same seed, the same run.

Belongs here: what surrounds the real parts so that their order comes from a seed (`loop`, `wire`,
`cluster`), what users and faults do (`acts`, `users`, `situations`), what must hold (`history`,
`invariants`), and the search for a seed that breaks it (`fault_run`, `shrink`, `hunt`).

Scheduler, API server, controllers and node agents are the ones of production, unchanged. No module
of theirs knows of this room.
"""
