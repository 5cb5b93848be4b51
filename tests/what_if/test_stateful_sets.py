"""The pods of a StatefulSet are made again in the order and at the time of its controller."""

from __future__ import annotations

from functools import partial

import pytest

from moorage.api.pod import Pod
from moorage.controllers.stateful_steps import REVISION_LABEL
from moorage.testing.builders import Manifest
from moorage.what_if.carrying import CALL_SECONDS
from moorage.what_if.changes import Scene
from moorage.what_if.course import scene_of
from moorage.what_if.rehearsal import Rehearsal
from tests.what_if.cluster import bare, world_of

_CALL_MS = round(CALL_SECONDS * 1000)


def _stateful_set(replicas: int) -> Manifest:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default", "uid": "uid-db"},
        "spec": {
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [container]},
            },
        },
    }


def _pod(ordinal: int) -> Manifest:
    labels = {"app": "db", REVISION_LABEL: "db-7f9c"}
    pod = bare(f"db-{ordinal}", "n1", cpu="1", labels=labels)
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-db"}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return pod


def _course(scene: Scene, gone_ms: dict[int, int]) -> dict[int, int]:
    """Let pods be gone after so many milliseconds; return when their ordinals are made again."""
    rehearsal = scene.rehearsal
    begin_ns = rehearsal.now_ns
    made: dict[int, int] = {}
    pods = rehearsal.objects.pods

    def note(pod: Pod) -> None:
        current = rehearsal.current(pod)
        if current is not None and not current.spec.node_name:
            ordinal = int(pod.name.rpartition("-")[2])
            made.setdefault(ordinal, (rehearsal.now_ns - begin_ns) // 10**6)

    rehearsal.listeners.append(note)
    for ordinal, after_ms in gone_ms.items():
        leaves = partial(rehearsal.leave, pods["default", f"db-{ordinal}"], at_once=True)
        rehearsal.at(begin_ns + after_ms * 10**6, leaves)
    rehearsal.settle()
    return made


@pytest.mark.parametrize(
    ("gone_ms", "made_ms"),
    [
        pytest.param({0: 0}, {0: _CALL_MS}, id="a call after the name is free"),
        pytest.param(
            {0: 0, 1: 0}, {0: _CALL_MS, 1: _CALL_MS}, id="pods that go together come together"
        ),
        pytest.param(
            {0: 0, 1: 2 * _CALL_MS},
            {0: _CALL_MS, 1: 3 * _CALL_MS},
            id="a pod that goes later comes a call later, too",
        ),
        pytest.param(
            {0: 0, 1: _CALL_MS},
            {0: _CALL_MS, 1: 2 * _CALL_MS},
            id="nothing is made in the moment in which a pod goes",
        ),
        pytest.param(
            {0: 0, 1: _CALL_MS // 2},
            {0: _CALL_MS, 1: 2 * _CALL_MS},
            id="a pod that goes during a call comes after the next one",
        ),
    ],
)
def test_a_pod_is_made_again_a_call_after_its_set_was_looked_at(
    gone_ms: dict[int, int], made_ms: dict[int, int]
) -> None:
    """kubernetes v1.36 pkg/controller/statefulset: a sync lists the pods once, when it begins.

    What it sees then is what it makes and deletes, and the set is not synced again meanwhile.
    """
    world = world_of(_stateful_set(2), _pod(0), _pod(1))
    assert _course(scene_of(Rehearsal(world)), gone_ms) == made_ms


def test_a_set_that_is_deleted_during_its_call_gets_no_pod() -> None:
    """A pod that came after all would be collected with its owner."""
    scene = scene_of(Rehearsal(world_of(_stateful_set(1), _pod(0))))
    rehearsal = scene.rehearsal
    deletes = partial(scene.workloads.delete, "StatefulSet", ("default", "db"))
    rehearsal.at(rehearsal.now_ns + 10**6, deletes)
    assert _course(scene, {0: 0}) == {}
    assert rehearsal.objects.pods == {}
