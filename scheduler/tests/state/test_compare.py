"""Belief against the API: what is missed, redundant or on the wrong node."""

import pytest

from moorage.state.cache import Cache
from moorage.state.compare import Mismatch, compare
from scheduler.tests.state.build import PROFILE, Table, World, node, pod


def believing() -> tuple[World, Cache]:
    """n1 and n2; ``bound`` on n1, ``assumed`` on n2, ``queued`` waiting, ``flying`` in flight."""
    world = World()
    cache = Cache(Table(), world.clock, lifecycle=world.lifecycle)
    for name in ("n1", "n2"):
        cache.add_node(node(name))
    cache.add_pod(pod("bound", node="n1"))
    world.add(pod("assumed"), pod("flying"), pod("queued"))
    cache.assume_pod(world.pop().pod, "n2")
    world.queue.end_in_flight("uid-assumed")
    world.pop()
    cache.validate()
    return world, cache


NODES = [node("n1"), node("n2")]
PODS = [pod("bound", node="n1"), pod("assumed"), pod("flying"), pod("queued")]


@pytest.mark.parametrize(
    ("pods", "nodes", "expected"),
    [
        pytest.param(PODS, NODES, Mismatch(), id="belief and API agree"),
        pytest.param(
            [*PODS[:1], pod("assumed", node="n2"), *PODS[2:]],
            NODES,
            Mismatch(),
            id="an assumed pod bound meanwhile is no difference",
        ),
        pytest.param(
            [*PODS, pod("new"), pod("new2", node="n1")],
            [*NODES, node("n3")],
            Mismatch(missed_nodes=("n3",), missed_pods=("uid-new", "uid-new2")),
            id="the API has more pods and nodes",
        ),
        pytest.param(
            PODS[1:3],
            NODES[:1],
            Mismatch(redundant_nodes=("n2",), redundant_pods=("uid-bound", "uid-queued")),
            id="the API has fewer pods and nodes",
        ),
        pytest.param(
            [pod("bound", node="n2"), *PODS[1:]],
            NODES,
            Mismatch(misplaced_pods=(("uid-bound", "n1", "n2"),)),
            id="a bound pod is on another node in the API",
        ),
        pytest.param(
            [*PODS, pod("done", phase="Succeeded"), pod("broken", node="n1", phase="Failed")],
            NODES,
            Mismatch(),
            id="finished pods are ignored",
        ),
        pytest.param(
            [*PODS, pod("theirs", profile="other")],
            NODES,
            Mismatch(),
            id="another scheduler's pending pod is not ours to queue",
        ),
        pytest.param(
            [*PODS, pod("theirs", profile="other", node="n1")],
            NODES,
            Mismatch(missed_pods=("uid-theirs",)),
            id="another scheduler's bound pod takes room",
        ),
    ],
)
def test_differences_between_belief_and_api_are_found(pods, nodes, expected):
    world, cache = believing()
    found = compare(
        cache,
        world.queue,
        pods,
        nodes,
        responsible=lambda each: each.spec.scheduler_name == PROFILE,
    )
    assert found == expected
    assert found.empty == (expected == Mismatch())


def test_every_pod_is_compared_unless_a_filter_is_given():
    world, cache = believing()
    found = compare(cache, world.queue, [*PODS, pod("theirs", profile="other")], NODES)
    assert found == Mismatch(missed_pods=("uid-theirs",))
