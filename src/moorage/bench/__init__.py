"""How fast, and the same every time: declarative workloads, run and reported.

`workload` describes (after the opcodes of Kubernetes' scheduler_perf), `engine_run` runs one
against the deciding half alone, `server_run` through an API server, `report` tells. Every report
carries a digest of the placements, so that faster can never mean different.
"""
