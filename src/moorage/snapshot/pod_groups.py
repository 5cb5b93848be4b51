"""Pod groups as an attempt sees them: which pods belong together, and how many have a place.

Two things meet here. A `GroupSource` says for a pod which group it belongs to, and the demands of
that group. The engine serves several sources: an API object, a custom resource, labels.
`PodGroups` counts the members of each state. Service and cache move members as pods come, are
assumed, bound and go, each in constant time; a group attempt moves them in a trial.

            put (no node)            assume             put (with node)
    absent ---------------> waiting --------> assumed ----------------> assigned
                               ^--- forget -----'

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/backend/cache/podgroupstate.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

import msgspec

from moorage.api.pod import Pod

WAIT_SECONDS: Final = 300.0
"""How long a member with a place waits for the others at Permit (upstream: 5 minutes)."""


class GroupKey(NamedTuple):
    """Identity of a group. `source` keeps groups of one name apart."""

    namespace: str
    name: str
    source: str = ""

    @property
    def full_name(self) -> str:
        """``namespace/name``, for messages."""
        return f"{self.namespace}/{self.name}"


class GroupTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The demands of a group.

    Parameters
    ----------
    key
        The group.
    uid
        Of the object behind it; "" where there is none.
    minimum
        How many members must have a place before any of them is bound; members that run already
        are counted. 1 means that they are placed one by one.
    gang
        Whether the minimum is enforced at all.
    priority
        Of the group as a whole, where it preempts or is preempted as a whole.
    topology_key
        Node label in one value of which all members must be; "" for anywhere.
    evicted_whole
        Whether evicting one member means evicting all.
    wait_seconds
        How long a member with a place is held at Permit for the others; 0 leaves it to the plugin.
    resources
        What must be free in the cluster before any member is tried: name and amount, cpu in
        millicores, everything else in its own unit.
    created
        When the object behind it was created, RFC 3339; "" where there is none.
    """

    key: GroupKey
    uid: str = ""
    minimum: int = 1
    gang: bool = False
    priority: int = 0
    topology_key: str = ""
    evicted_whole: bool = False
    wait_seconds: float = WAIT_SECONDS
    resources: tuple[tuple[str, int], ...] = ()
    created: str = ""


class GroupSource(Protocol):
    """A group source: from pods to groups. Both questions are asked often and must be cheap."""

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Return the group a pod belongs to, whether that exists or not; None for none.

        Depends on nothing but the pod, so that members can be counted before the group is known.
        """
        ...

    def terms_of(self, key: GroupKey) -> GroupTerms | None:
        """Return what a group demands, None while it does not exist."""
        ...


class NoGroups:
    """`GroupSource` where there are no groups: every pod is for itself."""

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Answer none."""
        del pod
        return None

    def terms_of(self, key: GroupKey) -> GroupTerms | None:
        """Answer none."""
        del key
        return None


class GroupMembers:
    """The pods of one group, by uid, by where they stand.

    Attributes
    ----------
    pods
        Every member. Each is in exactly one of waiting, assumed and assigned.
    waiting
        Without a place.
    assumed
        A node was chosen, the API does not know yet.
    assigned
        The API shows them on a node.
    gated
        Members without a node that still have scheduling gates.
    first_ns, failed_ns
        When the first of them was queued, and when the group failed last, wall-clock nanoseconds;
        noted by plugins that order the queue by it, None where nobody does.
    """

    __slots__ = ("assigned", "assumed", "failed_ns", "first_ns", "gated", "pods", "waiting")

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.waiting: dict[str, None] = {}
        self.assumed: dict[str, None] = {}
        self.assigned: dict[str, None] = {}
        self.gated: dict[str, None] = {}
        self.first_ns: int | None = None
        self.failed_ns: int | None = None

    @property
    def placed(self) -> int:
        """How many have a place."""
        return len(self.assumed) + len(self.assigned)

    def waiting_pods(self) -> list[Pod]:
        """Return the members without a place, in the order in which they lost or never had one."""
        return [self.pods[uid] for uid in self.waiting]

    def assumed_pods(self) -> list[Pod]:
        """Return the assumed members, in the order of assuming."""
        return [self.pods[uid] for uid in self.assumed]

    def placed_uids(self) -> list[str]:
        """Return the uids of members with a place: the assigned ones, then the assumed."""
        return [*self.assigned, *self.assumed]


_NOBODY: Final = GroupMembers()


class MembersByGroup(dict[GroupKey, GroupMembers]):
    """The members of every group; `PodGroups` writes them, and a `GroupSource` may read them."""

    def of(self, key: GroupKey) -> GroupMembers:
        """Return the members of a group, not to be changed; nobody where none is known."""
        return self.get(key, _NOBODY)


class PodGroups:
    """The groups, and where each of their members stands.

    Parameters
    ----------
    source
        Says which group a pod belongs to; None where no pod belongs to one.
    members
        The members, empty; shared with a source that reads them, new when not given.
    """

    def __init__(
        self, source: GroupSource | None = None, members: MembersByGroup | None = None
    ) -> None:
        self.source: GroupSource = NoGroups() if source is None else source
        self._groups = MembersByGroup() if members is None else members
        # uid -> the group the pod was counted in: labels may change, membership is booked once.
        self._key_of: dict[str, GroupKey] = {}

    @property
    def has_source(self) -> bool:
        """Whether any pod can be in a group."""
        return not isinstance(self.source, NoGroups)

    # -- looking -------------------------------------------------------------------------------

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Return the group of a pod, None for a pod on its own."""
        return self.source.key_of(pod)

    def terms_of(self, pod: Pod) -> GroupTerms | None:
        """Return what the group of a pod demands; None without a group, or while it is missing."""
        key = self.source.key_of(pod)
        return None if key is None else self.source.terms_of(key)

    def members(self, key: GroupKey) -> GroupMembers:
        """Return the members of a group, not to be changed; nobody where none is known."""
        return self._groups.of(key)

    def all(self) -> Mapping[GroupKey, GroupMembers]:
        """Return every group that has members."""
        return self._groups

    # -- the states of a pod --------------------------------------------------------------------

    def put(self, pod: Pod) -> None:
        """Take in a pod, or a newer version of it."""
        key = self.source.key_of(pod)
        before = self._key_of.get(pod.metadata.uid)
        if before is not None and before != key:
            self.remove(pod.uid)
        if key is None:
            return
        self._key_of[pod.uid] = key
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = GroupMembers()
        group.pods[pod.uid] = pod
        if pod.spec.scheduling_gates and not pod.spec.node_name:
            group.gated[pod.uid] = None
        else:
            group.gated.pop(pod.uid, None)
        if pod.spec.node_name:
            group.waiting.pop(pod.uid, None)
            group.assumed.pop(pod.uid, None)
            group.assigned[pod.uid] = None
        elif pod.uid not in group.assumed and pod.uid not in group.assigned:
            group.waiting[pod.uid] = None

    def remove(self, uid: str) -> None:
        """Forget a pod; one that is not known is no error."""
        key = self._key_of.pop(uid, None)
        if key is None:
            return
        group = self._groups[key]
        for place in (group.pods, group.waiting, group.assumed, group.assigned, group.gated):
            place.pop(uid, None)
        if not group.pods:
            del self._groups[key]

    def assume(self, uid: str) -> None:
        """Count a waiting pod as placed; anything else stays as it is."""
        group = self._group_of(uid)
        if group is not None and uid in group.waiting:
            del group.waiting[uid]
            group.assumed[uid] = None

    def forget(self, uid: str) -> None:
        """Take an assumption back; anything else stays as it is."""
        group = self._group_of(uid)
        if group is not None and uid in group.assumed:
            del group.assumed[uid]
            group.waiting[uid] = None

    def _group_of(self, uid: str) -> GroupMembers | None:
        key = self._key_of.get(uid)
        return None if key is None else self._groups[key]

    def validate(self) -> None:
        """Check every invariant; for tests.

        Raises
        ------
        AssertionError
            Some invariant does not hold.
        """
        booked = {uid: key for key, group in self._groups.items() for uid in group.pods}
        assert booked == self._key_of, "members are booked in another group"
        for key, group in self._groups.items():
            places = [*group.waiting, *group.assumed, *group.assigned]
            assert sorted(places) == sorted(group.pods), f"{key}: {places} of {[*group.pods]}"
            assert group.pods, f"{key} is kept without members"
            gated = [
                uid
                for uid, pod in group.pods.items()
                if pod.spec.scheduling_gates and not pod.spec.node_name
            ]
            assert sorted(group.gated) == sorted(gated), f"{key}: gated are {gated}"
