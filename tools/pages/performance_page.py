"""Writes the page of measurements, from the record that ``make performance`` keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any, Final

import msgspec

from moorage_lab.bench.tails.cases import CASES
from tools.pages.performance_run import COMMANDS, RECORD, Record

_HEAD: Final = """# Performance

<!-- Written by `make docs` from docs/performance.json. Do not edit. -->

Measured on {day}, with nothing else running.

- Machine: {machine}, Python {python}. Machines of this kind differ by a factor of two and more, so
  only figures of one day can be compared.
- Revision: {commit}. `make performance` measures all of it again, in a quarter of an hour.
  `make bench-compare REF=main ARGS=basic` compares two revisions in turn.
- A figure is the median of {rounds} runs, with the least and the greatest in brackets.
- All nodes are scored. The same digest means the same placements.

## Deciding alone

Queue, decision and cache; nothing is written. `moorage bench basic --help` and
`moorage bench workload --help` describe the workloads, which are those of scheduler_perf.

| Pods | `moorage bench` | Nodes | Pods/s | Decision p50, us | p99, us | Peak memory, MiB | Digest |
|---|---|---:|---|---|---|---:|---|
"""
_SERVER: Final = """
## Through the API server

Three processes: moorage's API server, a scheduler, a client; HTTPS; everything on the same cores.
Times are processor time for one pod.

| `moorage bench` | Pods/s | Scheduler, us | Server, us | Scheduler, MiB | Server, MiB |
|---|---|---|---|---:|---:|
"""
_PATH: Final = """
## The scheduler's own time

A server that answers every call at once. Times are processor time for one pod.
The parts of the first row: {parts}.
A garbage collection is part of the longest stall of the loop.

| `moorage bench` | Pods/s | All, us | Creation to binding p50, ms | p99, ms | Longest stall, ms |
|---|---|---|---|---|---|
"""
_GROWTH: Final = """
## Growth

`moorage bench growth`, one run. *Pod* is the mean time of all steps of a pod. *Flat* means that
the largest size takes at most 1.5 times as long as the smallest. Two axes are not flat:

- *Shapes* are pods with different requests, in turn. What depends on nodes alone is kept for
  all of them. What depends on requests is kept for the next pod of a shape where few nodes changed
  since, and is computed anew for all nodes otherwise. All of it takes at most 64 MiB. (The figures
  below are of the revision above; decision 28 says what changed since.)
- *Labels* are sets of labels, each with its own spread constraint. Each set has its own counts.

![Time of a pod and of a decision against the size, by axis](images/growth.svg)
"""
_GROWTH_TABLE: Final = """| Size | Decision, us | Pod, us | Peak memory, MiB | Digest |
|---:|---:|---:|---:|---|
"""
_TAILS: Final = """
## Slow decisions

`moorage bench tails`, one run of {day}, revision {commit}, begun at a load of {load}: above 0.5,
other programs made these times longer. Nothing else is decided during a
decision. `moorage bench tails --help` describes the cases; `python -m tools.pages.performance_run
tails` measures them alone. *Max* of the cases with claims is the first decision, which reads all
devices. A preemptor has two decisions: one that finds its victims, and one that follows.

| Case | Size | Decisions | A second | p50, ms | p99, ms | Max, ms | Digest |
|---|---:|---:|---:|---:|---:|---:|---|
"""
_BESIDE: Final = """
## Next to kube-scheduler

Both schedulers drained basic pods on 5000 nodes, in turn, through one real API server. Everything
shared two cores. The processor time is that of the scheduler alone, with its start.

| Scheduler | Pods/s | CPU, s |
|---|---|---|
| kube-scheduler 1.36.2 | 300 to 354 | 7.6 to 8.6 |
| moorage | 980 to 1180 | 2.1 to 2.4 |

The runs are of November 2026, on a machine of the kind above. Earlier runs of both, on 2026-11-22,
had 130 to 164 and 528 to 667 pods/s. Alone, on another day, kube-scheduler reached in workloads of
scheduler_perf: 273 pods/s in SchedulingBasic (5000 nodes, 10,000 pods), 37 in SchedulingPodAffinity
(5000 nodes, 5000 pods), 59 in SchedulingPodAntiAffinity (5000 nodes, 2000 pods).

`tools/compare` in the repository measures it anew, on the machine and with the binaries of your
choice. It starts each scheduler in turn before the same backlog, and works with any scheduler that
takes kube-scheduler's flags:

<!-- not run: needs a control plane and kube-scheduler -->
```console
$ python -m tools.compare --kubeconfig admin.conf \\
    --scheduler kube-scheduler=/opt/kubernetes/kube-scheduler --scheduler 'moorage=moorage run'
```

`--help` says what the API server needs. Without binaries, `moorage up --nodes 0 --empty
--no-scheduler` is an API server to compare configurations and versions of moorage on.
"""
_SERVED: Final = "through the API server"


def performance_page() -> str:
    """Return the page."""
    record = msgspec.json.decode(RECORD.read_bytes(), type=Record)
    rounds = len(next(iter(record.results.values())))
    text = _HEAD.format(
        day=record.day,
        machine=record.machine,
        python=record.python,
        commit=record.commit,
        rounds=rounds,
    )
    paths = [name for name in record.results if name.startswith("path")]
    for name, runs in record.results.items():
        if name != _SERVED and name not in paths:
            text += _decided(name, runs)
    text += _SERVER + _served(record.results[_SERVED])
    text += _PATH.format(parts=_parts(record.results["path"]))
    text += "".join(_way(name, record.results[name]) for name in paths)
    text += _GROWTH + "".join(_grown(record.growth))
    if record.tails:
        day, commit = record.tails_from
        text += _TAILS.format(day=day, commit=commit, load=record.tails_load) + "".join(
            _slow(record.tails)
        )
    return text + _BESIDE


def _spread(
    runs: list[dict[str, Any]], figure: Callable[[dict[str, Any]], float], form: str = ",.0f"
) -> str:
    """Return the median of a figure over the runs, with the least and the greatest."""
    found = [figure(run) for run in runs]
    return f"{median(found):{form}} ({min(found):{form}} to {max(found):{form}})"


def _decided(name: str, runs: list[dict[str, Any]]) -> str:
    digests = sorted({run["digest"][:12] for run in runs})
    cells = (
        name,
        f"`{COMMANDS[name]}`",
        f"{runs[0]['params']['nodes']:,}",
        _spread(runs, lambda run: run["pods_per_second"]),
        _spread(runs, lambda run: run["decision"]["p50_us"]),
        _spread(runs, lambda run: run["decision"]["p99_us"]),
        f"{max(run['memory_peak_mib']['engine'] for run in runs):,.0f}",
        ", ".join(f"`{each}`" for each in digests),
    )
    return f"| {' | '.join(cells)} |\n"


def _served(runs: list[dict[str, Any]]) -> str:
    def of(process: str) -> str:
        return _spread(
            runs, lambda run: run["seconds_by_part"][f"{process} cpu"] * 1e6 / run["scheduled"]
        )

    def memory(process: str) -> str:
        return f"{max(run['memory_peak_mib'][process] for run in runs):,.0f}"

    cells = (
        f"`{COMMANDS[_SERVED]}`",
        _spread(runs, lambda run: run["pods_per_second"]),
        of("scheduler"),
        of("server"),
        memory("scheduler"),
        memory("server"),
    )
    return f"| {' | '.join(cells)} |\n"


def _parts(runs: list[dict[str, Any]]) -> str:
    """Return the parts of the scheduler's time that were measured, as a sentence's list."""
    names = [name for name, time in runs[0]["cpu_us_by_part"].items() if round(time)]
    parts = {name: median(run["cpu_us_by_part"][name] for run in runs) for name in names}
    return ", ".join(f"{name} {time:.0f}" for name, time in parts.items())


def _way(name: str, runs: list[dict[str, Any]]) -> str:
    cells = (
        f"`{COMMANDS[name]}`",
        _spread(runs, lambda run: run["pods_per_second"]),
        _spread(runs, lambda run: run["cpu_us"]),
        _spread(runs, lambda run: run["latency_ms"]["p50"], ".1f"),
        _spread(runs, lambda run: run["latency_ms"]["p99"], ".1f"),
        _spread(runs, lambda run: run["pause_ms_max"], ".1f"),
    )
    return f"| {' | '.join(cells)} |\n"


def _grown(growth: list[dict[str, Any]]) -> Iterator[str]:
    for axis in growth:
        times = f"{axis['times']:.2f} times as long at {axis['size_times']:,.0f} times the size"
        yield f"\n### {axis['axis'].capitalize()}: {axis['judgement']}\n\n{times}, "
        yield f"{max(axis['bytes_each'], 0):,.0f} bytes for each more.\n\n"
        yield _GROWTH_TABLE
        for point in axis["points"]:
            cells = (
                f"{point['size']:,}",
                f"{point['decision_us']:.0f}",
                f"{point['pod_us']:.0f}",
                f"{point['memory_mib']:,.0f}",
                f"`{point['digest'][:12]}`",
            )
            yield f"| {' | '.join(cells)} |\n"


def _slow(tails: dict[str, Any]) -> Iterator[str]:
    for name, sizes in tails["cases"].items():
        for size, tail in sizes.items():
            decision = tail["decision"]
            cells = (
                f"`{name}`",
                f"{int(size):,} {CASES[name].counts}",
                f"{tail['decisions']:,}",
                f"{tail['per_second']:,.0f}",
                *(f"{decision[key] / 1000:.2f}" for key in ("p50_us", "p99_us", "max_us")),
                f"`{tail['digest'][:12]}`",
            )
            yield f"| {' | '.join(cells)} |\n"
