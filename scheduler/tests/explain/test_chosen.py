"""Why a bound pod is on its node: what its attempt found then, and how the scores are now."""

from __future__ import annotations

from collections.abc import Callable

from moorage.base.clock import ManualClock
from moorage.explain.answer import Explanation
from moorage.explain.explaining import QUICK, effort_of, explain
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.explain.clusters import bound, explained

IMPORTANT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "important"},
    "value": 1000,
}


def _after(nodes: list[Manifest], *pods: Manifest, name: str) -> Explanation:
    """Create pods one after another, and explain one of them once every pod is bound."""
    clock = ManualClock()

    async def main() -> Explanation:
        async with VirtualCluster(clock, nodes=nodes) as cluster:
            await cluster.create_objects(IMPORTANT)
            for each in pods:
                await cluster.create_objects(each)
                await cluster.until(_has_node(cluster, each["metadata"]["name"]))
            core = cluster.scheduler.core
            await cluster.until(lambda: core.cache.counts().assumed_pods == 0)
            pod = core.store.get("default", name)
            assert pod is not None
            return explain(core, pod)

    return run_virtual(main(), clock)


def _has_node(cluster: VirtualCluster, name: str) -> Callable[[], bool]:
    return lambda: bool(cluster.node_of(name))


def test_the_scores_of_the_attempt_are_told_and_a_better_node_now() -> None:
    """The first pod goes to the larger node; the second follows, and makes it the worse one."""
    nodes = [node_manifest("large", cpu="8", memory="16Gi"), node_manifest("small", cpu="6")]
    first = pod_manifest("a", cpu="1", memory="1Gi")
    found = _after(nodes, first, pod_manifest("b", cpu="1", memory="1Gi"), name="a")
    assert found.sentence.startswith("bound to large because of its score ")
    assert ", the highest of 2 feasible nodes in its attempt 1 (TaintToleration 300, " in (
        found.sentence
    )
    heavy = pod_manifest("b", cpu="5", node_selector={"kubernetes.io/hostname": "large"})
    found = _after(nodes, first, heavy, name="a")
    assert "; now its score is " in found.sentence


def test_a_draw_among_equal_nodes_is_told() -> None:
    nodes = [node_manifest(f"n{index}") for index in range(3)]
    found = _after(nodes, pod_manifest("a", cpu="1"), name="a")
    assert found.sentence.endswith(", drawn among 3 with equal scores")


def test_the_pods_that_were_evicted_for_it_are_told() -> None:
    victim = pod_manifest("victim", cpu="3")
    preemptor = pod_manifest("urgent", cpu="3", priorityClassName="important")
    found = _after([node_manifest("n")], victim, preemptor, name="urgent")
    assert found.sentence == "bound to n, the only feasible node in its attempt 2"
    assert found.notes == ("Its attempt 1 evicted default/victim from n.",)


def test_the_pods_own_node_is_told_beside_a_named_node() -> None:
    """Among twelve nodes neither of the two is one of the ten best."""
    nodes = [node_manifest(f"n{index:02}", cpu="32") for index in range(10)]
    full = [node_manifest(name, cpu="1") for name in ("own", "other")]
    effort = effort_of(node="other", every=False, thorough=False)
    found = explained(*nodes, *full, bound("p", "own", cpu="900m"), effort=effort)
    assert [each.node for each in found.nodes][-2:] == ["own", "other"]
    assert found.sentence.startswith("bound to own because of its score then; now it has ")
    assert QUICK.nodes == 10
