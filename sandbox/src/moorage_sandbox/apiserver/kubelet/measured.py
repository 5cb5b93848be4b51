"""Amounts that stored pods use, by container: the numbers behind ``metrics.k8s.io``.

Only a few fields of a pod are decoded, because all pods of a cluster may be asked for at once.
"""

from __future__ import annotations

from moorage.api.codec import decode
from moorage.api.meta import ApiStruct, ResourceList
from moorage.api.usage import MEASURED, Measured, container_usage
from moorage_sandbox.storage.record import Record

Usage = dict[Measured, int]
"""Resource to nano units."""


class _Meta(ApiStruct, frozen=True, kw_only=True):
    annotations: dict[str, str] = {}  # noqa: RUF012  (the codec library copies it)


class _Resources(ApiStruct, frozen=True, kw_only=True):
    requests: ResourceList = {}  # noqa: RUF012


class _Container(ApiStruct, frozen=True, kw_only=True):
    name: str = ""
    resources: _Resources = _Resources()


class _Spec(ApiStruct, frozen=True, kw_only=True):
    init_containers: list[_Container] = []  # noqa: RUF012
    containers: list[_Container] = []  # noqa: RUF012


class _Running(ApiStruct, frozen=True, kw_only=True):
    pass


class _State(ApiStruct, frozen=True, kw_only=True):
    running: _Running | None = None


class _ContainerStatus(ApiStruct, frozen=True, kw_only=True):
    name: str = ""
    state: _State = _State()


class _Status(ApiStruct, frozen=True, kw_only=True):
    init_container_statuses: list[_ContainerStatus] = []  # noqa: RUF012
    container_statuses: list[_ContainerStatus] = []  # noqa: RUF012


class _Pod(ApiStruct, frozen=True, kw_only=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def pod_usage(record: Record) -> dict[str, Usage] | None:
    """Return what each running container of a pod uses, by name; None where no container runs."""
    if record.fields.get("status.phase") not in ("Pending", "Running"):
        return None
    pod = decode(_Pod, record.data)
    status = pod.status
    running = {
        each.name
        for each in (*status.init_container_statuses, *status.container_statuses)
        if each.state.running is not None
    }
    usages = {
        each.name: _usage(pod, each)
        for each in (*pod.spec.containers, *pod.spec.init_containers)
        if each.name in running
    }
    return usages or None


def added(usages: list[Usage]) -> Usage:
    """Return the sum of usages."""
    return {resource: sum(each[resource] for each in usages) for resource in MEASURED}


def _usage(pod: _Pod, container: _Container) -> Usage:
    told, requests = pod.metadata.annotations, container.resources.requests
    return {
        resource: container_usage(told, container.name, requests, resource) for resource in MEASURED
    }
