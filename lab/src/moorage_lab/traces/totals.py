"""The figures of a whole run: how many pods were placed, how long they waited, what was in use."""

from __future__ import annotations

from collections import Counter

from moorage_lab.traces.jobs.figures import job_figures
from moorage_lab.traces.records import Records
from moorage_lab.traces.sampling import Series
from moorage_lab.traces.statistics import percentile


def totals(records: Records, series: Series, attempts: int) -> dict[str, float]:
    """Return the figures of a run.

    Returns
    -------
    dict
        Counts of pods by outcome; waits of placed pods in seconds; the figures of jobs; for each
        resource the utilisation and the fragmentation, as mean over time and at the end, from 0 to
        1.
    """
    outcomes = Counter(each.outcome for each in records.pods.values())
    came = [each for each in records.pods.values() if each.arrived or each.placed != 0.0]
    waits = sorted(each.waiting_seconds for each in came if each.waiting_seconds is not None)
    metrics: dict[str, float] = {
        "pods": len(records.pods),
        "placed": sum(each.placed is not None for each in records.pods.values()),
        "pending": outcomes["pending"],
        "completed": outcomes["completed"],
        "evicted": outcomes["evicted"],
        "lost": outcomes["lost"],
        "gaveUp": outcomes["gaveUp"],
        "attempts": attempts,
        "nodesUsed": len({each.node for each in records.pods.values() if each.node}),
        "waitMean": round(sum(waits) / len(waits), 9) if waits else 0.0,
        "waitP50": percentile(waits, 50),
        "waitP99": percentile(waits, 99),
        "endSeconds": records.now,
    }
    metrics |= job_figures(list(records.pods.values()), records.now)
    for (metric, resource), mean in series.means().items():
        if resource:
            metrics[f"{metric}Mean/{resource}"] = mean
    last = series.rows[-1][0]
    for seconds, metric, scope, _of, resource, value in series.rows:
        if seconds == last and scope == "cluster" and resource:
            metrics[f"{metric}End/{resource}"] = value
    return metrics
