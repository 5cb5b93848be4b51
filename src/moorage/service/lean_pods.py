"""Makes pods small right after decoding: fields are dropped, and placed pods share equal parts.

Between the reflector's decoder and ingest. A cluster's pods are mostly replicas, so containers,
tolerations, labels and names repeat thousands of times. What differs between replicas and is read
by nobody here is dropped: volumes of kinds that no rule reads, and of a pod with a node the ids of
its containers and the times of most conditions. Extenders are sent the bytes of the API server.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api.codec import encode
from moorage.api.meta import ApiStruct, Condition
from moorage.api.pod import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodStatus,
    Volume,
)

_KNOWN_MOST: Final = 20_000  # distinct values; a guess: ten megabytes at most

_METADATA: Final = ("labels", "annotations", "owner_references", "finalizers")
_SPEC: Final = (
    "containers",
    "init_containers",
    "volumes",
    "node_selector",
    "affinity",
    "tolerations",
    "topology_spread_constraints",
    "scheduling_gates",
    "overhead",
    "resources",
    "resource_claims",
    "readiness_gates",
)
_STATUS: Final = (
    "container_statuses",
    "init_container_statuses",
    "allocated_resources",
    "resource_claim_statuses",
)
_TEXTS: Final = (
    ("metadata", ("generate_name", "namespace", "creation_timestamp")),
    (
        "spec",
        (
            "node_name",
            "priority_class_name",
            "preemption_policy",
            "scheduler_name",
            "service_account_name",
            "restart_policy",
        ),
    ),
    ("status", ("phase", "host_ip", "start_time", "qos_class")),
)
_TIMED: Final = "PodScheduled"  # PreemptionToleration asks how long a pod has had its node
_RUNNING: Final = ContainerState(running=ContainerStateRunning())

_EMPTY: Final[dict[type, Any]] = {list: [], dict: {}}
_set = msgspec.structs.force_setattr


class LeanPods:
    """Keeps equal parts of pods once.

    The number of parts that are remembered is bounded. When there are more, the memory of them
    begins anew: pods that come later share parts among themselves.
    """

    def __init__(self) -> None:
        self._parts: dict[tuple[str, bytes], Any] = {}
        self._texts: dict[str, str] = {}

    def trim(self, pod: Pod) -> None:
        """Make a pod small that has just been decoded and that nobody has seen."""
        for known in (self._parts, self._texts):
            if len(known) > _KNOWN_MOST:
                known.clear()
        if pod.spec.volumes:
            _set(pod.spec, "volumes", [each for each in pod.spec.volumes if _is_read(each)])
        if not pod.spec.node_name:
            return  # its next version has a node; to share its parts would cost time on its way
        _drop_what_nobody_reads(pod.status)
        self._share(pod.metadata, _METADATA)
        self._share(pod.spec, _SPEC)
        self._share(pod.status, _STATUS)
        if pod.status.conditions:
            shared = [self._part("condition", each) for each in pod.status.conditions]
            _set(pod.status, "conditions", shared)
        for name, fields in _TEXTS:
            part = getattr(pod, name)
            for field in fields:
                text = getattr(part, field)
                if text:
                    _set(part, field, self._texts.setdefault(text, text))

    def _share(self, owner: ApiStruct, fields: tuple[str, ...]) -> None:
        for field in fields:
            value = getattr(owner, field)
            if value is not None:
                _set(owner, field, self._part(field, value) if value else _EMPTY[type(value)])

    def _part(self, field: str, value: Any) -> Any:
        return self._parts.setdefault((field, encode(value)), value)


def _is_read(volume: Volume) -> bool:
    """Whether any rule reads the source of a volume."""
    return volume != Volume(name=volume.name)


def _drop_what_nobody_reads(status: PodStatus) -> None:
    """Drop what differs between running replicas: ids and times."""
    if status.conditions:
        _set(status, "conditions", [_without_times(each) for each in status.conditions])
    for field in ("container_statuses", "init_container_statuses"):
        for container in getattr(status, field):
            _drop_ids(container)


def _without_times(condition: Condition) -> Condition:
    if condition.type != _TIMED:
        for field in ("last_probe_time", "last_transition_time", "last_heartbeat_time"):
            _set(condition, field, None)
    return condition


def _drop_ids(container: ContainerStatus) -> None:
    _set(container, "image_id", "")
    _set(container, "container_id", "")
    if container.state is not None and container.state.running is not None:
        _set(container, "state", _RUNNING)
