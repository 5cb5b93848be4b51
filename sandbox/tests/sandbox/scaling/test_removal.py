"""The order in which nodes are removed, and the pods that keep a node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.meta import OwnerReference
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage_sandbox.sandbox.scaling.removal import Removal, choose
from moorage_sandbox.testing.builders import node, pod


def aged(name: str, second: int) -> Node:
    found = node(name)
    created = f"2026-01-01T00:00:{second:02d}Z"
    metadata = msgspec.structs.replace(found.metadata, creation_timestamp=created)
    return msgspec.structs.replace(found, metadata=metadata)


def on(node_name: str, name: str = "web", *, phase: str = "Running", **metadata: Any) -> Pod:
    found = pod(name, node_name=node_name)
    return msgspec.structs.replace(
        found,
        metadata=msgspec.structs.replace(found.metadata, **metadata),
        status=msgspec.structs.replace(found.status, phase=phase),
    )


def owned(kind: str) -> dict[str, Any]:
    return {"owner_references": [OwnerReference(kind=kind, name="o", uid="u", controller=True)]}


OLD, NEW, NEWEST = aged("node-9", 1), aged("node-10", 2), aged("node-11", 2)


@pytest.mark.parametrize(
    ("pods", "count", "removal"),
    [
        pytest.param([], 0, Removal((), (), 0), id="nothing to remove"),
        pytest.param(
            [],
            2,
            Removal(("node-11", "node-10"), (), 0),
            id="the newest first, by number where they are of one second",
        ),
        pytest.param(
            [on("node-11")], 2, Removal(("node-10", "node-9"), (), 0), id="empty nodes first"
        ),
        pytest.param(
            [on("node-10", "a"), on("node-10", "b"), on("node-9")],
            2,
            Removal(("node-11", "node-10"), ("node-10",), 2),
            id="then nodes with pods, which are told with the number of their pods",
        ),
        pytest.param(
            [
                on("node-11", "done", phase="Succeeded"),
                on("node-11", "broken", phase="Failed"),
                on("node-11", "daemon", **owned("DaemonSet")),
                on("node-11", "static", annotations={"kubernetes.io/config.mirror": "x"}),
            ],
            1,
            Removal(("node-11",), (), 0),
            id="pods that are finished, mirrored or of a DaemonSet do not keep a node",
        ),
        pytest.param(
            [on("node-11", **owned("ReplicaSet"))],
            1,
            Removal(("node-10",), (), 0),
            id="other owned pods keep a node",
        ),
    ],
)
def test_nodes_are_chosen_for_removal_by_their_pods_and_age(
    pods: list[Pod], count: int, removal: Removal
) -> None:
    assert choose([OLD, NEWEST, NEW], pods, count) == removal
