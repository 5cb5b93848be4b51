"""Scores of VolumeBinding by storage, with the feature gate StorageCapacityScoring.

The rows follow kubernetes v1.37 volume_binding.go ``Score`` and scorer.go. Left out: which volumes
are found (``test_volume_binding``).
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.volume import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from moorage.base.errors import ConfigError
from moorage.config.feature_gates import FeatureGates
from moorage.config.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import SKIP, SUCCESS
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import cluster, make, node
from scheduler.tests.plugins.volumes.test_volume_binding import (
    COMPLETED,
    claim,
    storage_class,
    using,
    volume,
)

ON = FeatureGates({"StorageCapacityScoring": True})
BUSY_FIRST = VolumeBindingArgs(
    shape=(
        UtilizationShapePoint(utilization=0, score=0),
        UtilizationShapePoint(utilization=100, score=10),
    )
)


def snapshot_of(*objects: Any) -> Snapshot:
    snapshot = cluster(*(node(name, labels={"host": name}) for name in "abc"))
    listers = snapshot.listers
    by_type: dict[object, Any] = {
        PersistentVolumeClaim: listers.persistent_volume_claims,
        PersistentVolume: listers.persistent_volumes,
        StorageClass: listers.storage_classes,
        CSIDriver: listers.csi_drivers,
        CSIStorageCapacity: listers.csi_storage_capacities,
    }
    for obj in (storage_class("late"), storage_class("more"), *objects):
        by_type[type(obj)].put(obj)
    return snapshot


def driver(*, tracks: bool = True) -> CSIDriver:
    return from_dict(
        CSIDriver, {"metadata": {"name": "d.example"}, "spec": {"storageCapacity": tracks}}
    )


def capacity(name: str, amount: str, *, of: str = "late", largest: str | None = None) -> Any:
    body = {
        "metadata": {"name": f"{of}-{name}", "namespace": "kube-system"},
        "storageClassName": of,
        "capacity": amount,
        "maximumVolumeSize": largest,
        "nodeTopology": {"matchLabels": {"host": name}},
    }
    return from_dict(CSIStorageCapacity, body)


def asking(name: str, amount: str, of: str = "late") -> Any:
    return claim(name, storageClassName=of, resources={"requests": {"storage": amount}})


def local(name: str, host: str, amount: str) -> PersistentVolume:
    terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": [host]}]}]
    return volume(name, storage=amount, nodeAffinity={"required": {"nodeSelectorTerms": terms}})


CAPACITIES = (driver(), capacity("a", "100Gi"), capacity("b", "50Gi"), capacity("c", "20Gi"))


@pytest.mark.parametrize(
    ("objects", "names", "args", "expected"),
    [
        pytest.param(
            (*CAPACITIES, asking("c1", "10Gi")),
            ("c1",),
            None,
            [90, 80, 50],
            id="the node with the most free storage is preferred",
        ),
        pytest.param(
            (*CAPACITIES, asking("c1", "10Gi")),
            ("c1",),
            BUSY_FIRST,
            [10, 20, 50],
            id="a shape of the arguments may prefer the fullest",
        ),
        pytest.param(
            (*CAPACITIES, asking("c1", "10Gi"), asking("c2", "10Gi")),
            ("c1", "c2"),
            None,
            [80, 60, 0],
            id="claims of one class share the capacity, which counts once",
        ),
        pytest.param(
            (
                *CAPACITIES,
                *(capacity(name, "40Gi", of="more") for name in "abc"),
                asking("c1", "10Gi"),
                asking("c2", "10Gi", "more"),
            ),
            ("c1", "c2"),
            None,
            [83, 78, 63],
            id="classes have one weight, and the mean is rounded half up",
        ),
        pytest.param(
            (driver(tracks=False), *CAPACITIES[1:], asking("c1", "10Gi")),
            ("c1",),
            None,
            [0, 0, 0],
            id="a driver that tracks no capacity gives no score",
        ),
        pytest.param(
            (*CAPACITIES, asking("c1", "10Gi"), local("v", "b", "40Gi")),
            ("c1",),
            None,
            [90, 75, 50],
            id="an existing volume stands for its own capacity",
        ),
        pytest.param(
            (
                *CAPACITIES,
                asking("c1", "10Gi"),
                asking("c2", "30Gi", "more"),
                *(capacity(name, "40Gi", of="more") for name in "abc"),
                local("v", "b", "40Gi"),
            ),
            ("c1", "c2"),
            None,
            [58, 75, 38],
            id="next to an existing volume, claims to provision do not count",
        ),
        pytest.param(
            (driver(), capacity("a", "5Gi", largest="20Gi"), asking("c1", "10Gi")),
            ("c1",),
            None,
            [0, 0, 0],
            id="a volume that is larger than the capacity counts as a full node",
        ),
        pytest.param(
            (
                *CAPACITIES,
                claim("c1", annotations=COMPLETED, volumeName="v", storageClassName="late"),
                volume("v"),
            ),
            ("c1",),
            None,
            [0, 0, 0],
            id="a claim that is bound already gives no score",
        ),
    ],
)
def test_scores(objects: Any, names: Any, args: Any, expected: list[int]) -> None:
    snapshot = snapshot_of(*objects)
    plugin, _ = make("VolumeBinding", snapshot, args=args, gates=ON)
    state, asked = CycleState(), using(*names)
    assert plugin.pre_filter(state, asked, snapshot)[1] == SUCCESS
    view = snapshot.all()
    plugin.filter(state, asked, view)
    assert plugin.pre_score(state, asked, view) == SUCCESS
    assert plugin.score(state, asked, view).tolist() == expected


def test_without_the_gate_and_without_claims_scoring_is_skipped() -> None:
    snapshot = snapshot_of(*CAPACITIES, asking("c1", "10Gi"))
    for gates, asked in ((FeatureGates(), using("c1")), (ON, using())):
        plugin, _ = make("VolumeBinding", snapshot, gates=gates)
        state = CycleState()
        plugin.pre_filter(state, asked, snapshot)
        assert plugin.pre_score(state, asked, snapshot.all()) == SKIP


def test_1_37_has_the_gate_on_and_1_36_refuses_a_shape() -> None:
    make("VolumeBinding", args=BUSY_FIRST, gates=FeatureGates(version="1.37"))
    with pytest.raises(ConfigError, match="unexpected field `shape`, remove it or turn on"):
        make("VolumeBinding", args=BUSY_FIRST, gates=FeatureGates(version="1.36"))
