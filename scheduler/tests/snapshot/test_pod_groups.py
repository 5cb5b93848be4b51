"""Members of pod groups by where they stand, against a naive model; what a PodGroup demands."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.api.pod_group import PodGroup
from moorage.snapshot.group_sources import ApiGroups, terms_of
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_groups import GroupKey, GroupTerms, PodGroups
from moorage_sandbox.testing.builders import pod


def member(index: int, group: str, node: str = "", *, gated: bool = False) -> Pod:
    named: dict[str, Any] = {"schedulingGroup": {"podGroupName": group}} if group else {}
    gates = {"schedulingGates": [{"name": "wait"}]} if gated else {}
    return pod(f"p{index}", node_name=node, **named, **gates)


def groups() -> PodGroups:
    return PodGroups(ApiGroups(Lister()))


moves = st.lists(
    st.tuples(
        st.sampled_from(["put", "gated", "bound", "assume", "forget", "remove"]),
        st.integers(0, 4),
        st.sampled_from(["", "g", "h"]),
    ),
    max_size=40,
)


@given(moves)
def test_each_member_is_counted_by_its_last_event(history):
    counted, model = groups(), dict[str, tuple[str, str]]()
    for move, index, name in history:
        uid = f"uid-default-p{index}"
        place = model.get(uid, ("", ""))[1]
        if move in ("put", "gated", "bound"):
            node = "n" if move == "bound" else ""
            counted.put_pod(member(index, name, node, gated=move == "gated"))
            same = model.pop(uid, ("", ""))
            kept = same[1] if same[0] == name and same[1] != "waiting" else "waiting"
            if name:
                model[uid] = name, "assigned" if move == "bound" else kept or "waiting"
        elif move == "assume":
            counted.assume(uid)
            if place == "waiting":
                model[uid] = model[uid][0], "assumed"
        elif move == "forget":
            counted.forget_pod(uid)
            if place == "assumed":
                model[uid] = model[uid][0], "waiting"
        else:
            counted.remove(uid)
            model.pop(uid, None)
        counted.validate()
    found = {
        uid: (key.name, place)
        for key, each in counted.all_groups().items()
        for place in ("waiting", "assumed", "assigned")
        for uid in getattr(each, place)
    }
    assert found == model


def test_placed_members_are_the_assumed_and_the_assigned():
    counted = groups()
    for index, node in enumerate(["", "", "n"]):
        counted.put_pod(member(index, "g", node))
    counted.assume("uid-default-p0")
    found = counted.members(GroupKey("default", "g"))
    assert found.placed == 2
    assert found.placed_uids() == ["uid-default-p2", "uid-default-p0"]
    assert [each.name for each in found.waiting_pods()] == ["p1"]
    assert [each.name for each in found.assumed_pods()] == ["p0"]


def test_without_a_source_no_pod_is_counted():
    counted = PodGroups()
    counted.put_pod(member(0, "g"))
    assert counted.all_groups() == {}
    assert counted.terms_of(member(0, "g")) is None


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        pytest.param({"schedulingPolicy": {"basic": {}}}, {}, id="basic: one by one"),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 3}}, "priority": 7},
            {"minimum": 3, "gang": True, "priority": 7},
            id="a gang has a minimum",
        ),
        pytest.param(
            {"schedulingConstraints": {"topology": [{"key": "zone"}]}},
            {"topology_key": "zone"},
            id="a topology constraint",
        ),
        pytest.param({"schedulingConstraints": {}}, {}, id="no constraint in the constraints"),
        pytest.param(
            {"disruptionMode": "PodGroup"},
            {"evicted_whole": True},
            id="disruption of the group as a whole",
        ),
        pytest.param({"disruptionMode": "Pod"}, {}, id="disruption pod by pod"),
    ],
)
def test_the_terms_of_a_group_follow_from_its_spec(spec: dict[str, Any], changes: dict[str, Any]):
    group = from_dict(
        PodGroup, {"metadata": {"namespace": "a", "name": "g", "uid": "u"}, "spec": spec}
    )
    plain = GroupTerms(key=GroupKey("a", "g"), uid="u")
    assert terms_of(group) == msgspec.structs.replace(plain, **changes)
