"""Which watch event tells cache and queue what, in which order: the handler table row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.changes import Resource
from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.api.volume import StorageClass
from moorage.service.intake.ingest import ListerIngest, NodeIngest, PodIngest
from moorage.snapshot.listers import Lister
from moorage_sandbox.testing.builders import pod_manifest
from scheduler.tests.service.build import World, node, pod

Step = tuple[str, *tuple[Any, ...]]


class Handlers:
    """Both handlers over a world that logs."""

    def __init__(self) -> None:
        self.world = world = World()
        self.nodes = NodeIngest(world.cache, world.queue, world.facts)
        self.pods = PodIngest(
            world.cache,
            world.queue,
            world.store,
            profiles=["default-scheduler"],
            writes=None,
            facts=world.facts,
        )
        world.watch_cache(
            "add_node", "update_node", "remove_node", "add_pod", "update_pod", "remove_pod"
        )
        world.watch_cache("forget_pod")
        world.watch_queue("add", "update", "delete")
        low, same, high = (pod(name, priority=value) for name, value in _PRIORITIES)
        world.onlookers = (low, same, high)

    def play(self, *steps: Step) -> list[str]:
        """Carry out steps ``(name, arguments...)``; returns what the last one logged."""
        for name, *args in steps:
            self.world.log.clear()
            if name == "assume":
                self.world.queue.pop()
                self.world.cache.assume_pod(args[0], "n1")
                continue
            kind, _, verb = name.partition(" ")
            missed = {"missed": verb == "missed"} if verb in {"delete", "missed"} else {}
            verb = "delete" if verb == "missed" else verb
            getattr(getattr(self, f"{kind}s"), f"on_{verb}")(*args, **missed)
        self.world.validate()
        return list(self.world.log)


_PRIORITIES = (("low", 1), ("same", 5), ("high", 9))
BOUND: dict[str, Any] = {"node_name": "n1"}
N2: dict[str, Any] = {"node_name": "n2"}
OTHER: dict[str, Any] = {"schedulerName": "somebody-else"}
N1 = ("node add", node())


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        pytest.param(
            [N1], ["cache.add_node n1", "move NodeAdd - n1"], id="a new node: cache first"
        ),
        pytest.param(
            [N1, ("node update", node(), node(cpu="8", labels={"a": "b"}))],
            [
                "cache.update_node n1",
                "move NodeUpdateNodeAllocatable n1 n1",
                "move NodeUpdateNodeLabel n1 n1",
            ],
            id="a changed node: one move for each kind of change",
        ),
        pytest.param(
            [N1, ("node update", node(), node())],
            ["cache.update_node n1"],
            id="a heartbeat wakes no pod",
        ),
        pytest.param(
            [N1, ("node delete", node())],
            ["move NodeDelete n1 -", "cache.remove_node n1"],
            id="a deleted node: the queue hears before the cache",
        ),
        pytest.param(
            [("pod add", pod(**BOUND))],
            ["cache.add_pod p", "move AssignedPodAdd - p"],
            id="a new pod on a node",
        ),
        pytest.param(
            [("pod add", pod())], ["queue.add p"], id="a new pod without a node is queued"
        ),
        pytest.param([("pod add", pod(**OTHER))], [], id="a new pod of another scheduler"),
        pytest.param(
            [
                ("pod add", pod(**BOUND)),
                ("pod update", pod(**BOUND), pod(version="2", labels={"a": "b"}, **BOUND)),
            ],
            ["cache.update_pod p", "move AssignedPodUpdatePodLabel p p"],
            id="a changed pod on a node",
        ),
        pytest.param(
            [("pod add", pod()), ("pod update", pod(), pod(version="2", **BOUND))],
            ["cache.add_pod p", "move AssignedPodAdd - p", "queue.delete p"],
            id="a pod bound elsewhere leaves the queue",
        ),
        pytest.param(
            [
                ("pod add", pod(**OTHER)),
                ("pod update", pod(**OTHER), pod(version="2", **OTHER, **BOUND)),
            ],
            ["cache.add_pod p", "move AssignedPodAdd - p"],
            id="a pod of another scheduler gets its node",
        ),
        pytest.param(
            [("pod add", pod()), ("pod update", pod(), pod(version="2"))],
            ["queue.update p"],
            id="a waiting pod changes",
        ),
        pytest.param(
            [("pod add", pod()), ("pod update", pod(), pod())],
            [],
            id="a relist shows a waiting pod again",
        ),
        pytest.param(
            [
                ("pod add", pod(nominated="n1", priority=5)),
                ("pod update", pod(), pod(version="2", priority=5)),
            ],
            [
                "queue.update p",
                "move AssignedPodDelete p - only low same",
                "move ReservationDelete p - only low same",
            ],
            id="a nomination is removed: pods of at most its priority are looked at",
        ),
        pytest.param(
            [
                ("pod add", pod(priority=5)),
                ("pod update", pod(), pod(version="2", nominated="n1", priority=5)),
            ],
            ["queue.update p"],
            id="a pod gets a nomination",
        ),
        pytest.param(
            [("pod add", pod()), ("assume", pod()), ("pod update", pod(), pod(version="2"))],
            ["queue.update p assumed"],
            id="an assumed pod changes",
        ),
        pytest.param(
            [
                N1,
                ("pod add", pod()),
                ("assume", pod()),
                ("pod update", pod(), pod(version="2", deleted=True)),
            ],
            ["cache.forget_pod p", "move AssignedPodDelete p -"],
            id="an assumed pod begins to stop",
        ),
        pytest.param(
            [N1, ("pod add", pod()), ("assume", pod()), ("pod delete", pod())],
            ["queue.delete p", "cache.forget_pod p", "move AssignedPodDelete p -"],
            id="an assumed pod is deleted",
        ),
        pytest.param(
            [
                N1,
                ("pod add", pod()),
                ("assume", pod()),
                ("pod update", pod(), pod(version="2", **BOUND)),
            ],
            ["cache.add_pod p", "move AssignedPodAdd - p", "queue.delete p"],
            id="an assumed pod is confirmed",
        ),
        pytest.param(
            [("pod add", pod(**BOUND)), ("pod delete", pod(**BOUND))],
            ["cache.remove_pod p", "move AssignedPodDelete p -"],
            id="a pod on a node is deleted",
        ),
        pytest.param(
            [("pod add", pod()), ("pod delete", pod())],
            ["queue.delete p"],
            id="a waiting pod is deleted",
        ),
        pytest.param(
            [
                ("pod add", pod(nominated="n1", priority=5)),
                ("pod delete", pod(nominated="n1", priority=5)),
            ],
            [
                "queue.delete p",
                "move AssignedPodDelete p - only low same",
                "move ReservationDelete p - only low same",
            ],
            id="a nominated pod is deleted: pods of no more priority are looked at",
        ),
        pytest.param(
            [("pod add", pod(**BOUND)), ("pod missed", pod(**BOUND))],
            ["cache.remove_pod p", "move AssignedPodDelete p -", "queue.delete p"],
            id="a tombstone of a pod on a node counts both ways",
        ),
        pytest.param(
            [("pod add", pod()), ("pod missed", pod())],
            ["queue.delete p"],
            id="a tombstone of a waiting pod",
        ),
        pytest.param(
            [
                ("pod add", pod()),
                ("pod update", pod(), pod(version="2", **BOUND)),
                ("pod missed", pod()),
            ],
            ["cache.remove_pod p", "move AssignedPodDelete p -", "queue.delete p"],
            id="a stale tombstone of a pod that was seen on a node",
        ),
        pytest.param(
            [("pod add", pod(cpu="much"))], [], id="a pod with unreadable requests is left alone"
        ),
        pytest.param(
            [("pod add", pod(cpu="much")), ("pod update", pod(cpu="much"), pod(cpu="1"))],
            ["queue.add p"],
            id="a fixed pod is new",
        ),
        pytest.param(
            [
                ("pod add", pod()),
                ("pod update", pod(), pod(cpu="much", **BOUND)),
                ("pod update", pod(cpu="much", **BOUND), pod(version="3", cpu="1", **BOUND)),
            ],
            ["cache.add_pod p", "move AssignedPodAdd - p", "queue.delete p"],
            id="a pod bound while unreadable leaves the queue when fixed",
        ),
        pytest.param(
            [
                ("pod add", pod(cpu="2", **BOUND)),
                ("pod update", pod(cpu="2", **BOUND), pod(cpu="much", **BOUND)),
                ("pod update", pod(cpu="much", **BOUND), pod(cpu="1", **BOUND)),
            ],
            ["cache.update_pod p", "move AssignedPodUpdatePodScaleDown p p"],
            id="a pod on a node is fixed: compared with the version before",
        ),
        pytest.param(
            [("pod add", pod(cpu="much")), ("pod delete", pod(cpu="much"))],
            [],
            id="a pod that never could be read is deleted",
        ),
        pytest.param(
            [
                ("pod add", pod()),
                ("pod update", pod(), pod(cpu="much", **BOUND)),
                ("pod delete", pod(cpu="much", **BOUND)),
            ],
            ["cache.remove_pod p", "move AssignedPodDelete p -", "queue.delete p"],
            id="a pod bound while unreadable is deleted, and is still queued",
        ),
        pytest.param(
            [N1, ("node delete", node()), N1],
            ["cache.add_node n1", "move NodeAdd - n1"],
            id="a node deleted and made again under its name",
        ),
        pytest.param(
            [("node add", node(cpu="much"))], [], id="a node with unreadable amounts is left alone"
        ),
        pytest.param(
            [("node add", node(cpu="much")), ("node update", node(cpu="much"), node())],
            ["cache.add_node n1", "move NodeAdd - n1"],
            id="a fixed node is new",
        ),
        pytest.param(
            [
                N1,
                ("node update", node(), node(cpu="much", labels={"a": "b"})),
                ("node update", node(cpu="much", labels={"a": "b"}), node(labels={"a": "b"})),
            ],
            ["cache.update_node n1", "move NodeUpdateNodeLabel n1 n1"],
            id="a node is fixed: compared with the version before",
        ),
        pytest.param(
            [("node add", node(cpu="much")), ("node delete", node(cpu="much"))],
            [],
            id="a node that never could be read is deleted",
        ),
        pytest.param(
            [("pod add", pod()), ("pod add", pod("q", uid="uid-p"))],
            [],
            id="a second pod with the same uid is left alone",
        ),
        pytest.param(
            [
                ("pod add", pod()),
                ("pod add", pod("q", uid="uid-p")),
                ("pod delete", pod()),
                ("pod update", pod("q", uid="uid-p"), pod("q", uid="uid-p", version="2")),
            ],
            ["queue.add q"],
            id="a second pod of the name is added when the first is gone",
        ),
        pytest.param(
            [("pod add", pod()), ("pod add", pod("q", uid="uid-p", **BOUND))],
            [],
            id="a pod on a node with the uid of a waiting pod is left alone",
        ),
        pytest.param(
            [("pod add", pod(**BOUND)), ("pod update", pod(**BOUND), pod(version="2", **N2))],
            [
                "cache.remove_pod p",
                "move AssignedPodDelete p -",
                "queue.delete p",
                "cache.add_pod p",
                "move AssignedPodAdd - p",
            ],
            id="a pod that moves between nodes was deleted and made again",
        ),
        pytest.param(
            [("pod add", pod(**BOUND)), ("pod update", pod(**BOUND), pod(version="2"))],
            ["cache.remove_pod p", "move AssignedPodDelete p -", "queue.delete p", "queue.add p"],
            id="so was a pod that leaves its node",
        ),
        pytest.param(
            [("pod add", pod(**BOUND)), ("pod delete", pod(**N2))],
            ["cache.remove_pod p", "cache.remove_pod p", "move AssignedPodDelete p -"],
            id="a pod is deleted on another node than it was on",
        ),
        pytest.param(
            [N1, ("pod add", pod()), ("assume", pod()), ("pod delete", pod(**N2))],
            [
                "cache.remove_pod p",
                "cache.remove_pod p",
                "move AssignedPodDelete p -",
                "queue.delete p",
            ],
            id="an assumed pod is deleted on another node",
        ),
    ],
)
def test_each_watch_event_tells_cache_and_queue(steps: list[Step], told: list[str]) -> None:
    assert Handlers().play(*steps) == told


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(("node add", node(cpu="much")), id="a node"),
        pytest.param(("pod add", pod(cpu="much")), id="a waiting pod"),
        pytest.param(("pod add", pod(cpu="much", **BOUND)), id="a pod on a node"),
    ],
)
def test_an_unreadable_object_is_reported_and_the_rest_goes_on(
    step: Step, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = Handlers()
    assert handlers.play(step) == []
    assert handlers.world.facts.undecodable == 1
    assert "is left alone" in caplog.text
    assert handlers.play(("node add", node("n2"))) == ["cache.add_node n2", "move NodeAdd - n2"]


def test_a_node_change_that_does_not_fit_the_cache_is_logged_and_passed_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert Handlers().play(("node delete", node())) == [
        "move NodeDelete n1 -",
        "cache.remove_node n1",
    ]
    assert "node n1 is not found" in caplog.text


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        pytest.param(
            [("pod add", pod()), ("pod add", pod("q", uid="uid-p"))],
            "Pod default/q is left alone: metadata.uid: pod default/p has the same uid",
            id="a uid twice",
        ),
        pytest.param(
            [("pod add", from_dict(Pod, pod_manifest("q")))],
            "Pod default/q is left alone: metadata.uid: there is none",
            id="no uid",
        ),
        pytest.param(
            [("pod add", pod(**BOUND)), ("pod update", pod(**BOUND), pod(**N2))],
            "Pod default/p: spec.nodeName: changed from n1 to 'n2', though a pod never moves; the "
            "new version counts",
            id="a pod that moves",
        ),
        pytest.param(
            [("pod add", pod(**BOUND)), ("pod delete", pod(**N2))],
            "Pod default/p: spec.nodeName: deleted on n2, though it was on n1",
            id="a pod deleted elsewhere",
        ),
    ],
)
def test_impossible_watch_events_are_logged_with_name_and_field(
    steps: list[Step], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    Handlers().play(*steps)
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == [text]


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        pytest.param(
            Resource.STORAGE_CLASS,
            [
                "move storage.k8s.io/StorageClassAdd - fast",
                "move storage.k8s.io/StorageClassUpdate fast fast",
                "move storage.k8s.io/StorageClassDelete fast -",
            ],
            id="a kind plugins wait for",
        ),
        pytest.param(None, [], id="a kind that is only looked up"),
    ],
)
def test_other_kinds_are_stored_and_cause_cluster_events(
    resource: str | None, expected: list[str]
) -> None:
    world = World()
    world.watch_queue()
    lister = world.core.snapshot.listers.storage_classes
    handler = ListerIngest(
        "StorageClass", lister, resource=resource, queue=world.queue, facts=world.facts
    )
    fast = StorageClass(metadata=pod("fast", namespace="").metadata)
    held: list[int] = []
    steps: list[Callable[[], None]] = [
        lambda: handler.on_add(fast),
        lambda: handler.on_update(fast, fast),
        lambda: handler.on_delete(fast, missed=False),
    ]
    for step in steps:
        step()
        held.append(_count(lister))
    assert world.log == expected
    assert held == [1, 1, 0]


def _count(lister: Lister[Any]) -> int:
    return len(list(lister.all()))
