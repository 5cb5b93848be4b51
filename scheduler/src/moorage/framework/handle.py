"""The `Handle`: the narrow set of objects that a plugin may use, never the scheduler.

A plugin answers with statuses and scores. The handle offers the snapshot of the current attempt,
the interned reasons, its own random stream and, in the binding task only, the verbs of the API
client. Its other acts are in `effects`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from moorage.api.meta import ObjectMeta, ObjectReference
from moorage.api.resources import ResourceType
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.config.feature_gates import DEFAULT_GATES, FeatureGates
from moorage.config.own import GroupMode
from moorage.framework.effects import NoEffects, PluginEffects
from moorage.framework.loads.node_loads import LoadReports
from moorage.framework.preemption import EvictionsUnderWay, NoEvictions
from moorage.framework.status import ReasonTable
from moorage.snapshot.snapshot import Snapshot

STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"


class ObjectClient(Protocol):
    """Objects of any kind as plain JSON values, for writes that have no verb of their own.

    Only to be awaited where a plugin may wait: in the binding task, and in work given to
    `PluginEffects.in_background`. Objects are never written back whole: changes are sent as
    patches. Every verb raises ApiError when the server refuses (NotFoundError, ConflictError) and
    TransportError when it does not answer.
    """

    async def get(
        self, resource: ResourceType, name: str, *, namespace: str = ""
    ) -> dict[str, object]:
        """Read one object."""
        ...

    async def create(
        self, resource: ResourceType, obj: Mapping[str, object], *, namespace: str = ""
    ) -> dict[str, object]:
        """Create an object and return it as stored."""
        ...

    async def patch(
        self,
        resource: ResourceType,
        name: str,
        body: bytes,
        *,
        namespace: str = "",
        subresource: str = "",
        content_type: str = STRATEGIC_MERGE_PATCH,
    ) -> dict[str, object]:
        """Change an object, or a subresource, by a patch and return it as stored."""
        ...

    async def delete(
        self,
        resource: ResourceType,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        version: str = "",
    ) -> dict[str, object]:
        """Delete an object, with `uid` or `version` only while the object has these."""
        ...


class BindingClient(Protocol):
    """The verbs a plugin may await in the binding task."""

    @property
    def objects(self) -> ObjectClient:
        """The verbs for objects of any kind."""
        ...

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Bind a pod to a node.

        Raises
        ------
        ApiError
            The server refused.
        TransportError
            No answer; the pod may be bound nevertheless.
        """
        ...

    async def is_bound(self, namespace: str, name: str, uid: str, node_name: str) -> bool:
        """Whether a pod is on a node; for a bind that another program was asked to do.

        As long as the server does not answer, it is asked again. The pod's room is not given away
        meanwhile.
        """
        ...

    async def bind_volume(
        self, volume: ObjectMeta, claim: ObjectReference, *, annotations: Mapping[str, str]
    ) -> str:
        """Write a PersistentVolume's claimRef and annotations, at the version given.

        Parameters
        ----------
        volume
            Name and resourceVersion the decision was made from.
        claim
            The claimRef.
        annotations
            Annotations to set; other annotations stay.

        Returns
        -------
        str
            The new resourceVersion.

        Raises
        ------
        ApiError
            The server refused; ConflictError when the volume has changed.
        TransportError
            No answer.
        """
        ...

    async def annotate_claim(self, claim: ObjectMeta, annotations: Mapping[str, str]) -> str:
        """Set annotations of a PersistentVolumeClaim at the version given; as `bind_volume`."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep in the binding task."""
        ...

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether the API still shows a pod of this name."""
        ...


class Handle(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a plugin factory is given besides its arguments.

    Parameters
    ----------
    profile_name
        ``schedulerName`` of the profile the plugin belongs to.
    snapshot
        The cluster as columns; the same object for the life of the scheduler, its content
        stable during one synchronous attempt.
    reasons
        Where Filter plugins intern their reasons, once, at construction.
    clock, streams
        The only sources of time and randomness.
    client
        None where writes are impossible (conformance, benchmarks, what-if).
    evictions
        Tells for which pods evictions are under way.
    effects
        Pods waiting at Permit, pods to be tried again, Events.
    gates
        The feature gates.
    group_mode
        How the pods of a group get their nodes in this profile.
    group_orders
        Other orders in which the members of a group are tried before the group is rejected; None
        leaves the number to the group's source.
    complete_groups
        Whether places for unlike members are searched completely; None where other orders are
        tried.
    loads
        What nodes really use, by the source of metrics.
    """

    profile_name: str
    snapshot: Snapshot
    reasons: ReasonTable
    clock: Clock
    streams: Streams
    client: BindingClient | None = None
    evictions: EvictionsUnderWay = NoEvictions()
    effects: PluginEffects = NoEffects()
    gates: FeatureGates = DEFAULT_GATES
    group_mode: GroupMode = "trial"
    group_orders: int | None = None
    complete_groups: bool | None = None
    loads: LoadReports = msgspec.field(default_factory=LoadReports)
