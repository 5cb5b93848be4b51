"""A member of a group of 2020 is told what its group lacks: pods, or room for all of them."""

from __future__ import annotations

import pytest

from moorage.engine.packing.apart import SHARES, WHOLE
from moorage.engine.packing.bounds import Shortage
from moorage.explain.answer import Explanation, Where
from moorage.explain.sentences import shortage_text
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.applying import applied
from scheduler.tests.explain.clusters import explained
from tests.scenarios.gangs import coscheduling, of_labels, of_object, pod_group


def _member(name: str, *, cpu: str = "1") -> Manifest:
    pod = of_labels(name, least=3, cpu=cpu, schedulerName="default-scheduler")
    return {**pod, "metadata": {**pod["metadata"], "uid": f"uid-{name}"}}


def _explained(*members: Manifest) -> Explanation:
    nodes = [node_manifest(name, cpu="4") for name in ("n1", "n2")]
    return explained(*nodes, *members, config=coscheduling())


def test_a_group_that_lacks_a_pod_is_told_so_and_the_pod_is_a_suggestion() -> None:
    """Two of three pods exist, and each would fit alone."""
    found = _explained(_member("p"), _member("q"))
    assert found.sentence == (
        "would fit on 2 nodes alone, but its group default/g has 2 of the 3 pods it needs"
    )
    (way,) = found.suggestions
    assert (way.kind, way.text) == ("member", "1 more pod like this one in its group default/g")
    assert [each["metadata"]["name"] for each in way.create] == ["p-more-1"]


@pytest.mark.parametrize(
    ("members", "cpu", "text"),
    [
        pytest.param("pq", "1", "lower minMember of PodGroup default/g from 4 to 2", id="short"),
        pytest.param("pqrst", "3", "lower minMember of PodGroup default/g from 4 to 2", id="large"),
        pytest.param("pqrs", "5", "", id="a member that fits nowhere"),
    ],
)
def test_the_largest_minimum_with_which_a_group_is_placed(members, cpu, text) -> None:
    nodes = [node_manifest(name, cpu="4") for name in ("n1", "n2")]
    pods = [of_object(name, cpu=cpu, schedulerName="default-scheduler") for name in members]
    for pod in pods:
        pod["metadata"]["uid"] = pod["metadata"]["name"]
    group = pod_group(least=4)
    found = explained(group, *nodes, *pods, config=coscheduling())
    ways = [each for each in found.suggestions if each.kind == "minimum"]
    assert [each.text for each in ways] == [text] * bool(text)
    for way in ways:
        assert way.command == (
            "kubectl -n default patch podgroups.scheduling.x-k8s.io g --type=merge "
            """-p '{"spec":{"minMember":2}}'"""
        )
        after = applied(way, [group, *nodes, *pods])
        assert explained(*after, config=coscheduling()).where is Where.FITS


def test_a_further_member_has_a_name_that_no_member_has() -> None:
    found = _explained(_member("p"), _member("p-more-1"))
    assert [each["metadata"]["name"] for each in found.suggestions[0].create] == ["p-more-2"]


def test_a_pod_that_would_not_help_the_group_is_no_suggestion() -> None:
    """The third pod would find no room either."""
    found = _explained(_member("p", cpu="3"), _member("q", cpu="3"))
    assert found.sentence.endswith("its group default/g has 2 of the 3 pods it needs")
    assert found.suggestions == ()


def test_a_whole_group_without_room_is_told_how_many_fit() -> None:
    """Two nodes take two of the three pods."""
    found = _explained(*(_member(name, cpu="3") for name in "pqr"))
    assert found.sentence == (
        "would fit on 2 nodes alone, but its group default/g needs 3 pods with a place, and only 2 "
        "fit together: the next, pod default/r, would fit on 2 nodes of 2 but for cpu (it requests "
        "3, the most that is free on one of them is 1)"
    )
    assert [each.text for each in found.suggestions] == [
        "one more node like n1 (4 cpu, 8Gi memory; there are 2 of this shape)"
    ]


def _racks(*rooms: tuple[str, str]) -> list[Manifest]:
    """Return nodes: (cpu, rack) each."""
    return [
        node_manifest(f"n{at}", cpu=cpu, labels={"rack": rack, "kubernetes.io/hostname": f"n{at}"})
        for at, (cpu, rack) in enumerate(rooms)
    ]


def _cordoned(name: str, cpu: str) -> Manifest:
    return node_manifest(name, cpu=cpu) | {"spec": {"unschedulable": True}}


@pytest.mark.parametrize(
    ("nodes", "cpu", "texts"),
    [
        pytest.param(
            _racks(("3", "a")),
            "3",
            ["2 more nodes like n0 (3 cpu, 8Gi memory; there is 1 of this shape)"],
            id="two more nodes",
        ),
        pytest.param(
            _racks(("9", "a"), ("2", "b"), ("2", "b")),
            "4",
            ["one more node like n0 (9 cpu, 8Gi memory; there is 1 of this shape)"],
            id="the shape of which the fewest are needed",
        ),
        pytest.param(
            [*_racks(("3", "a"), ("3", "a")), _cordoned("late", "3")],
            "3",
            [
                "uncordon node late",
                "one more node like n0 (3 cpu, 8Gi memory; there are 2 of this shape)",
            ],
            id="a cordoned node",
        ),
        pytest.param(_racks(("2", "a")), "3", [], id="no shape takes a member"),
        pytest.param(
            [*_racks(("2", "a"), ("2", "a"), ("2", "a")), _cordoned("late", "12")],
            "3",
            ["uncordon node late"],
            id="no node takes a member; the cordoned one takes all",
        ),
    ],
)
def test_nodes_that_make_room_for_the_whole_group(nodes, cpu, texts) -> None:
    found = explained(*nodes, *(_member(name, cpu=cpu) for name in "pqr"), config=coscheduling())
    assert [each.text for each in found.suggestions if each.kind in ("node", "uncordon")] == texts


def test_with_the_nodes_of_a_suggestion_the_group_is_placed() -> None:
    nodes, pods = _racks(("3", "a")), [_member(name, cpu="3") for name in "pqr"]
    (more,) = explained(*nodes, *pods, config=coscheduling()).suggestions
    assert len(more.create) == 2
    after = explained(*nodes, *more.create, *pods, config=coscheduling())
    assert (after.where, after.suggestions) == (Where.FITS, ())


def test_a_group_that_needs_one_rack_is_told_the_best_rack_and_gets_nodes_there() -> None:
    nodes = _racks(("3", "a"), ("3", "b"), ("3", "b"), ("3", "c"))
    pods = [_member(name, cpu="3") for name in "pqr"]
    for pod in pods:
        pod["metadata"]["annotations"] = {"moorage.dev/required-topology": "rack"}
    found = explained(*nodes, *pods, config=coscheduling())
    assert found.sentence.startswith(
        "would fit on 4 nodes alone, but its group default/g needs 3 pods with a place, and only 2 "
        "fit together in b, the best domain of rack: "
    )
    assert [each.text for each in found.suggestions] == [
        "one more node like n1 (3 cpu, 8Gi memory; there are 2 of this shape)"
    ]


def _succeeded(name: str) -> Manifest:
    pod = _member(name)
    return {
        **pod,
        "spec": {**pod["spec"], "nodeName": "n1"},
        "status": {"phase": "Succeeded"},
    }


def test_a_member_that_succeeded_is_counted_and_named() -> None:
    found = _explained(_succeeded("r"), _member("p"))
    assert found.sentence == (
        "would fit on 2 nodes alone, but its group default/g has 2 of the 3 pods it needs, "
        "counting 1 that succeeded"
    )
    assert [each["metadata"]["name"] for each in found.suggestions[0].create] == ["p-more-1"]


def test_members_that_succeeded_count_among_those_that_fit_together() -> None:
    """Two nodes take two members, and the minimum is four."""

    def member(name: str) -> Manifest:
        pod = of_labels(name, least=4, cpu="3", schedulerName="default-scheduler")
        return {**pod, "metadata": {**pod["metadata"], "uid": f"uid-{name}"}}

    ended = {**member("o"), "status": {"phase": "Succeeded"}}
    found = _explained(ended, *(member(name) for name in "pqr"))
    assert found.sentence.startswith(
        "would fit on 2 nodes alone, but its group default/g needs 4 pods with a place, and only "
        "3, counting 1 that succeeded, fit together: the next, pod default/r, would fit"
    )


def test_a_replacement_next_to_members_that_succeeded_only_waits_for_its_turn() -> None:
    found = _explained(_succeeded("q"), _succeeded("r"), _member("p"))
    assert found.sentence == "fits now on 2 nodes; it is the next in the queue"


@pytest.mark.parametrize(
    ("shortage", "text"),
    [
        pytest.param(
            Shortage(classes=(0,), dimension="cpu", needed=7, available=6, each=9000),
            "7 of its pods request 9 cpu or more each, and the nodes have room for 6 such pods",
            id="an amount each",
        ),
        pytest.param(
            Shortage(classes=(0, 1), dimension="memory", needed=3 << 30, available=2 << 30),
            "its pods request 3Gi memory in all, and 2Gi is free on the nodes that take them",
            id="an amount in all",
        ),
        pytest.param(
            Shortage(classes=(0,), dimension="pods", needed=5, available=4),
            "the nodes take 4 more pods, and the group needs 5",
            id="a number of pods",
        ),
        pytest.param(
            Shortage(classes=(0,), dimension=SHARES, needed=3, available=1, each=WHOLE),
            "3 of its pods may not share a node, and 1 node takes such pods",
            id="nodes for members apart",
        ),
        pytest.param(
            Shortage(classes=(0, 1), dimension=SHARES, needed=5670, available=5040),
            "its pods that may not share a node need more nodes than there are for them",
            id="shares of nodes",
        ),
        pytest.param(Shortage(classes=(0,)), "", id="no node for a member"),
    ],
)
def test_a_shortage_in_words(shortage: Shortage, text: str) -> None:
    assert shortage_text(shortage) == text


def test_a_group_of_unlike_members_without_room_is_told_what_proves_it() -> None:
    """Three members of 3 cpu or more need as many nodes with 3 free cpu, and there are two."""
    found = _explained(*(_member(name, cpu="3") for name in "pqr"), _member("s", cpu="4"))
    assert (
        "3 of its pods request 3 cpu or more each, and the nodes have room for 2 such pods; the "
        "next, pod default/" in found.sentence
    )
