"""Measures explanations: pending pods of several causes on a full cluster, each explained.

The cluster has two shapes of nodes in three zones, a tenth of them with a taint, and the pods of
several services on every node; every node has devices, and some pods have claims. Each question is
about a pod with another cause; user CPU time counts, since the scheduler's loop is busy for that
long.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.memory import settle_memory
from moorage.base.rng import Streams
from moorage.config.own import LoadedConfiguration
from moorage.explain.explaining import explain
from moorage.framework.registry import Registry
from moorage.service.core import Core, build_core
from moorage.service.intake.ingest import NodeIngest, PodIngest
from moorage.service.process.facts import Facts
from moorage_lab.bench.explain.devices import CLAIMS, claim_name, put_devices
from moorage_lab.bench.timing import NS_PER_MS, Samples, percentile

Progress = Callable[[str], None]
Spec = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
_HOST: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_SCHEDULER: Final = "default-scheduler"
_SERVICES: Final = 7


class ExplainResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The times of the answers.

    Parameters
    ----------
    nodes, pods
        Size of the cluster.
    questions
        Number of answers.
    p50_ms, p95_ms, max_ms
        User CPU time of one answer, milliseconds.
    suggestions
        How many suggestions were found in all.
    by_cause
        Median milliseconds by cause.
    """

    nodes: int
    pods: int
    questions: int
    p50_ms: float
    p95_ms: float
    max_ms: float
    suggestions: int
    by_cause: dict[str, float]


def _container(cpu: str, memory: str, **more: Any) -> Spec:
    requests = {"cpu": cpu, "memory": memory}
    return {"name": "c", "image": "x", "resources": {"requests": requests}, **more}


def _spec(cpu: str = "500m", memory: str = "1Gi", **more: Any) -> Spec:
    """Return a pod's spec of one container; fields of `more` come on top."""
    return {"containers": [_container(cpu, memory)], "schedulerName": _SCHEDULER, **more}


def _terms(app: str, key: str) -> list[Spec]:
    return [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]


def _spread(app: str) -> list[Spec]:
    labels = {"matchLabels": {"app": app}}
    rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labels}
    return [{**rule, "topologyKey": ZONE}, {**rule, "topologyKey": _HOST}]


CAUSES: Final[Mapping[str, Spec]] = {
    "too large": _spec("200"),
    "no room": _spec("6"),
    "no room, spread": _spec("6", topologySpreadConstraints=_spread("s1")),
    "selector": _spec(nodeSelector={"disk": "ssd", ZONE: "a"}),
    "host port": _spec(
        containers=[_container("1m", "1Mi", ports=[{"containerPort": 80, "hostPort": 80}])]
    ),
    "pod affinity": _spec("1m", affinity={"podAffinity": {_REQUIRED: _terms("none", ZONE)}}),
    "anti-affinity": _spec("1m", affinity={"podAntiAffinity": {_REQUIRED: _terms("s0", _HOST)}}),
    "anti-affinity by zone": _spec(
        "1m", affinity={"podAntiAffinity": {_REQUIRED: _terms("s1", ZONE)}}
    ),
    "more important": _spec("6", priority=10),
    "fits": _spec("1m", "1Mi"),
    **{
        cause: _spec("1m", resourceClaims=[{"name": "c", "resourceClaimName": claim_name(cause)}])
        for cause in CLAIMS
    },
}
"""The spec of a pending pod, by its cause."""


def measure_explanations(
    registry: Registry,
    *,
    nodes: int,
    pods_a_node: int,
    rounds: int,
    clock: Clock,
    progress: Progress = lambda line: None,
) -> ExplainResult:
    """Fill a cluster, ask about each cause several times, and return the times.

    Parameters
    ----------
    registry
        Every known plugin.
    nodes, pods_a_node
        Size of the cluster.
    rounds
        Number of questions about each cause.
    clock
        The time of the cluster.
    progress
        Receives a line about each step.
    """
    core = build_core(LoadedConfiguration(), registry, clock=clock, streams=Streams(1))
    progress(f"{nodes} nodes, {nodes * pods_a_node} pods")
    _fill(core, nodes, pods_a_node, clock)
    settle_memory()  # as a running scheduler does
    times = {name: Samples(_user_ns) for name in CAUSES}
    suggestions = 0
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for name, spec in CAUSES.items():
            pod = _pod(f"q{number}-{name.replace(' ', '-')}", spec)
            answer = times[name].measure_work(partial(explain, core, pod))
            suggestions += len(answer.suggestions)
    return _result(core, nodes, times, suggestions)


def _fill(core: Core, nodes: int, pods_a_node: int, clock: Clock) -> None:
    facts = Facts(clock)
    add_node = NodeIngest(core.cache, core.queue, facts).on_add
    pods = PodIngest(core.cache, core.queue, core.store, profiles=(), writes=None, facts=facts)
    for index in range(nodes):
        add_node(_node(index))
        for number in range(pods_a_node):
            app, spec = f"s{number % _SERVICES}", _spec(f"{7000 // pods_a_node}m")
            if number == 0:
                spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
            spec["nodeName"] = _name(index)
            pods.on_add(_pod(f"p{index}-{number}", spec, app=app))
    put_devices(core.snapshot, {f"p{index}-0": _name(index) for index in range(nodes)})


def _name(index: int) -> str:
    return f"node-{index:05}"


def _node(index: int) -> Node:
    cpu, memory = ("8", "32Gi") if index % 2 else ("10", "64Gi")
    labels = {_HOST: _name(index), ZONE: "abc"[index % 3]}
    taints = [{"key": "team", "value": "x", "effect": "NoSchedule"}] if index % 10 == 0 else []
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    return from_dict(
        Node,
        {
            "metadata": {"name": _name(index), "uid": _name(index), "labels": labels},
            "spec": {"taints": taints},
            "status": {"allocatable": amounts, "capacity": amounts},
        },
    )


def _pod(name: str, spec: Spec, *, app: str = "q") -> Pod:
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    return from_dict(Pod, {"metadata": metadata, "spec": spec})


def _user_ns() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_utime * NS_PER_SECOND)


def _result(
    core: Core, nodes: int, times: Mapping[str, Samples], suggestions: int
) -> ExplainResult:
    every = [ns for samples in times.values() for ns in samples.durations_ns]
    return ExplainResult(
        nodes=nodes,
        pods=core.snapshot.table.pod_total,
        questions=len(every),
        p50_ms=_milliseconds(every, 50),
        p95_ms=_milliseconds(every, 95),
        max_ms=_milliseconds(every, 100),
        suggestions=suggestions,
        by_cause={name: _milliseconds(each.durations_ns, 50) for name, each in times.items()},
    )


def _milliseconds(durations_ns: Sequence[int], percent: int) -> float:
    return round(percentile(durations_ns, percent) / NS_PER_MS, 1)
