"""A question changes no decision: placements, victims and draws are those without questions."""

from __future__ import annotations

from moorage.engine.decision import Decision
from moorage.explain.explaining import THOROUGH, explain
from moorage.what_if.world import Filled
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, waiting, world_of


def _cluster() -> list[Manifest]:
    """Return a cluster where ties are drawn, and where later pods preempt."""
    nodes = [node_manifest(f"n{i}", labels={"zone": "abc"[i % 3]}) for i in range(12)]
    placed = [bound(f"w{i}", f"n{i}", cpu="1", labels={"app": "w"}) for i in range(12)]
    small = [waiting(f"s{i:02}", cpu="1", labels={"app": "s"}) for i in range(24)]
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "t"}},
    }
    spreading = [
        waiting(f"t{i}", cpu="500m", labels={"app": "t"}, topologySpreadConstraints=[spread])
        for i in range(6)
    ]
    important = [waiting(f"z{i}", cpu="3500m", priority=10) for i in range(3)]
    return [*nodes, *placed, *small, *spreading, *important, waiting("huge", cpu="64")]


def _decide(filled: Filled, *, asking: bool) -> list[tuple[str, str, tuple[str, ...]]]:
    """Decide about every queued pod, and return pod, node and victims of each decision."""
    core, found = filled.core, []
    while (queued := core.queue.pop()) is not None:
        if asking:
            _ask(filled)
        decision: Decision = core.cycles["default-scheduler"].decide(queued.info)
        victims = tuple(sorted(pod.name for pod in decision.victims))
        node = decision.node_name or (decision.nomination.node_name if decision.nomination else "")
        found.append((queued.pod.name, node, victims))
        if decision.node_name:
            core.cache.assume_pod(queued.pod, decision.node_name)
        core.queue.end_in_flight(queued.uid)
    return found


def _ask(filled: Filled) -> None:
    for name in ("huge", "z1", "s20", "t5", "w3"):
        pod = filled.core.store.get("default", name)
        assert pod is not None
        explain(filled.core, pod, THOROUGH)


def test_decisions_are_equal_with_questions_in_between() -> None:
    world = world_of(*_cluster())
    plain, asked = world.fill(), world.fill()
    expected = _decide(plain, asking=False)
    assert any(victims for _, _, victims in expected), "no decision preempts"
    assert _decide(asked, asking=True) == expected
    streams = [each.core.profiles["default-scheduler"].handle.streams for each in (plain, asked)]
    draws = [
        [each.stream(name).random() for name in ("tie-break", "preemption/offset")]
        for each in streams
    ]
    assert draws[0] == draws[1]


def test_the_columns_are_as_before_after_a_question() -> None:
    """A fresh world of the same objects has equal columns."""
    world = world_of(*_cluster())
    asked, fresh = world.fill().core, world.fill().core
    for name in ("huge", "z0", "s00", "w3"):
        pod = asked.store.get("default", name)
        assert pod is not None
        explain(asked, pod, THOROUGH)
    for name in ("cpu", "memory"):
        assert asked.snapshot.requested(name).tolist() == fresh.snapshot.requested(name).tolist()
    assert list(asked.snapshot.names) == list(fresh.snapshot.names)
    assert asked.snapshot.pod_count.tolist() == fresh.snapshot.pod_count.tolist()
    assert asked.snapshot.search_order().tolist() == fresh.snapshot.search_order().tolist()
    asked.queue.validate()


def test_a_node_with_the_name_of_a_suggested_one_stays() -> None:
    """The suggestion was followed; the next question suggests another name."""
    full = bound("w", "one-more-node", cpu="4")
    filled = world_of(node_manifest("one-more-node"), full, waiting("p", cpu="2")).fill()
    pod = filled.core.store.get("default", "p")
    assert pod is not None
    suggested = [way.node for way in explain(filled.core, pod).suggestions if way.kind == "node"]
    assert suggested == ["one-more-node-2"]
    assert filled.core.snapshot.names == ["one-more-node"]
