"""The page of metrics, from the table the program is made of."""

from __future__ import annotations

from moorage.observe.catalogue import METRICS, Metric

_HEADER = """# Metrics

<!-- Written by `make docs` from scheduler/src/moorage/observe/catalogue.py. Do not edit. -->

`moorage run` serves `/metrics` on the HTTPS port (10259, see [the flags](flags.md)), as Prometheus
text or OpenMetrics. A caller needs the right to `get` the path: see [Watch the
scheduler](../how-to/watch-the-scheduler.md#who-may-read).

Names, types, labels and buckets are those of kube-scheduler v1.36. Every metric has samples, but
for those marked "no samples": they are declared, so that queries find them, and the reason is
given. Those marked with a feature gate are there only while it is on.

Where a number is not made as in kube-scheduler:

- Filter and Score judge all nodes in one call, and replicas reuse answers. So a call counts once
  for all nodes, a reused answer does not count, and PreFilter to Score can take microseconds.
- Plugins are timed one by one in a tenth of the attempts; AddPod and RemovePod are not.
- With extenders, an attempt filters twice: what they are asked about, and what holds after their
  answers.
- `scheduler_event_handling_duration_seconds` and `scheduler_preemption_goroutines_*` have the whole
  duration and the real end, where v1.36 evaluates most of them as the work begins.
- `kubernetes_build_info` has the version that is played; moorage's own is `moorage_build_info`.

The process's own numbers (`process_*`, `python_*`) are added; those of the Go runtime, its work
queues and informers, of metrics about metrics and of asynchronous API calls have no counterpart.

`/metrics/slis` shows the results of the health checks (`kubernetes_healthcheck`,
`kubernetes_healthchecks_total`), each time somebody asks for one.

`/metrics/resources` shows requests and limits of each pod (`kube_pod_resource_request`,
`kube_pod_resource_limit`); of several replicas only the one that leads shows them.

| Metric | Type | Labels | Buckets | Meaning |
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
    meaning = f"{metric.help}; no samples, {metric.unused}" if metric.unused else metric.help
    if metric.gate:
        meaning += f"; with feature gate {metric.gate}"
    if metric.since:
        meaning += f"; with --emulated-version {metric.since}"
    return f"| `{metric.name}` | {metric.kind} | {labels} | {buckets} | {meaning} |\n"
