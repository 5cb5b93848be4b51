"""The answers as they go over the wire; `moorage.cli` reads them with the same types."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from moorage.api.mentions import NodeName, Prose, SubjectNamespace
from moorage.service.questions.folding.folds import Fold
from moorage.service.questions.question import Answer

Queue = Literal["active", "in-flight", "backoff", "unschedulable", "gated", "permit", "binding"]
"""The place of a pod between the API and its node."""


class WakingEvents(msgspec.Struct, frozen=True, rename="camel"):
    """The cluster events after which a plugin lets a waiting pod be tried again.

    Parameters
    ----------
    plugin
        The plugin that rejected the pod; empty where any event wakes the pod.
    events
        Labels of the events, as metrics spell them; ``*All`` stands for any event.
    """

    plugin: str
    events: tuple[str, ...]


class QueuedPod(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pod that waits, or that is on its way to its node.

    Parameters
    ----------
    queue
        active, backoff, unschedulable or gated: the sub-queue. in-flight: an attempt decides about
        the pod. permit: a Permit plugin holds the pod. binding: the pod is being bound.
    namespace, name, uid
        The pod.
    scheduler_name
        The profile that schedules the pod.
    priority
        The pod's priority.
    attempts
        How often the pod was tried; absent while an attempt or a binding has the pod.
    since
        When the pod arrived or last came back to the queue; for permit and binding, when that
        began. RFC 3339 with microseconds.
    first_queued
        When the pod first entered activeQ; empty for a pod that never did.
    position
        active only: 1 for the pod that is tried next.
    until
        backoff: the end of the backoff. unschedulable: the pod is tried again soon after this
        moment even if no event wakes it. permit: the earliest end of a plugin's wait. Otherwise
        empty.
    seconds_left
        The seconds from the time of the answer to `until`, not below 0.
    may_be_early
        backoff only: whether the pod may be tried before `until`, if no pod is active.
    plugins
        backoff, unschedulable: the plugins that rejected the pod. gated: the PreEnqueue plugin.
        permit: the plugins that have not allowed the pod.
    message
        Why the pod waits: the text of its last failed attempt, or the gating plugin's reasons.
    woken_by
        unschedulable, gated: the events that may wake the pod.
    reason
        The code of the reason, of the closed vocabulary.
    owner
        ``kind/name`` of the pod's owner; absent for none.
    node
        permit, binding: the node. Otherwise the node that the pod is nominated for, if any.
    group
        ``namespace/name`` of the pod's group.
    step
        binding only: PreBind while its plugins prepare, otherwise Bind.
    """

    queue: Queue
    namespace: SubjectNamespace
    name: str
    uid: str
    scheduler_name: str = ""
    priority: int = 0
    attempts: int | None = None
    since: str = ""
    first_queued: str = ""
    position: int | None = None
    until: str = ""
    seconds_left: float | None = None
    may_be_early: bool = False
    plugins: tuple[str, ...] = ()
    message: Prose = ""
    reason: str = ""
    owner: str = ""
    woken_by: tuple[WakingEvents, ...] = ()
    node: NodeName = ""
    group: str = ""
    step: str = ""


class QueuedGroup(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod group of which not every member is bound, or that no plugin schedules as a group.

    Parameters
    ----------
    namespace, name
        The group.
    source
        Where the group is defined: empty for the API's PodGroup.
    minimum
        How many members must have a place before any member is bound; null while the group's
        object does not exist, and where no plugin schedules the group.
    succeeded
        How many members that have succeeded count towards the minimum; they are not members.
    members
        The members that exist.
    placed
        The members with a place: bound, or assumed on a node.
    waiting, gated
        The members without a place, and how many of these have scheduling gates.
    at_permit
        The members that Permit plugins hold.
    message
        What the group lacks before it can be tried, or else why its last attempt failed, or that
        members have succeeded; empty for nothing.
    reason
        The code of the message; empty where it says why nobody waits.
    """

    counted_as: ClassVar[str] = "group"

    namespace: SubjectNamespace
    name: str
    source: str
    minimum: int | None
    succeeded: int = 0
    members: int
    placed: int
    waiting: int
    gated: int
    at_permit: int
    message: Prose
    reason: str = ""


class QueueSizes(msgspec.Struct, frozen=True, kw_only=True, rename={"in_flight": "in-flight"}):
    """The number of pods in each place, whether listed or not.

    Parameters
    ----------
    active, in_flight, backoff, unschedulable, gated, permit, binding
        As `QueuedPod.queue` names the places.
    """

    active: int
    in_flight: int
    backoff: int
    unschedulable: int
    gated: int
    permit: int
    binding: int


class QueueAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The pods that wait, where and until when.

    Parameters
    ----------
    sizes
        The number of pods in each place.
    pods
        The first pods of each place: active in the order in which they will be tried, backoff by
        the end of the backoff, every other place in the order of arrival.
    groups
        The pod groups of which not every member is bound, by name; then those that no plugin
        schedules.
    folds
        With ``by``: the pods with those that wait alike as one row, instead of `pods`.
    rows_left, pods_left
        How many rows are left out, and the pods of these rows.
    """

    kind: str = "SchedulingQueue"
    sizes: QueueSizes
    pods: tuple[QueuedPod, ...]
    groups: tuple[QueuedGroup, ...]
    folds: tuple[Fold, ...] = ()
    rows_left: int = 0
    pods_left: int = 0
