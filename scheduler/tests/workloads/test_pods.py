"""Which pods go first when there are too many, and the queue of keys."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.base import aio
from moorage.base.clock import ManualClock, parse_rfc3339
from moorage.controllers.work_queue import ObjectQueue
from moorage.workloads.pods import deletion_order, scaled, template_hash
from moorage_sandbox.testing.virtual_loop import run_virtual

NOW_NS = parse_rfc3339("2026-01-01T12:00:00Z")


def pod(
    name: str,
    *,
    node: str = "n1",
    phase: str = "Running",
    ready: str | None = "2026-01-01T00:00:00Z",
    cost: str = "",
    restarts: int = 0,
    created: str = "2026-01-01T00:00:00Z",
) -> Pod:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    annotations = {"controller.kubernetes.io/pod-deletion-cost": cost} if cost else {}
    body: dict[str, Any] = {
        "metadata": {
            "name": name,
            "uid": name,
            "annotations": annotations,
            "creationTimestamp": created,
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"name": "c", "restartCount": restarts}],
        },
    }
    return from_dict(Pod, body)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"node": ""}, {}, id="one that is bound nowhere"),
        pytest.param({"phase": "Pending"}, {}, id="one that is pending"),
        pytest.param({"ready": None}, {}, id="one that is not ready"),
        pytest.param({"cost": "-1"}, {}, id="one that costs less"),
        pytest.param({"node": "n2"}, {}, id="one on a crowded node"),
        pytest.param({"ready": "2026-01-01T11:59:00Z"}, {}, id="one ready for a shorter time"),
        pytest.param({"restarts": 3}, {}, id="one that restarted more often"),
        pytest.param({"created": "2026-01-01T11:59:00Z"}, {}, id="a younger one"),
        pytest.param(
            {"node": "", "cost": "100"}, {"cost": "-100"}, id="the earlier rule counts first"
        ),
        pytest.param(
            {"ready": "2026-01-01T00:00:00Z"},
            {"ready": "2026-01-01T01:00:00Z"},
            id="of about the same age the smaller uid",
        ),
    ],
)
def test_pods_are_deleted_in_kubernetes_order(first, second):
    pods = [pod("b", **second), pod("a", **first)]
    rank = {"n1": 1, "n2": 3}
    assert [each.name for each in deletion_order(pods, rank=rank, now_ns=NOW_NS)] == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        pytest.param(None, 0, 0, id="nothing"),
        pytest.param(3, 3, 3, id="a number"),
        pytest.param("25%", 3, 2, id="a percentage"),
        pytest.param("100%", 10, 10, id="all"),
    ],
)
def test_a_percentage_is_scaled_up_or_down(value, up, down):
    assert (scaled(value, 10, up=True), scaled(value, 10, up=False)) == (up, down)


def test_hashes_depend_on_the_template_and_on_collisions_only():
    first = {"spec": {"a": 1, "b": 2}}
    assert template_hash(first, 0) == template_hash({"spec": {"b": 2, "a": 1}}, 0)
    assert template_hash(first, 0) != template_hash(first, 1)
    assert template_hash(first, 0) != template_hash({"spec": {"a": 2, "b": 2}}, 0)


KEY = ("default", "a")


def test_a_key_is_taken_once_and_comes_back_if_it_was_added_meanwhile():
    async def scenario() -> None:
        queue = ObjectQueue()
        queue.add(KEY)
        queue.add(KEY)
        assert len(queue) == 1
        assert await queue.take_key() == KEY
        queue.add(KEY)
        assert len(queue) == 0
        queue.finish_key(KEY)
        assert len(queue) == 1
        assert await queue.take_key() == KEY
        queue.finish_key(KEY)
        assert len(queue) == 0

    run_virtual(scenario(), ManualClock())


def test_a_key_is_due_at_its_earliest_moment():
    clock = ManualClock()

    async def scenario() -> None:
        queue = ObjectQueue()
        queue.add_after(KEY, 10)
        queue.add_after(KEY, 5)
        queue.add_after(KEY, 20)
        await queue.take_key()
        assert clock.monotonic_ns() == pytest.approx(5e9, abs=1e6)
        queue.finish_key(KEY)
        await aio.sleep(30)
        assert len(queue) == 0

    run_virtual(scenario(), clock)


def test_failures_wait_ever_longer_until_they_are_forgotten():
    clock = ManualClock()

    async def scenario() -> None:
        queue = ObjectQueue()
        waits = []
        for _ in range(4):
            began = clock.monotonic_ns()
            queue.retry(KEY)
            await queue.take_key()
            queue.finish_key(KEY)
            waits.append(round((clock.monotonic_ns() - began) / 1e6))
        queue.forget_failures(KEY)
        began = clock.monotonic_ns()
        queue.retry(KEY)
        await queue.take_key()
        waits.append(round((clock.monotonic_ns() - began) / 1e6))
        assert waits == [5, 10, 20, 40, 5]

    run_virtual(scenario(), clock)
