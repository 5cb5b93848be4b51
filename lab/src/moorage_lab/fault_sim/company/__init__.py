"""Worlds of workloads under the real controllers, judged by totals: ``moorage fault-sim company``.

Belongs here: a small cluster with its workloads, drawn from a seed (`world`, `generator`,
`manifests`), the play of it in virtual time (`cluster`, `play`), the rules about totals (`totals`),
the plain plan that evictions are compared with (`plan`), and what the worlds cover (`coverage`).

No fault strikes here: connections work, and no part dies. A rule about one decision belongs to
`moorage_lab.fault_sim.invariants`.
"""
