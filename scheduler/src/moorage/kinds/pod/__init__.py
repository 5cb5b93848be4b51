"""Pods, and the pod template that every workload contains.

`kind` is the pod's row, and `columns` its row in a table. `spec` checks the spec of a pod or of a
template with `containers`, `handlers` (probes, hooks, restarts), `environment`, `security`,
`host_names`, `annotations` and `volumes.pod_volumes`; `changes` checks what an update changes, and
`status` what a write of the status changes. `defaults` and `admission` complete a pod. Mirrors
kubernetes v1.36 pkg/apis/core/{v1/defaults.go, validation/validation.go} and
pkg/registry/core/pod/strategy.go.
"""
