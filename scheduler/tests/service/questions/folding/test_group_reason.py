"""Of the texts of a group's members, the one that names the cause counts."""

from __future__ import annotations

from typing import Final

import pytest

from moorage.service.questions.folding.group_reason import concerns_group, reason_of_group

NO_ROOM: Final = "0/2 nodes are available: 2 Insufficient cpu."
PLACES: Final = "2 of 3 pods needed have a node"
WITHOUT_NODE: Final = f"{PLACES}, a/m2 has none: {NO_ROOM}"
NOTE: Final = f"pod group a/g: {WITHOUT_NODE}"
TURNED_AWAY: Final = "0/1 nodes are available: 1 optimistic rejection in PostFilter."
TOO_SOON: Final = "0/2 nodes are available: podGroup a/g failed recently."
ON_TRIAL: Final = (
    f"pod group is unschedulable: 2 of 3 pods tried have a place, a/m2 has none: {NO_ROOM}"
)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["", ""], ("", ""), id="no member was tried"),
        pytest.param(
            [TURNED_AWAY, TOO_SOON, f"{TOO_SOON} {NOTE}"],
            ("InsufficientCPU", WITHOUT_NODE),
            id="one member that was tried too soon names the cause",
        ),
        pytest.param(
            [
                f"{TURNED_AWAY} {NOTE}",
                f"{TURNED_AWAY} {NOTE}",
                f"{NO_ROOM} pod group a/g: {PLACES}",
            ],
            ("InsufficientCPU", WITHOUT_NODE),
            id="members that were turned away name the member without a node",
        ),
        pytest.param(
            [TOO_SOON, TOO_SOON, f"{NO_ROOM} pod group a/g: {PLACES}"],
            ("InsufficientCPU", f"{NO_ROOM} pod group a/g: {PLACES}"),
            id="only the member without a node has a cause",
        ),
        pytest.param(
            [TURNED_AWAY, "waiting for 2 more pods of group a/g to have a node", TURNED_AWAY],
            ("GroupUnschedulable", TURNED_AWAY),
            id="no text has a cause",
        ),
        pytest.param(
            [NO_ROOM, NO_ROOM, ON_TRIAL],
            ("GroupUnschedulable", ON_TRIAL.partition(": ")[2]),
            id="a group that was tried as a whole",
        ),
        pytest.param(
            [NO_ROOM, "PodGroup not found", "PodGroup not found"],
            ("GroupMissing", "PodGroup not found"),
            id="the most frequent one of several causes",
        ),
    ],
)
def test_a_text_with_the_cause_wins(texts: list[str], expected: tuple[str, str]):
    assert reason_of_group(texts) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param([ON_TRIAL], True, id="a group that was tried as a whole"),
        pytest.param([f"{TOO_SOON} {NOTE}"], True, id="members that are placed one by one"),
        pytest.param([NO_ROOM], False, id="a member of a group that needs no other member"),
    ],
)
def test_only_reasons_of_the_whole_group_replace_those_of_members(texts: list[str], expected: bool):
    assert concerns_group(*reason_of_group(texts)) is expected
