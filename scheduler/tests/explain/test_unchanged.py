"""A question changes no decision: placements, victims and draws are those without questions.

No plugin acts for it either.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping

import pytest
from msgspec.structs import replace

from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.engine.decision import Decision
from moorage.explain.explaining import THOROUGH, explain
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.registry import PluginEntry
from moorage.framework.status import Status, unschedulable
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.attempts.plugin_effects import ApiEffects
from moorage.snapshot.pod_info import PodInfo
from moorage.virtual.deciding_half import DecidingHalf
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, inputs_of, pod_of, waiting
from tests.scenarios.gangs import coscheduling, of_labels


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


def _decide(half: DecidingHalf, *, asking: bool) -> list[tuple[str, str, tuple[str, ...]]]:
    """Decide about every queued pod, and return pod, node and victims of each decision."""
    core, found = half.core, []
    while (queued := core.queue.pop()) is not None:
        if asking:
            _ask(half)
        decision: Decision = core.cycles["default-scheduler"].decide(queued.info)
        victims = tuple(sorted(pod.name for pod in decision.victims))
        node = decision.node_name or (decision.nomination.node_name if decision.nomination else "")
        found.append((queued.pod.name, node, victims))
        if decision.node_name:
            core.cache.assume_pod(queued.pod, decision.node_name)
        core.queue.end_in_flight(queued.uid)
    return found


def _ask(half: DecidingHalf) -> None:
    for name in ("huge", "z1", "s20", "t5", "w3"):
        pod = half.core.store.get("default", name)
        assert pod is not None
        explain(half.core, pod, THOROUGH)


def test_decisions_are_equal_with_questions_in_between() -> None:
    inputs = inputs_of(*_cluster())
    plain, asked = inputs.fill(), inputs.fill()
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
    """A fresh inputs of the same objects has equal columns."""
    inputs = inputs_of(*_cluster())
    asked, fresh = inputs.fill().core, inputs.fill().core
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
    half = inputs_of(node_manifest("one-more-node"), full, waiting("p", cpu="2")).fill()
    pod = half.core.store.get("default", "p")
    assert pod is not None
    suggested = [way.node for way in explain(half.core, pod).suggestions if way.kind == "node"]
    assert suggested == ["one-more-node-2"]
    assert half.core.snapshot.names == ["one-more-node"]


class _Telling:
    """A plugin of somebody else that acts at PostFilter, as upstream's allow."""

    name = "Telling"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._effects = handle.effects

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Mapping[str, Status]
    ) -> tuple[None, Status]:
        del state, node_to_status

        async def write() -> None:
            raise AssertionError("nothing is written")

        self._effects.emit(pod.pod, kind="Normal", reason="Told", action="Telling", note="note")
        self._effects.in_background("write", write)
        self._effects.activate([pod.pod])
        return None, unschedulable("it only tells")


_TELLING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    postFilter:
      enabled: [{name: Telling}, {name: DefaultPreemption}]
      disabled: [{name: "*"}]
"""


def _in_quota() -> list[Manifest]:
    """Return a group whose members exceed the quota of their namespace together."""
    quota = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"min": {"cpu": "1"}, "max": {"cpu": "1"}},
    }
    labels = of_labels("p", least=2)["metadata"]["labels"]
    return [quota, *(waiting(name, cpu="1", labels=labels) for name in "pq")]


@pytest.mark.parametrize(
    ("objects", "config"),
    [
        pytest.param(
            [bound("w", "n", cpu="4"), waiting("p", cpu="2", priority=5)],
            parse_config(_TELLING),
            id="a plugin of somebody else at PostFilter",
        ),
        pytest.param(
            _in_quota(),
            coscheduling(extra="CapacityScheduling", without="DefaultPreemption"),
            id="a group that exceeds its quota",
        ),
    ],
)
def test_no_plugin_acts_for_a_question(
    objects: list[Manifest], config: LoadedConfiguration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Event, no write and no pod that is tried sooner; in an attempt the plugins act."""
    registry = in_tree_registry()
    registry.register(PluginEntry("Telling", _Telling))
    inputs = replace(inputs_of(node_manifest("n"), *objects, config=config), registry=registry)
    core, acts = inputs.fill().core, list[str]()

    def spawn(coro: Coroutine[object, object, None], *, name: str) -> object:
        coro.close()
        acts.append(name)
        return None

    api = ApiEffects(record=lambda note: acts.append(note.reason), spawn=spawn, ready=lambda: True)
    monkeypatch.setattr(core.effects, "_api", api)
    monkeypatch.setattr(core.effects._activations, "add_pods", lambda _pods: acts.append("tried"))
    pod = pod_of(inputs, "p")
    explain(core, pod, THOROUGH)
    assert acts == []
    core.cycles["default-scheduler"].decide(PodInfo(pod))
    core.effects.emit(pod, kind="Normal", reason="Later", action="A", note="n")
    assert acts[-1] == "Later"
