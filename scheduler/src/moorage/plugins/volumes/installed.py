"""The nodes that lack a CSI driver which asks to keep its pods away from such nodes.

Rules mirrored: kubernetes v1.37 ``pkg/scheduler/framework/plugins/nodevolumelimits/csi.go`` with
the feature gate VolumeLimitScaling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.api.volume import CSIDriver, CSINode
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.volume_pods import read_volumes

BoolArray = NDArray[np.bool_]


class InstalledDrivers:
    """Looks for CSI drivers on nodes.

    Parameters
    ----------
    snapshot
        The cluster.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._missing: dict[str, BoolArray] = {}
        self._versions = (-1, -1)

    def is_required(self, driver: str) -> bool:
        """Whether pods with volumes of a driver need a node with the driver."""
        found = self._snapshot.listers.csi_drivers.get(driver)
        return found is not None and bool(found.spec.prevent_pod_scheduling_if_missing)

    def missing(self, driver: str) -> BoolArray:
        """Return bool, (n,): rows whose CSINode does not list a driver, or that have no CSINode."""
        csi_nodes = self._snapshot.listers.csi_nodes
        seen = (csi_nodes.generation, self._snapshot.table.columns.structure)
        if seen != self._versions:
            self._versions = seen
            self._missing.clear()
        if driver not in self._missing:
            missing = (driver not in drivers_of(csi_nodes.get(n)) for n in self._snapshot.names)
            self._missing[driver] = np.fromiter(missing, np.bool_, self._snapshot.num_nodes)
        return self._missing[driver]


def drivers_of(csi_node: CSINode | None) -> frozenset[str]:
    """Return the drivers that a node has."""
    return frozenset() if csi_node is None else frozenset(d.name for d in csi_node.spec.drivers)


def installed_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue a pod with attachable volumes for a driver that came to a node."""
    before, after = (drivers_of(one if isinstance(one, CSINode) else None) for one in (old, new))
    return not after <= before and bool(read_volumes(waiting).attachable)


def driver_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue a pod with attachable volumes for a driver that no longer asks to be on the node."""
    before, after = (
        isinstance(one, CSIDriver) and bool(one.spec.prevent_pod_scheduling_if_missing)
        for one in (old, new)
    )
    return before and not after and bool(read_volumes(waiting).attachable)
