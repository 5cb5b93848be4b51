"""Victims of plugins from outside are completed by what their gangs need, or nobody goes."""

from __future__ import annotations

import pytest

from moorage.api.pod import Pod
from moorage.engine.groups.whole_gangs import with_whole_gangs
from moorage.snapshot.group_labels import LabelledGroups
from moorage.snapshot.pod_groups import PodGroups
from moorage_sandbox.testing.builders import pod


def member(name: str, *, of: str = "g", node: str = "n", priority: int = 0) -> Pod:
    prefix = "pod-group.scheduling.sigs.k8s.io"
    labels = {f"{prefix}/name": of, f"{prefix}/min-available": "2"} if of else {}
    return pod(name, node_name=node, labels=labels, priority=priority)


A, B, WAITS = member("a"), member("b"), member("waits", node="")
OTHER, ALONE = member("other", of="h"), member("alone", of="")
IMPORTANT = member("important", priority=10)


@pytest.mark.parametrize(
    ("there", "victims", "expected"),
    [
        pytest.param([A, B], [ALONE], ["alone"], id="a pod on its own goes alone"),
        pytest.param([A, B], [A], ["b", "a"], id="a member takes the others along"),
        pytest.param([A, B], [B, A], ["b", "a"], id="all of them are chosen already"),
        pytest.param([A, WAITS], [A], ["a"], id="one without a place has nothing to lose"),
        pytest.param([A, B, OTHER], [A], ["b", "a"], id="another gang stays"),
        pytest.param([A, B, OTHER], [OTHER, A], ["b", "other", "a"], id="two gangs"),
        pytest.param([A, B, IMPORTANT], [A], ["a"], id="enough of the gang is left"),
        pytest.param([A, B, IMPORTANT], [A, B], [], id="too few are left, and one may not go"),
        pytest.param([A, IMPORTANT], [A], [], id="one may not go: nobody does"),
    ],
)
def test_victims_with_their_gangs(there: list[Pod], victims: list[Pod], expected: list[str]):
    groups = PodGroups()
    groups.source = LabelledGroups(groups.members)
    for each in there:
        groups.put_pod(each)
    found, kept = with_whole_gangs(groups, victims, below=10)
    assert [each.name for each in found] == expected
    assert kept == (
        "" if expected else "pod group default/g cannot be evicted as a whole: important stays"
    )
