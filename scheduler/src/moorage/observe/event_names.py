"""The names of cluster events in metrics, by the Kubernetes version.

Inside the scheduler the events have the names of v1.36 (`moorage.api.changes`). v1.37 has three
kinds of events of pods: of a pod with a node, of a pod without one, and of the waiting pod itself.
Only the last kind is an update of a pod without a node.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.api.changes import Action, Resource, action_name
from moorage.config.emulation import minor_of

_UPDATE = action_name(Action.UPDATE)


def event_names(version: str) -> Callable[[str], str]:
    """Return what gives a label of `ClusterEvent` its name in metrics.

    Parameters
    ----------
    version
        The emulated version, for example ``1.37``.

    Notes
    -----
    Kubernetes v1.37 ``kube-scheduler/framework/types.go`` EventResource.
    """
    return _since_1_37 if minor_of(version) >= 37 else _same


def _same(label: str) -> str:
    return label


def _since_1_37(label: str) -> str:
    action = label.removeprefix(Resource.UNSCHEDULABLE_POD)
    if action == label:
        return label
    return f"{'TargetPod' if action.startswith(_UPDATE) else 'UnscheduledPod'}{action}"
