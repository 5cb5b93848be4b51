"""Reproducible benchmarks: declarative workloads, run and reported.

`workload` describes workloads, after the opcodes of Kubernetes' scheduler_perf. `engine_run` runs
a workload against the scheduling cycle alone, `server_run` runs one through an API server, and
`report` formats the result. Every report carries a digest of the placements, so that a faster run
is known to have made the same decisions.
"""
