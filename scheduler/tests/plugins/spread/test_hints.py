"""PodTopologySpread's hints, one event at a time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.node import Node
from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.api.workloads import Service
from scheduler.tests.plugins.builders import cluster, make
from scheduler.tests.plugins.spread.strategies import HOSTNAME, put
from scheduler.tests.plugins.spread.test_pod_topology_spread import (
    BROKEN,
    HARD_ZONE,
    NAME,
    WEB,
    a_node,
    a_pod,
    named,
    rule,
)

WAITING = a_pod("p", WEB, rule(), rule(HOSTNAME), rule("rack", soft=True))
TAINTS = a_pod("p", WEB, rule(nodeTaintsPolicy="Honor"))


def hint(waiting: Pod, old: Node | Pod | None, new: Node | Pod | None) -> bool:
    plugin, _ = make(NAME)
    pods, nodes = plugin.events_to_register()
    ask: Any = pods.hint if isinstance(old or new, Pod) else nodes.hint
    return bool(ask(waiting, old, new))


def on(labels: dict[str, str], **metadata: Any) -> Pod:
    return a_pod("other", labels, metadata=metadata, nodeName="n1")


BOUND, OTHER = on(WEB), on({"app": "db"})
ENDING = on(WEB, deletionTimestamp="2026-01-01T00:00:00Z")
ON_SSD = a_pod("p", WEB, rule(), nodeSelector={"disk": "ssd"})
NOMINATED = msgspec.structs.replace(
    BOUND, spec=PodSpec(), status=PodStatus(nominated_node_name="n1")
)
TOLERANT = a_pod("p", WEB, rule(), tolerations=[{"key": "k"}])


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(WAITING, None, BOUND, True, id="a new pod matches"),
        pytest.param(WAITING, None, OTHER, False, id="a new pod does not match"),
        pytest.param(WAITING, BOUND, None, True, id="a deleted pod matched"),
        pytest.param(WAITING, OTHER, None, False, id="a deleted pod did not match"),
        pytest.param(WAITING, OTHER, BOUND, True, id="a relabelled pod newly matches"),
        pytest.param(WAITING, BOUND, OTHER, True, id="a relabelled pod no longer matches"),
        pytest.param(
            WAITING,
            BOUND,
            on(WEB | {"x": "y"}),
            False,
            id="another label of a matching pod changes",
        ),
        pytest.param(WAITING, None, a_pod("o", WEB), False, id="a new matching pod without a node"),
        pytest.param(
            WAITING,
            None,
            NOMINATED,
            True,
            id="a new matching pod with a nominated node",
        ),
        pytest.param(
            WAITING,
            None,
            on(WEB, namespace="b"),
            False,
            id="a new matching pod of another namespace",
        ),
        pytest.param(
            TAINTS,
            TAINTS,
            TOLERANT,
            True,
            id="the pod's own tolerations change, with nodeTaintsPolicy Honor",
        ),
        pytest.param(
            WAITING,
            WAITING,
            TOLERANT,
            False,
            id="the pod's own tolerations change, with nodeTaintsPolicy Ignore",
        ),
        pytest.param(WAITING, a_pod("p"), WAITING, True, id="the pod's own labels change"),
        pytest.param(WAITING, None, a_node("n", "z"), True, id="a new node has every key"),
        pytest.param(WAITING, None, a_node("n", None), False, id="a new node lacks a key"),
        pytest.param(WAITING, a_node("n", "z"), None, True, id="a deleted node had every key"),
        pytest.param(WAITING, a_node("n", None), None, False, id="a deleted node lacked a key"),
        pytest.param(WAITING, a_node("n", "z"), a_node("n", None), True, id="a node loses a key"),
        pytest.param(
            WAITING, a_node("n", "z"), a_node("n", "y"), True, id="the zone of a node changes"
        ),
        pytest.param(
            WAITING,
            a_node("n", "z"),
            a_node("n", "z", rack="r"),
            False,
            id="the label of a soft constraint changes",
        ),
        pytest.param(
            WAITING,
            a_node("n", "z"),
            a_node("n", "z", taint="NoSchedule"),
            True,
            id="a node gets a taint",
        ),
        pytest.param(
            WAITING,
            a_node("n", None),
            a_node("n", None, taint="NoSchedule"),
            False,
            id="a node that lacks a key gets a taint",
        ),
        pytest.param(WAITING, BOUND, ENDING, True, id="a counted pod begins to terminate"),
        pytest.param(
            WAITING,
            OTHER,
            on({"app": "db"}, deletionTimestamp="2026-01-01T00:00:00Z"),
            False,
            id="a pod that does not count begins to terminate",
        ),
        pytest.param(WAITING, ENDING, ENDING, False, id="a pod goes on terminating"),
        pytest.param(
            ON_SSD,
            a_node("n", "z", disk="ssd"),
            a_node("n", "z", disk="hdd"),
            True,
            id="a node leaves the pod's node selector",
        ),
        pytest.param(
            ON_SSD,
            a_node("n", "z", disk="ssd"),
            a_node("n", "z", disk="ssd", rack="r"),
            False,
            id="a node changes a label that the node selector does not read",
        ),
    ],
)
def test_hints_of_topology_spread(waiting, old, new, expected):
    assert hint(waiting, old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, BOUND, None, id="a pod comes"),
        pytest.param(BOUND, None, None, id="a pod goes"),
        pytest.param(BOUND, OTHER, None, id="its labels change"),
        pytest.param(BOUND, ENDING, None, id="it begins to terminate"),
        pytest.param(WAITING, TOLERANT, [TOLERANT], id="tolerations concern the pod itself"),
        pytest.param(BOUND, BOUND, [], id="anything else concerns no pod"),
    ],
)
def test_the_pods_that_an_event_concerns(old, new, expected):
    plugin, _ = make(NAME)
    concerns: Any = plugin.events_to_register()[0].concerns
    assert concerns(old, new) == expected


def test_hints_use_default_constraints():
    snapshot = cluster()
    put(snapshot.listers, named(Service, WEB))
    plugin, _ = make(NAME, snapshot, args=HARD_ZONE)
    of_pods: Any = plugin.events_to_register()[0].hint
    assert of_pods(a_pod("p", WEB), None, BOUND) is True
    # Without a constraint only a nominated pod can have kept it away.
    assert of_pods(a_pod("p", {"app": "db"}), None, BOUND) is True


def test_a_hint_about_a_constraint_that_cannot_be_read_raises():
    """A hint that raises counts as Queue."""
    with pytest.raises(ValueError, match="Near"):
        hint(a_pod("p", WEB, rule(labelSelector=BROKEN)), a_node("n", "z"), a_node("n", "z"))
