"""Namespaces, services and the owners of pods, as read for namespace selectors and spread defaults.

Also the template-bearing kinds the sandbox's controllers act on, as far as their selectors go.
"""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from moorage.api.meta import ApiObject, ApiStruct, LabelSelector, ObjectMeta
from moorage.api.pod import PodSpec


class NamespaceStatus(ApiStruct, frozen=True, kw_only=True):
    """Active or Terminating."""

    phase: str = ""


class Namespace(ApiObject, frozen=True, kw_only=True):
    """core/v1 Namespace."""

    status: NamespaceStatus = NamespaceStatus()


class ServiceSpec(ApiStruct, frozen=True, kw_only=True):
    """A service's pods: a ``selector`` that is None or empty selects no pod."""

    selector: dict[str, str] | None = None
    type: str = ""
    cluster_ip: str = ""
    cluster_ips: list[str] = []


class Service(ApiObject, frozen=True, kw_only=True):
    """core/v1 Service."""

    spec: ServiceSpec = ServiceSpec()


class PodTemplateSpec(ApiStruct, frozen=True, kw_only=True):
    """The pod a controller makes copies of."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ReplicationControllerSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted copies; None means 1."""

    replicas: int | None = None
    selector: dict[str, str] | None = None
    template: PodTemplateSpec | None = None


class ReplicationController(ApiObject, frozen=True, kw_only=True):
    """core/v1 ReplicationController."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted copies; None means 1."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None


class ReplicaSet(ApiObject, frozen=True, kw_only=True):
    """apps/v1 ReplicaSet."""

    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted copies, each with a name of its own; None means 1."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    service_name: str = ""


class StatefulSet(ApiObject, frozen=True, kw_only=True):
    """apps/v1 StatefulSet."""

    spec: StatefulSetSpec = StatefulSetSpec()


class JobSpec(ApiStruct, frozen=True, kw_only=True):
    """The longest run of a Job, seconds from its start; None for no limit."""

    active_deadline_seconds: int | None = None


class JobStatus(ApiStruct, frozen=True, kw_only=True):
    """The start of a Job, RFC 3339; None before the start."""

    start_time: str | None = None


class Job(ApiObject, frozen=True, kw_only=True):
    """batch/v1 Job, as far as the end of its pods depends on it."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
