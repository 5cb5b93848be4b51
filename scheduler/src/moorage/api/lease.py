"""coordination.k8s.io/v1 Lease: node heartbeats and leader election."""

from __future__ import annotations

from moorage.api.meta import ApiObject, ApiStruct


class LeaseSpec(ApiStruct, frozen=True, kw_only=True):
    """The holder of a lease, and the end of its term; times have microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ApiObject, frozen=True, kw_only=True):
    """coordination.k8s.io/v1 Lease."""

    spec: LeaseSpec = LeaseSpec()
