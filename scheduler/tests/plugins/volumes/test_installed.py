"""NodeVolumeLimits with the gate VolumeLimitScaling: nodes that lack a CSI driver are left out.

The driver has to ask for it (``preventPodSchedulingIfMissing``). Left out: the limits themselves
(``test_volume_binding``, ``test_against_reference``).
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.volume import CSIDriver, CSINode
from moorage.config.feature_gates import FeatureGates
from moorage.plugins.volumes.installed import driver_hint, installed_hint
from scheduler.tests.plugins.builders import make, rejections
from scheduler.tests.plugins.volumes.test_volume_binding import claim, using, with_objects

V1_36, V1_37 = FeatureGates(), FeatureGates(version="1.37")
LATE = claim("c", storageClassName="late")
REASON = ("d.example CSI driver is not installed on the node",)
ASKS = using("c").pod


def driver(*, prevents: bool | None = True) -> CSIDriver:
    spec = {"preventPodSchedulingIfMissing": prevents}
    return from_dict(CSIDriver, {"metadata": {"name": "d.example"}, "spec": spec})


def csi_node(name: str, *drivers: str, count: int | None = None) -> CSINode:
    allocatable = None if count is None else {"count": count}
    listed = [{"name": each, "nodeID": name, "allocatable": allocatable} for each in drivers]
    return from_dict(CSINode, {"metadata": {"name": name}, "spec": {"drivers": listed}})


@pytest.mark.parametrize(
    ("gates", "objects", "expected"),
    [
        pytest.param(
            V1_37,
            (driver(), csi_node("a", "d.example"), csi_node("b", "other")),
            {"b": ("Unschedulable", REASON)},
            id="a node whose CSINode does not list the driver",
        ),
        pytest.param(
            V1_37,
            (driver(), csi_node("a", "d.example")),
            {"b": ("Unschedulable", REASON)},
            id="a node without a CSINode",
        ),
        pytest.param(
            V1_37,
            (driver(), csi_node("a", "d.example", count=0)),
            {
                "a": ("Unschedulable", ("node(s) exceed max volume count",)),
                "b": ("Unschedulable", REASON),
            },
            id="the limit still counts on the nodes that have the driver",
        ),
        pytest.param(
            V1_37, (driver(prevents=False),), {}, id="a driver that does not ask for it: any node"
        ),
        pytest.param(V1_37, (), {}, id="a driver without a CSIDriver: any node"),
        pytest.param(V1_36, (driver(),), {}, id="without the gate, any node"),
    ],
)
def test_nodes_without_the_driver(gates: FeatureGates, objects: Any, expected: Any) -> None:
    snapshot = with_objects(LATE, *objects)
    assert rejections("NodeVolumeLimits", snapshot, ASKS, gates=gates) == expected


def test_a_driver_that_comes_to_a_node_and_one_that_goes_are_noticed() -> None:
    snapshot = with_objects(LATE, driver(), csi_node("a", "d.example"), csi_node("b", "d.example"))
    assert rejections("NodeVolumeLimits", snapshot, ASKS, gates=V1_37) == {}
    plugin, _ = make("NodeVolumeLimits", snapshot, gates=V1_37)
    asked = using("c")
    for drivers, failed in ((("other",), [0, 1]), (("other", "d.example"), [0, 0])):
        snapshot.listers.csi_nodes.put(csi_node("b", *drivers))
        answer = plugin.filter(None, asked, snapshot.all())
        codes = [0, 0] if answer is None else [int(code > 0) for code in answer.code_n]
        assert codes == failed


@pytest.mark.parametrize(
    ("hint", "old", "new", "queues"),
    [
        pytest.param(
            installed_hint, csi_node("a"), csi_node("a", "d"), True, id="a driver is installed"
        ),
        pytest.param(
            installed_hint, csi_node("a", "d"), csi_node("a", "d"), False, id="the same drivers"
        ),
        pytest.param(
            driver_hint, driver(), driver(prevents=False), True, id="a driver no longer asks"
        ),
        pytest.param(driver_hint, driver(), None, True, id="the CSIDriver is deleted"),
        pytest.param(
            driver_hint, driver(prevents=False), driver(), False, id="it asks from now on"
        ),
    ],
)
def test_hints(hint: Any, old: Any, new: Any, queues: bool) -> None:
    assert hint(ASKS, old, new) is queues
