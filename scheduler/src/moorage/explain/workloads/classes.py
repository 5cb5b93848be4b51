"""Classes of pending pods: one pod of each class is explained for all of them.

Pods of one class have equal specs, but for their own name, and failed for the same reason last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.service.core import Core
from moorage.state.pending import PendingPod

_OWN_NAME: Final = b"\0"
_DAEMON_SET: Final = "DaemonSet"


class PodClass(msgspec.Struct):
    """Pending pods that are explained by the first of them.

    Parameters
    ----------
    pods
        The pods, by name.
    message
        Why their last attempt failed; empty where none was made.
    plugins
        The plugins that rejected them then.
    """

    pods: list[Pod]
    message: str
    plugins: tuple[str, ...]

    @property
    def example(self) -> Pod:
        """The pod that is explained."""
        return self.pods[0]


def classes_of(core: Core, pods: Iterable[Pod]) -> list[PodClass]:
    """Return the classes of some pending pods, the largest first."""
    pending = core.queue.pending()
    queued = (*pending.active, *pending.backoff, *pending.unschedulable, *pending.gated)
    by_uid = {each.pod.uid: each for each in queued}
    classes: dict[tuple[object, ...], PodClass] = {}
    for pod in pods:
        message, plugins = _last_failure(pod, by_uid)
        key = (_signature(pod), core.snapshot.groups.key_of(pod), message)
        known = classes.get(key)
        if known is None:
            classes[key] = PodClass([pod], message, plugins)
        else:
            known.pods.append(pod)
    return sorted(classes.values(), key=lambda each: (-len(each.pods), each.example.key))


def _last_failure(pod: Pod, by_uid: Mapping[str, PendingPod]) -> tuple[str, tuple[str, ...]]:
    """Return why a pod's last attempt failed, by the queue or else by its condition."""
    own = by_uid.get(pod.uid)
    if own is not None and own.message:
        return own.message, own.unschedulable_plugins
    failure = pod.status.scheduling_failure
    return ("" if failure is None else failure.message), ()


def _signature(pod: Pod) -> tuple[object, ...]:
    """Return what pods of one class have in common: the owner, labels and the spec."""
    owner, spec = pod.metadata.controller, pod.spec
    if owner is not None and owner.kind == _DAEMON_SET:
        spec = msgspec.structs.replace(spec, affinity=None)  # it names the pod's one node
    text = msgspec.json.encode(spec).replace(pod.name.encode(), _OWN_NAME)
    if owner is None:
        return (pod.metadata.namespace, text, tuple(sorted(pod.metadata.labels.items())))
    return (pod.metadata.namespace, text, owner.kind, owner.name)
