"""Members of a group that are decided before the extender is asked about them.

The reference asks about each member before it is decided. Not covered: what is asked about one
member, and what happens when the cluster never stands still (`groups.test_asking`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.engine.extenders.decisions_ahead import DecisionsAhead
from moorage.engine.groups.decision import GroupOutcome
from moorage.engine.groups.trying import MembersOnTrial
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.engine.groups.test_asking import (
    ZONED,
    Meanwhile,
    Slow,
    asked,
    occupy,
    places,
)
from scheduler.tests.engine.groups.test_cycle import GATES, cluster, members


class Moody(Slow):
    """An extender whose answers about some members differ from those about the others."""

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        rejects: Mapping[str, str],
        favourites: Mapping[str, str],
        fails_for: str = "",
        ignorable: bool = False,
        meanwhile: Meanwhile = lambda snapshot, asked: None,
    ) -> None:
        super().__init__(snapshot, rejects=rejects, ignorable=ignorable, meanwhile=meanwhile)
        self._favourites = favourites
        self._fails_for = fails_for

    async def filter(
        self, pod: Pod, nodes: Sequence[Node]
    ) -> tuple[Sequence[str], Mapping[str, str], Mapping[str, str]]:
        self._fails = pod.name == self._fails_for
        return await super().filter(pod, nodes)

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        names = " ".join(node.name for node in nodes)
        await self._away(f"score {pod.name}: {names}")
        return {self._favourites.get(pod.name, "n0"): 10}


def strangers_after(calls: int, *, name: str) -> Meanwhile:
    """Return a change of the cluster during one of the calls."""
    seen: list[str] = []

    def meanwhile(snapshot: Snapshot, asked: str) -> None:
        seen.append(asked)
        if len(seen) == calls and snapshot.row_of(name) is not None:
            occupy(snapshot, name)

    return meanwhile


@settings(max_examples=150, deadline=None)
@given(
    rooms=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    cpus=st.lists(st.sampled_from([1, 1, 1, 2]), min_size=1, max_size=9),
    spread=st.booleans(),
    zoned=st.booleans(),
    data=st.data(),
)
def test_questions_and_places_are_those_of_members_decided_one_by_one(
    rooms, cpus, spread, zoned, data
):
    pods = members(cpus, spread=spread)
    pod_names, node_names = [each.name for each in pods], [f"n{row}" for row in range(len(rooms))]
    some_nodes = st.lists(st.sampled_from(node_names), max_size=2).map(" ".join)
    script = {
        "rejects": data.draw(st.dictionaries(st.sampled_from(pod_names), some_nodes, max_size=2)),
        "favourites": data.draw(
            st.dictionaries(st.sampled_from(pod_names), st.sampled_from(node_names), max_size=3)
        ),
        "fails_for": data.draw(st.sampled_from(["", "", *pod_names])),
        "ignorable": data.draw(st.booleans()),
    }
    calls, busy = data.draw(st.integers(1, 20)), data.draw(st.sampled_from(node_names))
    least, topology = data.draw(st.integers(1, len(pods))), ZONED if zoned else {}
    results = []
    for ahead in (True, False):
        snapshot = cluster(rooms)
        meanwhile = strangers_after(calls, name=busy)
        extender = Moody(snapshot, meanwhile=meanwhile, **script)
        with pytest.MonkeyPatch.context() as patch:
            if not ahead:
                patch.setattr(DecisionsAhead, "decide", lambda *_: None)
            found = asked(snapshot, pods, least, extender, gates=GATES, **topology)
        results.append((extender.log, found.outcome, found.status, found.placement, places(found)))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("moods", "most"),
    [
        pytest.param({}, 20, id="an extender that says the same of every member"),
        pytest.param({"p40": "n3"}, 40, id="one reply is not as expected"),
    ],
)
def test_members_leave_their_nodes_once_for_many_questions(monkeypatch, moods, most):
    # Each time all members before are taken off their nodes, so 128 times would be a square.
    counts = 0
    suspend = MembersOnTrial.suspend

    def counted(tried: MembersOnTrial) -> None:
        nonlocal counts
        counts += 1
        suspend(tried)

    monkeypatch.setattr(MembersOnTrial, "suspend", counted)
    snapshot, pods = cluster([16] * 5), members([1] * 64)
    extender = Moody(snapshot, rejects=moods, favourites={})
    found = asked(snapshot, pods, 64, extender)
    assert len([line for line in extender.log if not line.startswith("score")]) == 64
    assert all(places(found).values())
    assert counts <= most


def test_an_extender_that_fails_for_a_late_member_breaks_the_attempt():
    snapshot, pods = cluster([4, 4]), members([1] * 6)
    extender = Moody(snapshot, rejects={}, favourites={}, fails_for="p5")
    found = asked(snapshot, pods, 6, extender)
    assert found.outcome is GroupOutcome.BROKEN
    assert found.members[-1].message == "out of order"


def test_members_dropped_behind_an_unexpected_reply_do_not_complete_the_group():
    snapshot, pods = cluster([4, 4]), members([1] * 6)
    extender = Moody(snapshot, rejects={"p4": "n0 n1"}, favourites={})
    found = asked(snapshot, pods, 6, extender)
    assert found.outcome is GroupOutcome.REJECTED
    assert [pod for pod, node_name in places(found).items() if not node_name] == ["p4"]
