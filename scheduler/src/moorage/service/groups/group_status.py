"""Writes a group's own status: its condition, ``PodGroupScheduled`` in 1.36.

A composite group of 1.37 has a condition of its own, and so has each group below it.

Rules: scheduling spec, gang section A4 number 6, and core api section 4.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, TypeAlias

import msgspec

from moorage.api.codec import encode
from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.meta import Condition, ObjectMeta, ObjectReference
from moorage.api.pod import Pod
from moorage.api.pod_group import CompositePodGroup, PodGroup
from moorage.api.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, ResourceType
from moorage.base.clock import Clock, rfc3339
from moorage.base.errors import MoorageError
from moorage.client.event_series import EventNote, shorten
from moorage.client.events import EventRecorder
from moorage.client.pod_status import with_condition
from moorage.client.writes import Client
from moorage.config.gate_table import V1_36, V1_37
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.framework.status import Status
from moorage.service.attempts.failure import failed_scheduling
from moorage.service.binding.pod_writes import PodWrites, reference, sendable
from moorage.snapshot.group_labels import CUSTOM_SOURCE
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

_log = logging.getLogger(__name__)

CONDITIONS: Final = {V1_36: "PodGroupScheduled", V1_37: "PodGroupInitiallyScheduled"}
"""The type of a group's condition, by the emulated version."""
COMPOSITE_CONDITION: Final = "CompositePodGroupInitiallyScheduled"
_Group: TypeAlias = PodGroup | CompositePodGroup
_POD_SCHEDULED: Final = "PodScheduled"
_AT_PERMIT: Final = "the pod has a node, and waits until enough members of group {} have a place"
_FORGET_MIN: Final = 64  # groups deleted are not looked for before; a guess


def condition_after(
    decision: GroupDecision,
    before: Sequence[Condition],
    *,
    message: str = "",
    generation: int = 0,
    type_: str = CONDITIONS[V1_36],
) -> Condition | None:
    """Return the condition to write after an attempt; None where it stays as it is.

    A group that was scheduled once stays scheduled, whatever happens to later members.

    Parameters
    ----------
    decision
        The outcome of the attempt.
    before
        The conditions the group has.
    message
        Why the group is not scheduled; "" for the status of the attempt alone.
    generation
        The group's generation, for ``observedGeneration``.
    type_
        The type of the condition.
    """
    if decision.outcome is GroupOutcome.PLACED:
        now = Condition(
            type=type_, status="True", reason="Scheduled", observed_generation=generation
        )
    else:
        broken = decision.outcome is GroupOutcome.BROKEN
        now = Condition(
            type=type_,
            status="False",
            reason="SchedulerError" if broken else "Unschedulable",
            message=message or decision.status.message,
            observed_generation=generation,
        )
    return _if_new(now, before)


def _if_new(now: Condition, before: Sequence[Condition]) -> Condition | None:
    """Return a condition unless it changes nothing, or takes "scheduled" back."""
    for condition in before:
        if condition.type != now.type:
            continue
        if condition.status == "True" and now.status == "False":
            return None
        if _same(condition, now):
            return None
    return now


def _same(one: Condition, other: Condition) -> bool:
    return (one.status, one.reason, one.message, one.observed_generation) == (
        other.status,
        other.reason,
        other.message,
        other.observed_generation,
    )


class GroupReports:
    """Writes the outcome of a group's attempts: its condition, and an Event with the reason.

    Parameters
    ----------
    snapshot
        The objects of groups, as the API last showed them.
    client
        The API verbs.
    writes
        Keeps writes about one object in order.
    recorder
        Events.
    clock
        For transition times.
    version
        The emulated version of Kubernetes.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        client: Client,
        *,
        writes: PodWrites,
        recorder: EventRecorder,
        clock: Clock,
        version: str = V1_36,
    ) -> None:
        self._type = CONDITIONS[version]
        self._groups = snapshot.listers.pod_groups
        self._composites = snapshot.listers.composite_pod_groups
        self._custom = snapshot.listers.coscheduling_groups
        self._trees = snapshot.composites
        self._client = client
        self._writes = writes
        self._recorder = recorder
        self._clock = clock
        # Uid -> the condition written last; the watch shows it later.
        self._written: dict[str, Condition] = {}
        self._forget_at = _FORGET_MIN
        self._attempted: set[GroupKey] = set()

    def take_attempted(self) -> set[GroupKey]:
        """Return the groups whose attempts wrote something since the last call."""
        attempted, self._attempted = self._attempted, set()
        return attempted

    def report(self, key: GroupKey, decision: GroupDecision, pods: Sequence[PodInfo]) -> None:
        """Write the outcome of an attempt; a group without an object has no status and no Events.

        The status of coscheduling's groups is kept by a controller.
        """
        message = ""
        self._attempted.add(key)
        if decision.outcome is not GroupOutcome.PLACED:
            message = sendable(shorten(decision.explanation(pods)))
            self._report_group(key, message, pods[0].pod, action="Scheduling")
        group = self._object_of(key)
        if group is not None:
            before, generation = self._known_conditions(group), group.metadata.generation
            type_ = self._type_of(group)
            wanted = condition_after(
                decision, before, message=message, generation=generation, type_=type_
            )
            self._write_condition(group, before, wanted)
        if key.composite:
            self._report_parts(key, decision, message)

    def _report_parts(self, key: GroupKey, decision: GroupDecision, message: str) -> None:
        """Write the outcome of an attempt to the groups of a composite group."""
        if not decision.parts:  # no group was tried
            broken = decision.outcome is GroupOutcome.BROKEN
            reason = "SchedulerError" if broken else "Unschedulable"
            self._report_below(key, reason=reason, message=message)
            return
        for part in decision.parts[1:]:
            each = GroupKey(key.namespace, part.name, composite=part.composite)
            if decision.outcome is GroupOutcome.PLACED and part.status.ok:
                self._report(each, status="True", reason="Scheduled", message="")
            else:
                text = sendable(shorten(part.status.message)) or message
                self._report(each, status="False", reason="Unschedulable", message=text)

    def _report_below(self, key: GroupKey, *, reason: str, message: str) -> None:
        """Write one reason to every group of a composite group."""
        nodes = () if self._trees is None else self._trees.nodes_of(key)
        for node in islice(nodes, 1, None):
            each = GroupKey(node.namespace, node.name, composite=node.composite)
            self._report(each, status="False", reason=reason, message=message)

    def outdated(self, members: Sequence[tuple[Pod, str]]) -> list[tuple[Pod, str]]:
        """Return those of some members whose conditions have another reason than the given one.

        A member without a condition was never tried.
        """
        return [
            (pod, reason)
            for pod, reason in members
            if (said := self._reason_of(pod)) and reason not in said
        ]

    def incomplete(
        self,
        key: GroupKey,
        text: str,
        members: Sequence[tuple[Pod, str]],
        outdated: Sequence[tuple[Pod, str]],
    ) -> None:
        """Write the lack of a group to the group, and to members with another reason.

        One Event goes to a member, unless the attempt of a new member has just given one.

        Parameters
        ----------
        key, text
            The group and its lack.
        members
            The members without a node, each with the reason that its condition should have.
        outdated
            The members whose conditions have another reason.
        """
        self._report_group(key, text, members[0][0], action="Gathering")
        if not key.source:
            # No attempt told of the lack: the first member stands for those without a condition.
            outdated = [members[0], *(each for each in outdated if each[0] is not members[0][0])]
        if outdated and (not key.source or len(outdated) == len(members)):
            self._recorder.record_event(failed_scheduling(outdated[0][0], text))
        for pod, reason in outdated:
            self._report_pod(pod, reason)
        self._report(key, status="False", reason="Unschedulable", message=text)
        if key.composite:
            self._report_below(key, reason="Unschedulable", message=text)

    def _report_pod(self, pod: Pod, text: str) -> None:
        """Write a reason to a pod; a gated pod has a condition that says so."""
        if pod.spec.scheduling_gates:
            return
        condition = Condition(
            type=_POD_SCHEDULED,
            status="False",
            reason="Unschedulable",
            message=text,
            observed_generation=pod.metadata.generation,
        )
        self._writes.report_status(pod, condition, nominated=None)

    def report_places(self, key: GroupKey, members: Iterable[Pod], lack: str) -> bool:
        """Write to members at Permit that they have a node, where they still report a lack.

        Returns
        -------
        bool
            Whether any of the members reported the lack.
        """
        outdated = [pod for pod in members if lack in self._reason_of(pod)]
        for pod in outdated:
            self._report_pod(pod, _AT_PERMIT.format(key.full_name))
        return bool(outdated)

    def _reason_of(self, pod: Pod) -> str:
        """Return the reason that a pod's condition has; "" without one, or for a gated pod."""
        if pod.spec.scheduling_gates:
            return ""
        conditions = self._writes.status_in_hand(pod).conditions
        return next((each.message for each in conditions if each.type == _POD_SCHEDULED), "")

    def waits(self, key: GroupKey, text: str, member: Pod) -> None:
        """Write the reason of its wait to a group, after the attempt of one member failed."""
        text = sendable(shorten(text))
        self._report_group(key, text, member, action="Scheduling")
        self._report(key, status="False", reason="Unschedulable", message=text)

    def placed(self, key: GroupKey) -> None:
        """Write to a group of Kubernetes that enough of its members have a node."""
        self._report(key, status="True", reason="Scheduled", message="")

    def turned_away(self, key: GroupKey, pod: Pod, status: Status) -> None:
        """Write the reason to the group of a member that could not take part in its attempt."""
        self._report_group(key, status.message, pod, action="Gathering")

    def _report(self, key: GroupKey, *, status: str, reason: str, message: str) -> None:
        """Write the condition of a group of Kubernetes, if it changes."""
        group = self._object_of(key)
        if group is None:
            return
        before = self._known_conditions(group)
        wanted = Condition(
            type=self._type_of(group),
            status=status,
            reason=reason,
            message=message,
            observed_generation=group.metadata.generation,
        )
        self._write_condition(group, before, _if_new(wanted, before))

    def _object_of(self, key: GroupKey) -> _Group | None:
        """Return the object of a group of Kubernetes; None where there is none."""
        if key.source:
            return None
        if key.composite:
            return self._composites.get(key.name, key.namespace)
        return self._groups.get(key.name, key.namespace)

    def _type_of(self, group: _Group) -> str:
        return COMPOSITE_CONDITION if isinstance(group, CompositePodGroup) else self._type

    def _write_condition(
        self, group: _Group, before: Sequence[Condition], wanted: Condition | None
    ) -> None:
        """Write a condition with its transition time; None writes nothing."""
        if wanted is None:
            return
        old = next((each for each in before if each.type == wanted.type), None)
        same = old is not None and old.status == wanted.status
        now = rfc3339(self._clock.now_ns())
        when = old.last_transition_time if same and old is not None else now
        condition = msgspec.structs.replace(wanted, last_transition_time=when)
        self._written[group.metadata.uid] = condition
        self._forget_gone()
        self._writes.after_earlier(
            group.metadata.uid,
            lambda: self._patch(group, condition),
            name=f"status of pod group {group.metadata.namespace}/{group.metadata.name}",
        )

    def _report_group(self, key: GroupKey, note: str, member: Pod, *, action: str) -> None:
        if not key.source:
            group = self._object_of(key)
            if group is not None:
                self._recorder.record_event(
                    _refused(group.metadata, _resource_of(group), note, member, action)
                )
        elif key.source == CUSTOM_SOURCE:
            custom = self._custom.get(key.name, key.namespace)
            if custom is not None:
                refused = _refused(custom.metadata, COSCHEDULING_POD_GROUPS, note, member, action)
                self._recorder.record_event(refused)

    def _forget_gone(self) -> None:
        """Forget deleted groups now and then; the cost is proportional to new groups."""
        if len(self._written) < self._forget_at:
            return
        here = {each.metadata.uid for each in (*self._groups.all(), *self._composites.all())}
        self._written = {uid: each for uid, each in self._written.items() if uid in here}
        self._forget_at = 2 * len(self._written) + _FORGET_MIN

    def _known_conditions(self, group: _Group) -> list[Condition]:
        """Return the group's conditions, and a written condition that the watch has not shown."""
        written = self._written.get(group.metadata.uid)
        shown = group.status.conditions
        if written is None or written in shown:
            return shown
        return with_condition(shown, written)

    async def _patch(self, group: _Group, condition: Condition) -> None:
        body = {
            "lastTransitionTime": condition.last_transition_time,
            "message": condition.message,
            "observedGeneration": condition.observed_generation,
            "reason": condition.reason,
            "status": condition.status,
            "type": condition.type,
        }
        try:
            await self._client.patch(
                _resource_of(group),
                group.metadata.name,
                encode({"status": {"conditions": [body]}}),
                namespace=group.metadata.namespace,
                subresource="status",
            )
        except MoorageError as problem:
            # The next attempt writes the status again; a status is a report, not a decision.
            self._written.pop(group.metadata.uid, None)
            name = f"{group.metadata.namespace}/{group.metadata.name}"
            _log.warning("status of pod group %s was not written: %s", name, problem)


def _resource_of(group: _Group) -> ResourceType:
    return COMPOSITE_POD_GROUPS if isinstance(group, CompositePodGroup) else POD_GROUPS


def _refused(
    metadata: ObjectMeta, resource: ResourceType, note: str, member: Pod, action: str
) -> EventNote:
    return EventNote(
        regarding=ObjectReference(
            kind=resource.kind,
            api_version=resource.api_version,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        ),
        controller=member.spec.scheduler_name,
        type="Warning",
        reason="FailedScheduling",
        action=action,
        note=note,
        related=reference(member),
    )
