"""Published experiments on GPU sharing, repeated: policies against the OpenB traces.

- `go_rand`: the generator of the published runs.
- `openb`: reads the nodes and the pods of a trace.
- `protocol`: the order of the pods and of the nodes in one experiment.
- `experiment`: runs one experiment with the engine.
- `result_files`: finished experiments in a folder.
- `curves`: the columns of a run, as they were published.
- `published`: reads the published results and compares.

Protocol: "Beware of Fragmentation" (Weng et al., USENIX ATC 2023), section 6, and the scripts of
its simulator (hkust-adsl, kubernetes-scheduler-simulator).
"""
