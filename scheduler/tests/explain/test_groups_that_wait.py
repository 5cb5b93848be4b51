"""A member whose group cannot be tried is told why: members that are held, rules, no group.

Each case is explained with members tried together, and with members that wait at Permit.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.explain.answer import Where
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import explained, waiting
from scheduler.tests.explain.planted_volumes import mounted
from tests.scenarios.gangs import coscheduling, of_labels, of_object, pod_group

GATED = "is held before the queue by plugin SchedulingGates: waiting for scheduling gates: [x/y]"


def _labelled(name: str, *, least: int, cpu: str = "1", **fields: Any) -> Manifest:
    return _known(of_labels(name, least=least, cpu=cpu, **fields))


def _member(name: str, *, cpu: str = "1", **fields: Any) -> Manifest:
    return _known(of_object(name, cpu=cpu, **fields))


def _known(pod: Manifest) -> Manifest:
    """Return a pod with its uid and scheduler, as an API server shows it."""
    fields = {"schedulerName": "default-scheduler", **pod["spec"]}
    metadata = {**pod["metadata"], "uid": f"uid-{pod['metadata']['name']}"}
    return {**pod, "metadata": metadata, "spec": fields}


ALONE = "would fit on 1 node alone, but its group default/g"
UNTRIED = "is not tried on any node: its group default/g"
CASES = [
    pytest.param(
        [_labelled("q", least=2, gates=["x/y"]), _labelled("p", least=2)],
        f"{ALONE} needs 2 pods, and 1 of its 2 is not tried: pod default/q {GATED}",
        f"{ALONE} needs 2 pods, and 1 of its 2 is not tried: pod default/q {GATED}",
        id="a member has a scheduling gate",
    ),
    pytest.param(
        [
            pod_group(least=3),
            _member("q", gates=["x/y"]),
            _member("r", gates=["x/y"]),
            _member("p"),
        ],
        f"{ALONE} needs 3 pods, and 2 of its 3 are not tried: pod default/q {GATED}, and 1 more",
        f"{ALONE} needs 3 pods, and 2 of its 3 are not tried: pod default/q {GATED}, and 1 more",
        id="two members have a scheduling gate",
    ),
    pytest.param(
        [
            _labelled("q", least=2, gates=["x/y"]),
            _labelled("r", least=2),
            _labelled("p", least=2),
        ],
        "fits now on 1 node; it is the next in the queue",
        "fits now on 1 node; it is the next in the queue",
        id="a gated member is not needed",
    ),
    pytest.param(
        [_member("p")],
        "would fit on 1 node, but its PodGroup default/g does not exist",
        "would fit on 1 node, but its PodGroup default/g does not exist",
        id="the group does not exist",
    ),
    pytest.param(
        [_labelled("q", least=3), _labelled("r", least=3), _labelled("p", least=2)],
        f"{ALONE} needs 2 pods with a place, and only 1 fit together: pod default/q is not tried "
        "with the group: PodGroupMinAvailables do not match: q has 3, others of group default/g "
        "have 2, and 1 more",
        f"{ALONE} needs 2 pods with a place, and only 1 fit together: the next, pod default/q, is "
        "not tried on any node, because of Coscheduling (PodGroupMinAvailables do not match)",
        id="members name different minimums",
    ),
    pytest.param(
        [
            pod_group(least=2, minResources={"cpu": "40", "memory": "1Gi"}),
            _member("q"),
            _member("p"),
        ],
        f"{ALONE} needs 40 cpu and 1Gi memory free in the cluster (minResources)",
        f"{UNTRIED} needs 40 cpu and 1Gi memory free in the cluster (minResources)",
        id="the group wants more than the cluster has",
    ),
]


@pytest.mark.parametrize(("pods", "together", "one_by_one"), CASES)
def test_a_member_is_told_why_its_group_is_not_tried(
    pods: list[Manifest], together: str, one_by_one: str
) -> None:
    found = {
        mode: explained(node_manifest("n"), *pods, config=coscheduling(mode)).sentence
        for mode in ("trial", "permit")
    }
    assert found == {"trial": together, "permit": one_by_one}


@pytest.mark.parametrize("mode", ["trial", "permit"])
def test_of_two_causes_the_claim_is_the_sentence_and_the_group_a_note(mode: str) -> None:
    """The group lacks a pod, and the claim of this one does not exist."""
    found = explained(
        node_manifest("n"),
        _labelled("p", least=2, volumes=mounted("gone")),
        config=coscheduling(mode),
    )
    assert (found.where, found.sentence, found.notes) == (
        Where.REJECTED,
        "is not tried on any node, because of its claim gone, which does not exist in namespace "
        'default (VolumeRestrictions: persistentvolumeclaim "gone" not found)',
        ("Besides, its group default/g has 1 of the 2 pods it needs.",),
    )


def test_a_pod_without_a_group_is_as_before() -> None:
    found = explained(node_manifest("n"), waiting("p"), config=coscheduling())
    assert found.where is Where.FITS
