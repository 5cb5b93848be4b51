"""Rules for a cluster at rest: each is broken by something that was tampered with for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.pod import PodStatus
from moorage.api.policy import PriorityClass
from moorage.state.nominations import _Ref
from moorage_lab.fault_sim import acts, fault_run
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.cluster import SimCluster
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.invariants.at_rest import AT_REST, broken_at_rest
from moorage_lab.fault_sim.invariants.inside import leaders
from moorage_lab.fault_sim.invariants.while_running import WHILE_RUNNING
from moorage_lab.fault_sim.users.groups import gang
from moorage_sandbox.testing.builders import node_manifest, pod_manifest

Tamper = Callable[[SimCluster], object]


def member(name: str, cpu: str) -> dict[str, Any]:
    pod = pod_manifest(name, cpu=cpu)
    pod["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    return pod


SCRIPT = Script(
    seed=1,
    nodes=[node_manifest("n", cpu="4")],
    acts=[
        acts.Create(at=5.0, object=pod_manifest("placed", cpu="3")),
        acts.Create(at=6.0, object=pod_manifest("waits", cpu="2")),
        acts.Create(at=7.0, object=gang("g", 2)),
        acts.Create(at=8.0, object=member("m0", "2")),
        acts.Create(at=8.0, object=member("m1", "2")),
    ],
    rest_seconds=45.0,
)
"""A pod that is placed, one that finds no room, and a group that finds none."""


def the_pod(cluster: SimCluster, name: str) -> dict[str, Any]:
    [pod] = [pod for pod in cluster.history.pods.values() if pod["metadata"]["name"] == name]
    return pod


def uid(cluster: SimCluster, name: str) -> str:
    pod_uid: str = the_pod(cluster, name)["metadata"]["uid"]
    return pod_uid


def core(cluster: SimCluster) -> Any:
    [leader] = leaders(cluster)
    return leader.core


def unlead(cluster: SimCluster) -> None:
    """Let the clock of every scheduler say that its lease is over."""
    for replica in cluster.replicas.values():
        replica.clock.jump(3600.0)


def promise(cluster: SimCluster, name: str, *, as_uid: str = "") -> None:
    """Promise a node to a pod, under its uid or another one."""
    nominator, chosen = core(cluster).queue.nominator, as_uid or uid(cluster, name)
    ref = _Ref(chosen, ("default", name), "n")
    nominator._by_uid[chosen] = ref
    nominator._by_node.setdefault("n", {})[chosen] = ref


def retry(cluster: SimCluster) -> None:
    """Note that a pod was tried every second of the rest."""
    now_ns = cluster.clock.monotonic_ns()
    for probe in cluster.probes.values():
        probe._tries["x"] = [(now_ns - second * 10**9, 0) for second in reversed(range(20))]


def assume(cluster: SimCluster) -> None:
    """Let the placed pod count as assumed, and promise it its node as well."""
    core(cluster).cache._assumed[uid(cluster, "placed")] = None
    promise(cluster, "placed")


def waits_without_reason(cluster: SimCluster) -> None:
    the_pod(cluster, "waits")["status"]["conditions"] = []


def free_in_server(cluster: SimCluster) -> None:
    """Let the server's pods be those that wait, and tell no scheduler."""
    shelf: Any = cluster.served.store.shelf("pods")
    records = shelf.records
    shelf.records = lambda *args, **options: [
        each for each in records(*args, **options) if each.key[-1] != "placed"
    ]


def other_status(cluster: SimCluster) -> None:
    [leader] = leaders(cluster)
    leader.parts.writes._overlay[uid(cluster, "placed")] = PodStatus(nominated_node_name="n9")


TAMPERED: dict[str, Tamper] = {
    "no-failure": lambda cluster: cluster.failures.append("a task failed"),
    "writes-with-lease": lambda cluster: cluster.writes_without_lease.append("a write"),
    "counts": lambda cluster: setattr(cluster.schedulers[0].facts, "bound", 7),
    "gauges": lambda cluster: core(cluster).queue_facts.pending("active", 1),
    "totals": lambda cluster: setattr(cluster.schedulers[0].facts, "bound", 0),
    "bounded": lambda cluster: setattr(core(cluster).recorder.ring, "bytes_max", 1),
    "prompt": lambda cluster: cluster.history.first_popped_ns.update(
        {uid(cluster, "placed"): 10**12}
    ),
    "one-leader": unlead,
    "valid": lambda cluster: core(cluster).queue.nominator._by_node.update(n={}),
    "columns": lambda cluster: np.add.at(core(cluster).snapshot.pod_count, 0, 1),
    "counted-once": assume,
    "belief": lambda cluster: cluster.history.pods.pop(uid(cluster, "placed")),
    "other-kinds": lambda cluster: core(cluster).snapshot.listers.priority_classes.put(
        PriorityClass(metadata=ObjectMeta(name="unknown"))
    ),
    "statuses": other_status,
    "under-way": assume,
    "nothing-left": lambda cluster: promise(cluster, "waits", as_uid="gone"),
    "explained": waits_without_reason,
    "no-lost-wakeup": free_in_server,
    "fits-nowhere": lambda cluster: cluster.history.pods.pop(uid(cluster, "placed")),
    "preempts": lambda cluster: the_pod(cluster, "placed")["spec"].update(priority=-9),
    "gangs": lambda cluster: the_pod(cluster, "m0")["spec"].update(nodeName="n"),
    "watch": lambda cluster: cluster.auditor.faults.append("a change was told twice"),
    "quiet": retry,
    "acknowledged": lambda cluster: cluster.history.pods.pop(uid(cluster, "placed")),
    "nodes-ready": lambda cluster: cluster.history.nodes["n"]["status"].update(
        conditions=[{"type": "Ready", "status": "Unknown"}]
    ),
    "room-at-rest": lambda cluster: cluster.history.nodes["n"]["status"]["allocatable"].update(
        cpu="1"
    ),
    **{rule.name: lambda cluster: None for rule in WHILE_RUNNING},
}


ELSEWHERE = frozenset(
    {"events", "members", "promises", "promised-in-vain", "reserved-in-vain", "gang-says"}
)
"""The rules that ``test_waiting_rules`` breaks, each in a history made for it."""


def broken(monkeypatch: pytest.MonkeyPatch, tamper: Tamper) -> set[str]:
    """Return the rules that are broken where something was tampered with at rest."""
    broken_names: set[str] = set()

    def tampered(cluster: SimCluster) -> list[tuple[str, str]]:
        assert list(broken_at_rest(cluster)) == []
        tamper(cluster)
        broken_names.update(name for name, _ in broken_at_rest(cluster))
        return []

    monkeypatch.setattr(fault_run, "broken_at_rest", tampered)
    play(SCRIPT)
    return broken_names


@pytest.mark.parametrize("name", [rule.name for rule in AT_REST if rule.name not in ELSEWHERE])
def test_each_rule_of_a_cluster_at_rest_can_be_broken(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tamper = TAMPERED[name]
    if name in {rule.name for rule in WHILE_RUNNING}:
        tamper = lambda cluster: cluster.observations.append((name, "observed"))  # noqa: E731
    assert name in broken(monkeypatch, tamper)
