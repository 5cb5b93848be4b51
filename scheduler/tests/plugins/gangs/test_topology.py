"""Topology annotations of coscheduling's groups: faults, members that disagree, and hints.

Not covered: the domain that is taken (scheduler/tests/engine/groups/test_placements.py).
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.claims import ClaimUsers
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.base.rng import Streams
from moorage.config.feature_gates import feature_gates
from moorage.config.gate_table import TOPOLOGY_AWARE
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.status import ReasonTable
from moorage.plugins.gangs.topology_placement_generator import TopologyPlacementGenerator
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.plugins.gangs.test_coscheduling import group, plugin, world

REQUIRED = "moorage.dev/required-topology"
PREFERRED = "moorage.dev/preferred-topology"
LABEL = "scheduling.x-k8s.io/pod-group"
OLD = "pod-group.scheduling.sigs.k8s.io"


def member(name: str, *, labelled: bool, **annotations: str) -> Pod:
    labels = {f"{OLD}/name": "g", f"{OLD}/min-available": "2"} if labelled else {LABEL: "g"}
    return pod(name, labels=labels, annotations=asked(**annotations))


def asked(required: str | None = None, preferred: str | None = None) -> dict[str, str]:
    found = {REQUIRED: required, PREFERRED: preferred}
    return {name: value for name, value in found.items() if value is not None}


def with_object(*pods: Pod, **annotations: str) -> Snapshot:
    made: dict[str, Any] = group("g")
    made["metadata"]["annotations"] = asked(**annotations)
    return world(made, pods=[*pods])


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        pytest.param(
            {"required": "rack"}, {"required": "rack"}, "", id="equal annotations are accepted"
        ),
        pytest.param(
            {"required": "rack"},
            {"required": "zone"},
            f'annotations {REQUIRED} do not match: p1 has "zone", p0 of group default/g has "rack"',
            id="another label",
        ),
        pytest.param(
            {"required": "rack"},
            {},
            f'annotations {REQUIRED} do not match: p1 has none, p0 of group default/g has "rack"',
            id="a member without the annotation",
        ),
        pytest.param(
            {},
            {"preferred": "rack"},
            f'annotations {PREFERRED} do not match: p1 has "rack", p0 of group default/g has none',
            id="a member with an annotation of its own",
        ),
        pytest.param(
            {"required": "rack"},
            {"preferred": "rack"},
            f'annotations {REQUIRED} do not match: p1 has none, p0 of group default/g has "rack"',
            id="required here, preferred there",
        ),
    ],
)
def test_members_of_a_group_of_labels_that_disagree(first, second, reason):
    pods = [member("p0", labelled=True, **first), member("p1", labelled=True, **second)]
    made = plugin(world(pods=pods))
    assert made.group_ready(pods[0]).message == ""
    assert made.group_ready(pods[1]).message == reason


@pytest.mark.parametrize(
    ("of_group", "own", "reason"),
    [
        pytest.param({"required": "rack"}, {}, "", id="pods need not repeat the annotation"),
        pytest.param({"required": "rack"}, {"required": "rack"}, "", id="but they may"),
        pytest.param(
            {"required": "rack"},
            {"required": "zone"},
            f'annotations {REQUIRED} do not match: p0 has "zone", PodGroup default/g has "rack"',
            id="another label",
        ),
        pytest.param(
            {},
            {"preferred": "rack"},
            f'annotations {PREFERRED} do not match: p0 has "rack", PodGroup default/g has none',
            id="a pod alone has the annotation",
        ),
    ],
)
def test_a_member_that_disagrees_with_its_pod_group(of_group, own, reason):
    pods = [member("p0", labelled=False, **own), member("p1", labelled=False)]
    made = plugin(with_object(*pods, **of_group))
    assert made.group_ready(pods[0]).message == reason
    assert made.group_ready(pods[1]).message == ""


_WRONG = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character"
)


@pytest.mark.parametrize("mode", ["trial", "permit"])
@pytest.mark.parametrize(
    ("annotations", "name", "key", "why"),
    [
        pytest.param({"required": "no key"}, REQUIRED, "no key", _WRONG, id="a space"),
        pytest.param({"preferred": ""}, PREFERRED, "", "name part must be non-empty", id="no text"),
    ],
)
def test_an_annotation_that_is_no_label_key(mode, annotations, name, key, why):
    begin = f'is "{key}", not a label key: {why}'
    pods = [member(f"p{i}", labelled=True, **annotations) for i in range(2)]
    assert rejection(world(pods=pods), pods[1], mode).startswith(
        f"annotation {name} of pod default/p0 {begin}"
    )
    pods = [member(f"p{i}", labelled=False) for i in range(2)]
    assert rejection(with_object(*pods, **annotations), pods[1], mode).startswith(
        f"annotation {name} of PodGroup default/g {begin}"
    )


@pytest.mark.parametrize(("how", "name"), [("required", REQUIRED), ("preferred", PREFERRED)])
def test_in_mode_permit_a_topology_is_rejected(how, name):
    pods = [member(f"p{i}", labelled=False) for i in range(2)]
    text = f"annotation {name} of group default/g needs groupMode trial"
    assert rejection(with_object(*pods, **{how: "rack"}), pods[0], "permit") == text
    pods = [member(f"p{i}", labelled=True, **{how: "rack"}) for i in range(2)]
    assert rejection(world(pods=pods), pods[0], "permit") == text


def test_mode_permit_and_the_topologies_of_kubernetes_exclude_each_other():
    gates = feature_gates({TOPOLOGY_AWARE: True, "GenericWorkload": True})
    handle = Handle(
        profile_name="mine",
        snapshot=Snapshot(),
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
        gates=gates,
        group_mode="permit",
    )
    with pytest.raises(ConfigError, match="profile mine has groupMode permit, which cannot keep"):
        TopologyPlacementGenerator(None, handle)


def rejection(snapshot: Snapshot, of: Pod, mode: str) -> str:
    """Return why a member is not tried in a mode."""
    made = plugin(snapshot, mode)
    if mode == "trial":
        return made.group_ready(of).message
    return made.pre_filter(CycleState(), PodInfo(of), snapshot)[1].message


# -- hints -----------------------------------------------------------------------------------------


def rack(name: str | None) -> Node:
    return node("n9", labels={"rack": name} if name else {})


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, rack("a"), True, id="a node with the label comes"),
        pytest.param(None, rack(None), False, id="a node without the label comes"),
        pytest.param(rack("a"), rack("b"), True, id="a node goes to another rack"),
        pytest.param(rack(None), rack("a"), True, id="a node gets the label"),
        pytest.param(rack("a"), rack(None), False, id="a node loses the label"),
        pytest.param(rack("a"), rack("a"), False, id="a node stays in its rack"),
        pytest.param(
            member("p0", labelled=True, required="rack"), None, True, id="a member is gone"
        ),
        pytest.param(pod("other"), None, False, id="a pod of no group is gone"),
    ],
)
@pytest.mark.parametrize("how", ["required", "preferred"])
def test_the_events_that_wake_a_group_with_a_topology(old, new, woken, how):
    waiting = [member(f"p{i}", labelled=True, **{how: "rack"}) for i in range(1, 4)]
    made = plugin(world(pods=waiting))
    resource = "Node" if isinstance(new, Node) else "Pod"
    concerned: list[str] = []
    for each in made.events_to_register()[-2:]:
        if each.event.resource != resource:
            continue
        assert each.concerns is not None
        assert each.hint is not None
        named = each.concerns(old, new) or ()
        assert not isinstance(named, ClaimUsers)
        concerned += [found.name for found in named]
        asked_about = {found.name: each.hint(found, old, new) for found in waiting}
        assert [name for name, said in asked_about.items() if said] == concerned
    # A group that only prefers a topology is not rejected for it.
    assert concerned == (["p1", "p2", "p3"] if woken and how == "required" else [])
