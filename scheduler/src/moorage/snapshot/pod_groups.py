"""Pod groups as an attempt sees them: the members of a group, and how many have a place.

A `GroupSource` tells the group of a pod, and the demands of that group. The engine serves several
sources: an API object, a custom resource, labels. `PodGroups` counts the members of each state.
Service and cache move members as pods come, are assumed, bound and go, each in constant time; a
group attempt moves them in a trial.

            put (no node)            assume             put (with node)
    absent ---------------> waiting --------> assumed ----------------> assigned
                               ^--- forget -----'

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/backend/cache/podgroupstate.go``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping
from typing import Final, NamedTuple, Protocol

import msgspec

from moorage.api.pod import Pod
from moorage.base.no_names import NO_NAMES
from moorage.snapshot.sub_groups.parts import Parts

WAIT_SECONDS: Final = 300.0
"""Time for which a member with a place waits for the others at Permit (upstream: 5 minutes)."""


class GroupKey(NamedTuple):
    """Identity of a group. `source` keeps groups of one name apart, and so does `composite`.

    A composite group is a group of PodGroups of Kubernetes.
    """

    namespace: str
    name: str
    source: str = ""
    composite: bool = False

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
        The uid of the group's object; "" without an object.
    minimum
        How many members must have a place before any of them is bound; members that run already
        are counted. 1 means that they are placed one by one. Members that have succeeded are left
        out of it, though it stays 1 at least.
    succeeded
        How many members that have succeeded are left out of the minimum.
    gang
        Whether the minimum is enforced at all.
    priority
        The priority of the group as a whole, where it preempts or is preempted as a whole.
    topology_key
        Node label that must have one value for all members; "" for anywhere.
    preferred_topology_key
        Node label that has one value for all members where they fit so; "" for no preference.
    fault
        Why no member can be tried, however much room there is; "" for a group without fault.
    evicted_whole
        Whether evicting one member means evicting all.
    wait_seconds
        How long a member with a place is held at Permit for the others; 0 leaves it to the plugin.
    resources
        Resources that must be free in the cluster before any member is tried: name and amount, cpu
        in millicores, everything else in its own unit.
    created
        When the group's object was created, RFC 3339; "" without an object.
    parts
        The sub-groups, each with a minimum of its own; None for a group without sub-groups.
    """

    key: GroupKey
    uid: str = ""
    minimum: int = 1
    succeeded: int = 0
    gang: bool = False
    priority: int = 0
    topology_key: str = ""
    preferred_topology_key: str = ""
    fault: str = ""
    evicted_whole: bool = False
    wait_seconds: float = WAIT_SECONDS
    resources: tuple[tuple[str, int], ...] = ()
    created: str = ""
    parts: Parts | None = None

    @property
    def confined(self) -> bool:
        """Whether the group or a sub-group must stay in one topology domain."""
        return bool(self.topology_key) or (self.parts is not None and self.parts.confined)

    def topology_keys(self) -> Iterator[str]:
        """Yield the node labels that must have one value, for the group or for a sub-group."""
        if self.topology_key:
            yield self.topology_key
        if self.parts is not None:
            yield from self.parts.root.topology_keys()

    def missing(self, pods: Collection[Pod]) -> int:
        """Return how many more pods the group needs next to these, 0 for none."""
        missing = max(0, self.minimum - len(pods))
        return missing if self.parts is None else max(missing, self.parts.missing(pods))

    @property
    def declared_minimum(self) -> int:
        """The minimum as the group declares it."""
        return self.minimum + self.succeeded

    @property
    def succeeded_note(self) -> str:
        """For messages, after numbers that count the members that have succeeded."""
        return f", counting {self.succeeded} that succeeded" if self.succeeded else ""

    def share(self, number: int) -> str:
        """Return the share of so many members in the declared minimum, for messages."""
        return f"{number + self.succeeded} of {self.declared_minimum}"


class GroupSource(Protocol):
    """A group source: from pods to groups. Both methods are called often and must be cheap."""

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Return the key of a pod's group, which need not exist; None for a pod without a group.

        The answer depends on nothing but the pod, so that members can be counted before the group
        is known. Only for composite groups the objects count, too: see `PodGroups.regroup`.
        """
        ...

    def terms_of(self, key: GroupKey) -> GroupTerms | None:
        """Return the demands of a group, None while it does not exist."""
        ...


class NoGroups:
    """`GroupSource` without groups: every pod is on its own."""

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Return None."""
        del pod
        return None

    def terms_of(self, key: GroupKey) -> GroupTerms | None:
        """Return None."""
        del key
        return None


class GroupMembers:
    """The pods of one group, by uid and by state.

    Attributes
    ----------
    pods
        Every member. Each is in exactly one of waiting, assumed and assigned.
    waiting
        Members without a place.
    assumed
        Members with a chosen node that the API does not show yet.
    assigned
        Members that the API shows on a node.
    gated
        Members without a node that still have scheduling gates.
    first_ns, failed_ns
        When the first member was queued, and when the group last failed, wall-clock nanoseconds.
        Plugins that order the queue by these times write them; otherwise None.
    awaits_since_ns
        Since when the group waits for nominated pods only, monotonic nanoseconds; otherwise None.
    """

    __slots__ = (
        "_rejected",
        "assigned",
        "assumed",
        "awaits_since_ns",
        "failed_ns",
        "first_ns",
        "gated",
        "pods",
        "waiting",
    )

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.waiting: dict[str, None] = {}
        self.assumed: dict[str, None] = {}
        self.assigned: dict[str, None] = {}
        self.gated: dict[str, None] = {}
        self.first_ns: int | None = None
        self.failed_ns: int | None = None
        self.awaits_since_ns: int | None = None
        self._rejected: frozenset[str] = NO_NAMES

    @property
    def placed(self) -> int:
        """The number of members with a place."""
        return len(self.assumed) + len(self.assigned)

    def pods_missing(self, terms: GroupTerms, *, ready: bool = False) -> int:
        """Return how many more pods the group needs to exist, 0 for none.

        Parameters
        ----------
        terms
            The demands of the group.
        ready
            Whether pods with scheduling gates do not count.
        """
        if terms.parts is None:
            return max(0, terms.minimum - len(self.pods) + (len(self.gated) if ready else 0))
        pods = [pod for uid, pod in self.pods.items() if not ready or uid not in self.gated]
        return terms.missing(pods)

    def note_attempt(self, rejected: frozenset[str]) -> bool:
        """Note the members that an attempt of the whole group rejected, by uid; empty for none.

        Returns
        -------
        bool
            Whether the attempt before rejected the same members.
        """
        before, self._rejected = self._rejected, rejected
        return bool(rejected) and before == rejected

    def waiting_pods(self) -> list[Pod]:
        """Return the members without a place, in the order of arriving or losing a place."""
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

    def members_of(self, key: GroupKey) -> GroupMembers:
        """Return the members of a group, not to be changed; empty for an unknown group."""
        return self.get(key, _NOBODY)


class SucceededMembers:
    """The members that have succeeded: they ran, so their group has started.

    They count towards the minimum of their group: what is left of a group that has started may run
    on, and a replacement needs only its own room (kubernetes#142330 asks for it). Pods of an
    earlier group of the same name do not count.

    Parameters
    ----------
    members
        The members that have not ended.
    """

    def __init__(self, members: MembersByGroup) -> None:
        self._members = members
        self._key_of: dict[str, GroupKey] = {}
        self._pods: dict[GroupKey, dict[str, Pod]] = {}
        # Group -> when its object was created, and the number of its pods by the controller's uid.
        self._counts: dict[GroupKey, tuple[str, Counter[str]]] = {}

    def put_pod(self, pod: Pod, key: GroupKey) -> None:
        """Take in a pod that has succeeded."""
        self._key_of[pod.uid] = key
        self._pods.setdefault(key, {})[pod.uid] = pod
        self._counts.pop(key, None)

    def regroup(self, key: GroupKey, source: GroupSource) -> None:
        """Count the pods of a group where they belong now."""
        for uid, pod in list(self._pods.get(key, {}).items()):
            now = source.key_of(pod)
            if now is not None and now != key:
                self.remove_pod(uid)
                self.put_pod(pod, now)

    def remove_pod(self, uid: str) -> None:
        """Forget a pod that exists no more; an unknown pod is no error."""
        key = self._key_of.pop(uid, None)
        if key is None:
            return
        del self._pods[key][uid]
        if not self._pods[key]:
            del self._pods[key]
        self._counts.pop(key, None)

    def all_pods(self) -> dict[str, Pod]:
        """Return the members by uid."""
        return {uid: pod for pods in self._pods.values() for uid, pod in pods.items()}

    def missing(self, terms: GroupTerms) -> GroupTerms:
        """Return the demands of a group without the members that have succeeded.

        The minimum stays 1 at least.
        """
        if terms.key not in self._pods:
            return terms
        counts = self._counts_of_now(terms)
        count = min(sum(counts.values()), terms.minimum - 1)
        if count <= 0:
            return terms
        parts = terms.parts
        if parts is not None:
            pods = self._pods_since(terms)
            succeeded = parts.counts(pod for pod in pods if _controller_of(pod) in counts)
            parts = msgspec.structs.replace(parts, root=parts.root.without(succeeded))
        minimum = terms.minimum - count
        return msgspec.structs.replace(terms, minimum=minimum, succeeded=count, parts=parts)

    def _counts_of_now(self, terms: GroupTerms) -> dict[str, int]:
        """Count the pods that belong to the group as it is now, by the uid of their controller.

        A pod that is older than the group's object belonged to an earlier group. So did the pods of
        a controller that were enough for a whole group, if another controller makes the members
        now: each Job of a CronJob makes a group of the same name.
        """
        created, counts = self._counts.get(terms.key, ("", None))
        if counts is None or created != terms.created:
            counts = Counter(map(_controller_of, self._pods_since(terms)))
            self._counts[terms.key] = terms.created, counts
        first = next(iter(self._members.members_of(terms.key).pods.values()), None)
        now = "" if first is None else _controller_of(first)
        return {
            controller: number
            for controller, number in counts.items()
            if controller in {"", now} or number < terms.minimum
        }

    def _pods_since(self, terms: GroupTerms) -> Iterator[Pod]:
        """Yield the pods that are not older than the group's object."""
        for pod in self._pods[terms.key].values():
            if (pod.metadata.creation_timestamp or "") >= terms.created:
                yield pod


def _controller_of(pod: Pod) -> str:
    controller = pod.metadata.controller
    return "" if controller is None else controller.uid


class PodGroups:
    """The groups, and the state of each member.

    Parameters
    ----------
    source
        Tells the group of a pod; None where no pod has a group.
    members
        The members, empty; shared with a source that reads them, new when not given.
    succeeded
        The members that have succeeded, shared with a source that counts them.
    """

    def __init__(
        self,
        source: GroupSource | None = None,
        members: MembersByGroup | None = None,
        succeeded: SucceededMembers | None = None,
    ) -> None:
        self.source: GroupSource = NoGroups() if source is None else source
        self._groups = MembersByGroup() if members is None else members
        self.succeeded = SucceededMembers(self._groups) if succeeded is None else succeeded
        # uid -> the group the pod was counted in: labels may change, and so may the composite group
        # that a PodGroup is a part of, but membership is recorded
        # once.
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
        """Return the demands of a pod's group; None without a group, or without its object."""
        key = self.source.key_of(pod)
        return None if key is None else self.source.terms_of(key)

    def members(self, key: GroupKey) -> GroupMembers:
        """Return the members of a group, not to be changed; empty for an unknown group."""
        return self._groups.members_of(key)

    def missing(self, key: GroupKey) -> int:
        """Return how many members must have a place before any of them is bound; 1 at least."""
        terms = self.source.terms_of(key)
        return 1 if terms is None else max(1, self.missing_for(terms))

    def missing_for(self, terms: GroupTerms) -> int:
        """Return how many more members of a group need a place, 0 for a complete group."""
        members = self.members(terms.key)
        if terms.parts is None:
            return max(0, terms.minimum - members.placed)
        return terms.missing([members.pods[uid] for uid in members.placed_uids()])

    def all_groups(self) -> Mapping[GroupKey, GroupMembers]:
        """Return every group that has members."""
        return self._groups

    def has_any(self, uids: KeysView[str]) -> bool:
        """Whether any of some pods is a member of a group."""
        return not self._key_of.keys().isdisjoint(uids)

    # -- the states of a pod --------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> None:
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
        """Forget a pod; an unknown pod is no error."""
        key = self._key_of.pop(uid, None)
        if key is None:
            return
        group = self._groups[key]
        for place in (group.pods, group.waiting, group.assumed, group.assigned, group.gated):
            place.pop(uid, None)
        if not group.pods:
            del self._groups[key]

    def regroup(self, keys: Iterable[GroupKey]) -> None:
        """Move the members of some groups that are in another group now, with their states."""
        for key in keys:
            members = self._groups.members_of(key)
            for uid, pod in list(members.pods.items()):
                if self.source.key_of(pod) == key:
                    continue
                assumed = uid in members.assumed
                self.put_pod(pod)
                if assumed:
                    self.assume(uid)
            self.succeeded.regroup(key, self.source)

    def assume(self, uid: str) -> None:
        """Count a waiting pod as placed; a pod in any other state is unchanged."""
        key = self._key_of.get(uid)
        if key is not None and uid in (group := self._groups[key]).waiting:
            del group.waiting[uid]
            group.assumed[uid] = None

    def forget_pod(self, uid: str) -> None:
        """Take an assumption back; a pod in any other state is unchanged."""
        key = self._key_of.get(uid)
        if key is not None and uid in (group := self._groups[key]).assumed:
            del group.assumed[uid]
            group.waiting[uid] = None

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
