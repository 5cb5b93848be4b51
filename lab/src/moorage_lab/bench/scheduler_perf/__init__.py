"""Workload files in the format of Kubernetes' scheduler_perf, read and run unmodified.

`files` reads a file into `cases`, whose operations are in `operations` and whose rules are in
`validity`. `parameters` fills in the numbers of one workload, `go_template` the placeholders of
manifests, and `spelling` checks the names of their fields. `run_suite` runs cases, each in a
cluster of `clusters` or `processes`, and `executor` carries out the operations through its API
server. The results are in `throughput`, `histograms` and `data_items`.

The format is that of kubernetes v1.36 test/integration/scheduler_perf; operations that only other
versions of that suite have are read as well, where they mean the same.
"""
