"""The page of metrics, from the table the program is made of."""

from __future__ import annotations

from moorage.observe.catalogue import METRICS, Metric

_HEADER = """# Metrics

<!-- Written by `make docs` from src/moorage/observe/catalogue.py. Do not edit. -->

`moorage run` serves `/metrics` on the HTTPS port (10259 of the loopback interface, see
[the flags](flags.md)), as Prometheus text or OpenMetrics. It is closed until the path is opened:

```console
$ moorage run --authorization-always-allow-paths '/healthz,/readyz,/livez,/metrics*'
$ curl -k https://127.0.0.1:10259/metrics
```

Names, types, labels and buckets are those of kube-scheduler v1.36. A metric marked "no samples" is
declared, so that queries find it, but not filled yet. The process's own numbers (`process_*`,
`python_*`) are added; those of the Go runtime, its work queues and informers have no counterpart.

`/metrics/resources` tells what each pod requests and is limited to (`kube_pod_resource_request`,
`kube_pod_resource_limit`); of several replicas only the one that leads tells it.

| Metric | Type | Labels | Buckets | What it tells |
|---|---|---|---|---|
"""


def metrics_page() -> str:
    """Return the page: one row a metric, in the order they are served."""
    return _HEADER + "".join(_row(metric) for metric in METRICS)


def _row(metric: Metric) -> str:
    labels = ", ".join(metric.labels)
    buckets = ""
    if metric.buckets:
        low, high = metric.buckets[0], metric.buckets[-1]
        buckets = f"{len(metric.buckets)} from {low:g} to {high:g}"
    told = metric.help if metric.observed else f"{metric.help}; no samples"
    return f"| `{metric.name}` | {metric.kind} | {labels} | {buckets} | {told} |\n"
