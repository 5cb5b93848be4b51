"""Objects at the server of a whole cluster, whose controllers lag behind the workload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from moorage.api.resources import ResourceType
from moorage.base.clock import ManualClock
from moorage.base.errors import ApiError
from moorage.base.rng import Streams
from moorage.client.writes import Client
from moorage_lab.bench.scheduler_perf.nodes import create_nodes
from moorage_lab.bench.scheduler_perf.objects import Objects
from moorage_lab.bench.scheduler_perf.operations import CreateNodes
from moorage_lab.bench.scheduler_perf.pod_tallies import PodTallies
from moorage_lab.bench.scheduler_perf.scene import Scene
from moorage_lab.bench.scheduler_perf.templates import Templates
from moorage_sandbox.testing.virtual_loop import run_virtual

REFUSED = (
    'pods "p" is forbidden: error looking up service account a/default: serviceaccount "default" '
    "not found"
)
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}


class Server:
    """Answers creations with an error for some time."""

    def __init__(self, message: str, times: int) -> None:
        self.message = message
        self.left = times

    async def create(
        self, resource: ResourceType, obj: dict[str, Any], *, namespace: str = ""
    ) -> dict[str, Any]:
        """Create an object, or refuse it."""
        if self.left:
            self.left -= 1
            raise ApiError(403, "Forbidden", self.message)
        return obj


def test_a_pod_waits_for_the_service_account_of_its_namespace() -> None:
    clock, server = ManualClock(), Server(REFUSED, times=30)
    made = run_virtual(Objects(cast("Client", server)).create_object(dict(POD), "a"), clock)
    assert (made["metadata"]["name"], server.left) == ("p", 0)
    assert clock.monotonic_ns() == pytest.approx(3e9)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        pytest.param(REFUSED, 999_799, id="an account that never comes"),
        pytest.param('pods "p" is forbidden: quota', 999_999, id="another reason"),
    ],
)
def test_a_refusal_that_lasts_is_told(message: str, left: int) -> None:
    server = Server(message, times=1_000_000)
    with pytest.raises(ApiError, match="forbidden"):
        run_virtual(Objects(cast("Client", server)).create_object(dict(POD), "a"), ManualClock())
    assert server.left == left


class Tainting:
    """A server whose admission gives every new node a taint; keeps the patches."""

    def __init__(self) -> None:
        self.patches: list[tuple[str, Any]] = []

    async def create(
        self, resource: ResourceType, obj: dict[str, Any], *, namespace: str = ""
    ) -> dict[str, Any]:
        """Create an object, with one more taint."""
        spec = obj.get("spec", {})
        taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        return {**obj, "spec": {**spec, "taints": [*spec.get("taints", []), taint]}}

    async def patch(
        self, resource: ResourceType, name: str, body: bytes, *, content_type: str
    ) -> None:
        """Keep a patch."""
        self.patches.append((name, json.loads(body)))


@pytest.mark.parametrize(
    ("taints", "patches"),
    [
        pytest.param("[]", [("a", {"spec": {"taints": None}})], id="a node without taints"),
        pytest.param(
            "[{key: b, effect: NoSchedule}]",
            [("a", {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}})],
            id="a node with its own taint",
        ),
        pytest.param(
            "[{key: node.kubernetes.io/not-ready, effect: NoSchedule}]",
            [],
            id="a node that wants that taint",
        ),
    ],
)
def test_the_taint_that_admission_gives_to_new_nodes_is_taken_back(
    taints: str, patches: list[tuple[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "node.yaml").write_text(
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: a}}\nspec: {{taints: {taints}}}\n"
    )
    clock, server = ManualClock(), Tainting()
    scene = Scene(
        Objects(cast("Client", server)),
        PodTallies(),
        Templates(tmp_path),
        default_pod="",
        clock=clock,
        rng=Streams(1).stream("test"),
        wait_seconds=1,
    )
    op = CreateNodes(opcode="createNodes", count=1, node_template_path="node.yaml")
    run_virtual(create_nodes(scene, op, 0), clock)
    assert server.patches == patches
