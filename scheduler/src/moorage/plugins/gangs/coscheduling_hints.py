"""Events that may cure a rejection by Coscheduling, and the pods that each event concerns.

The plugin rejects a pod for its group: members are missing, the PodGroup is missing, or the cluster
has too little room for ``minResources``. In mode ``permit`` the plugin also rejects members that
waited for a group that did not get enough nodes. These wait for room, like the member without one.

Rules mirrored: scheduler-plugins ``pkg/coscheduling`` EventsToRegister. The hints are moorage's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.coscheduling import CoschedulingGroup
from moorage.api.pod import Pod
from moorage.framework.points import EventRegistration
from moorage.plugins.pod_hints import holds_place
from moorage.snapshot.group_labels import CUSTOM_SOURCE
from moorage.snapshot.pod_groups import GroupKey, GroupMembers
from moorage.snapshot.snapshot import Snapshot

_POD_ROOM = Action.DELETE | Action.UPDATE_POD_SCALE_DOWN
_NODE_ROOM = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
_NODE_OPENED = Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT


class GroupHints:
    """The hints of the plugin.

    Parameters
    ----------
    snapshot
        The members of each group.
    waits
        Whether members wait at Permit (mode ``permit``).
    """

    def __init__(self, snapshot: Snapshot, *, waits: bool) -> None:
        self._groups = snapshot.groups
        self._waits = waits

    def registrations(self) -> Sequence[EventRegistration]:
        """Register new members, new groups, and more room."""
        pod_added = ClusterEvent(Resource.POD, Action.ADD)
        pod_room = ClusterEvent(Resource.POD, _POD_ROOM)
        # Room on a node that was closed to pods counts for members that waited. The sums that
        # minResources is compared with do not depend on labels and taints.
        opened = _NODE_OPENED if self._waits else Action(0)
        node = ClusterEvent(Resource.NODE, _NODE_ROOM | opened)
        group = ClusterEvent(Resource.COSCHEDULING_GROUP, Action.ADD | Action.UPDATE)
        return (
            EventRegistration(pod_added, self._member_hint, self._joined_by),
            EventRegistration(group, self._group_hint),
            EventRegistration(pod_room, self._room_hint, self._in_want_of_room),
            EventRegistration(node, self._room_hint, self._in_want_of_room),
        )

    # -- new members and groups ----------------------------------------------------------------

    def _member_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Queue for a pod of the same group, if the group has enough members by that pod."""
        del old
        if not isinstance(new, Pod):
            return True
        key = self._groups.key_of(waiting)
        return key is not None and self._groups.key_of(new) == key and self._is_completed(key, new)

    def _joined_by(self, old: object | None, new: object | None) -> Sequence[Pod] | None:
        """Return the pods for which `_member_hint` queues: the members of the pod's group."""
        del old
        if not isinstance(new, Pod):
            return None
        key = self._groups.key_of(new)
        if key is None or not self._is_completed(key, new):
            return ()
        return self._groups.members(key).waiting_pods()

    def _is_completed(self, key: GroupKey, new: Pod) -> bool:
        """Return whether a group has enough members, and not without a new member.

        In mode ``permit`` a further member is tried by itself, and activates the others if it gets
        a node. Pods in flight learn of several new members at once, so the order of the members
        decides. In mode ``trial`` a member is tried together with the others.
        """
        terms, members = self._groups.source.terms_of(key), self._groups.members(key)
        if terms is None:
            return True
        if members.pods_missing(terms):
            return False
        if terms.parts is not None:
            return True  # which member completed the group depends on its sub-group
        # A gated member leaves the group short, but the others have to say that it is gated.
        ready = (uid for uid in members.pods if uid not in members.gated)
        first = (islice(pods, terms.minimum) for pods in (members.pods, ready))
        return not self._waits or new.uid in chain.from_iterable(first)

    def _group_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Queue for the pod's own group."""
        del old
        if not isinstance(new, CoschedulingGroup):
            return True
        key = GroupKey(new.metadata.namespace, new.metadata.name, CUSTOM_SOURCE)
        return self._groups.key_of(waiting) == key

    # -- more room -----------------------------------------------------------------------------

    def _room_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Queue if the pod's group wants room that another pod or a node gives."""
        key = self._groups.key_of(waiting)
        if key is None or not key.source or not _frees_room(old, new):
            return False
        return self._wants_room(key, self._groups.members(key), self._key_of_owner(old, new))

    def _in_want_of_room(self, old: object | None, new: object | None) -> Sequence[Pod]:
        """Return the pods for which `_room_hint` queues; the cost grows with groups, not pods."""
        if not _frees_room(old, new):
            return ()
        owner = self._key_of_owner(old, new)
        found: list[Pod] = []
        for key, members in self._groups.all_groups().items():
            if key.source and members.waiting and self._wants_room(key, members, owner):
                found += members.waiting_pods()
        return found

    def _wants_room(self, key: GroupKey, members: GroupMembers, owner: GroupKey | None) -> bool:
        terms = self._groups.source.terms_of(key)
        if terms is None:
            return False
        if terms.resources:
            return True
        # Room that the group gave back itself is no news: its members would wait in vain again.
        complete = not members.pods_missing(terms, ready=True)
        return self._waits and complete and key != owner

    def _key_of_owner(self, old: object | None, new: object | None) -> GroupKey | None:
        """Return the group of the pod whose room an event is about."""
        pod = old if new is None else new
        return self._groups.key_of(pod) if isinstance(pod, Pod) else None


def _frees_room(old: object | None, new: object | None) -> bool:
    """Whether an event is about room: a pod without a node had none."""
    if not isinstance(old, Pod):
        return True
    return holds_place(old if not isinstance(new, Pod) else new)
