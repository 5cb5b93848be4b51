"""Whether a toleration accepts a taint of a node or of a device.

Used by TaintToleration, NodeUnschedulable, spreading and the allocation of devices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from moorage.api.devices import DeviceTaint, DeviceToleration
from moorage.api.node import Taint
from moorage.api.pod import Toleration

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

SCHEDULING_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)
"""The effects that keep a pod off a node."""


def tolerates(toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint) -> bool:
    """Whether one toleration accepts one taint.

    Notes
    -----
    kubernetes v1.36 ``api/core/v1/toleration.go``, with the comparison operators Lt and Gt off as
    they are by default: an operator that is not known accepts nothing. An empty key with operator
    Equal accepts any key whose value is equal; validation normally forbids that, the rule does not.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def tolerated(
    taint: Taint | DeviceTaint, tolerations: Iterable[Toleration | DeviceToleration]
) -> bool:
    """Whether any of the tolerations accepts the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def find_untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]
) -> Taint | None:
    """Return the first taint that has one of the effects and that no toleration accepts."""
    for taint in taints:
        if taint.effect in effects and not tolerated(taint, tolerations):
            return taint
    return None
