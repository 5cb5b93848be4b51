"""The parts of kube-controller-manager that a cluster needs.

``sandbox`` runs them next to its server; they work against any API server that has no
kube-controller-manager of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from moorage.controllers.cluster import MakePart
from moorage_sandbox.controllers import names
from moorage_sandbox.controllers.disruption import DisruptionController
from moorage_sandbox.controllers.volumes import VolumeControllers
from moorage_sandbox.controllers.workloads import WorkloadControllers


def parts_without(without: Collection[str]) -> Sequence[MakePart]:
    """Return the parts of a cluster in which another program plays some of the controllers.

    Parameters
    ----------
    without
        Names of these controllers, of ``names``.
    """
    own: dict[str, MakePart] = {
        names.VOLUMES: VolumeControllers,
        names.DISRUPTION: DisruptionController,
    }
    parts = [make for name, make in own.items() if name not in without]
    return (*parts, partial(WorkloadControllers, without=without))


ALL: Final = parts_without(())
"""The parts of a cluster that has nobody else to play its controllers."""
