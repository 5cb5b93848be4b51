"""Makes pods small right after decoding: fields are dropped, and placed pods share equal parts.

Between the reflector's decoder and ingest. A cluster's pods are mostly replicas, so a pod with a
node is compared with the replica before it: the last pod with its namespace and ``generateName``.
What is equal is taken over. What differs between replicas and is read by nobody here is dropped:
volumes of kinds that no rule reads, and of a pod with a node the ids of its containers and the
times of most conditions. Extenders are sent the bytes of the API server.
"""

from __future__ import annotations

from itertools import zip_longest
from operator import attrgetter
from typing import Final

import msgspec

from moorage.api.meta import ApiStruct, Condition
from moorage.api.pod import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
)

_REPLICAS_MOST: Final = 2048  # a guess: of sets of replicas that are gone they take 16 MB
_TEXTS_MOST: Final = 20_000  # a guess: more than a cluster has nodes; two megabytes

_METADATA: Final = (
    "labels",
    "annotations",
    "owner_references",
    "finalizers",
    "generate_name",
    "namespace",
    "creation_timestamp",
)
_SPEC: Final = tuple(name for name in PodSpec.__struct_fields__ if name != "node_name")
_STATUS: Final = (
    "container_statuses",
    "init_container_statuses",
    "allocated_resources",
    "resource_claim_statuses",
    "phase",
    "start_time",
    "qos_class",
)
_condition_values: Final = attrgetter("type", "status", "reason", "message", "observed_generation")
_TIMED: Final = "PodScheduled"  # PreemptionToleration asks how long a pod has had its node
_RUNNING: Final = ContainerState(running=ContainerStateRunning())
_NO_POD: Final = Pod()

_set = msgspec.structs.force_setattr


class LeanPods:
    """Keeps equal parts of replicas once.

    The number of replicas that are remembered is bounded. When there are more, the memory of them
    begins anew: pods that come later share parts among themselves.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Pod] = {}
        self._texts: dict[str, str] = {}

    def trim(self, pod: Pod) -> None:
        """Make a pod small that has just been decoded and that nobody has seen."""
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        if spec.volumes:
            _set(spec, "volumes", [each for each in spec.volumes if _is_read(each)])
        if not spec.node_name:
            return  # its next version has a node; to share its parts would cost time on its way
        last = self._last_like(pod)
        for container in (*status.container_statuses, *status.init_container_statuses):
            _drop_ids(container)
        _set(spec, "node_name", self._text(spec.node_name))
        _set(status, "host_ip", self._text(status.host_ip))
        same = msgspec.structs.replace(last.spec, node_name=spec.node_name)
        if same == spec:
            _set(pod, "spec", same)
        else:
            _share(spec, last.spec, _SPEC)
        _share(metadata, last.metadata, _METADATA)
        _share(status, last.status, _STATUS)
        _set(status, "conditions", _conditions(status, last.status))

    def _last_like(self, pod: Pod) -> Pod:
        """Return the replica before a pod, and remember the pod instead."""
        if len(self._last) >= _REPLICAS_MOST:
            self._last.clear()
        made_as = pod.metadata.namespace, pod.metadata.generate_name
        last = self._last.get(made_as, _NO_POD)
        self._last[made_as] = pod
        return last

    def _text(self, text: str) -> str:
        if len(self._texts) >= _TEXTS_MOST:
            self._texts.clear()
        return self._texts.setdefault(text, text)


def trim_succeeded(pod: Pod) -> None:
    """Leave of a pod that has succeeded only what says its group."""
    spec = PodSpec(
        scheduler_name=pod.spec.scheduler_name, scheduling_group=pod.spec.scheduling_group
    )
    _set(pod, "spec", spec)
    _set(pod, "status", PodStatus(phase=pod.status.phase))


def _share(part: ApiStruct, last: ApiStruct, fields: tuple[str, ...]) -> None:
    """Take over the fields that are equal to those of another part."""
    for name in fields:
        value, known = getattr(part, name), getattr(last, name)
        if value == known and value is not known:
            _set(part, name, known)


def _conditions(status: PodStatus, last: PodStatus) -> list[Condition]:
    """Return the conditions without most times, those of another pod where they are equal."""
    conditions = []
    for each, known in zip_longest(status.conditions, last.conditions[: len(status.conditions)]):
        if each.type == _TIMED:
            conditions.append(known if each == known else each)
        elif known is not None and _condition_values(each) == _condition_values(known):
            conditions.append(known)
        else:
            for name in ("last_probe_time", "last_transition_time", "last_heartbeat_time"):
                _set(each, name, None)
            conditions.append(each)
    return conditions


def _is_read(volume: Volume) -> bool:
    """Whether any rule reads the source of a volume."""
    return volume != Volume(name=volume.name)


def _drop_ids(container: ContainerStatus) -> None:
    _set(container, "image_id", "")
    _set(container, "container_id", "")
    if container.state is not None and container.state.running is not None:
        _set(container, "state", _RUNNING)
