"""Which pods count as waiting for a node."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage_sandbox.sandbox.scaling.growth import waits_for_node
from moorage_sandbox.testing.builders import pod_manifest

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
DAEMON = [
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": True}
]


@pytest.mark.parametrize(
    ("metadata", "spec", "status", "expected"),
    [
        pytest.param({}, {}, {}, True, id="found unschedulable"),
        pytest.param({}, {"priority": -10}, {}, True, id="the lowest priority that counts"),
        pytest.param({}, {"priority": -11}, {}, False, id="expendable"),
        pytest.param({}, {}, {"nominatedNodeName": "n"}, False, id="victims are being evicted"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, {}, {}, False, id="deleted"),
        pytest.param({"ownerReferences": DAEMON}, {}, {}, False, id="of a DaemonSet"),
        pytest.param({}, {}, {"conditions": []}, False, id="not tried yet"),
        pytest.param(
            {},
            {},
            {"conditions": [UNSCHEDULABLE | {"reason": "SchedulingGated"}]},
            False,
            id="gated",
        ),
    ],
)
def test_a_pod_waits_for_a_node(
    metadata: dict[str, Any], spec: dict[str, Any], status: dict[str, Any], expected: bool
) -> None:
    manifest = pod_manifest("a")
    manifest["metadata"] |= metadata
    manifest["spec"] |= spec
    manifest["status"] = {"conditions": [UNSCHEDULABLE], **status}
    assert waits_for_node(from_dict(Pod, manifest)) is expected
