"""GangScheduling: a pod of a gang waits until enough members exist, and until enough fit.

PreEnqueue keeps members out of the queue until the group and its minimum number of pods exist.
Permit lets members wait until enough members have a node.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/gangscheduling``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.api.pod_group import CompositePodGroup, GangSchedulingPolicy, PodGroup
from moorage.config.gate_table import V1_36
from moorage.framework.cycle_state import CycleState
from moorage.framework.group import CARRIED_OUT, GROUP_PHASE, GroupProgress
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration
from moorage.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from moorage.snapshot.pod_groups import GroupKey, GroupSource, GroupTerms
from moorage.snapshot.pod_info import PodInfo

TOO_FEW_PODS: Final = "waiting for minCount pods from a gang to appear in scheduling queue"
TOO_FEW_PLACED: Final = "waiting for minCount pods from a gang to be scheduled"


class GangScheduling:
    """PreEnqueue and Permit plugin; takes no arguments."""

    name = "GangScheduling"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._effects = handle.effects
        self._of_1_37 = handle.gates.version != V1_36

    def pre_enqueue(self, pod: Pod) -> Status:
        """Accept a member when its group exists and has enough pods, running pods included.

        Of a composite group, enough groups must have enough pods.
        """
        groups = self._snapshot.groups
        key = groups.key_of(pod)
        if key is None or key.source:
            return SUCCESS
        terms = groups.source.terms_of(key)
        if key.composite:
            return self._of_composite(key, terms)
        if terms is None:
            if self._of_1_37:
                return unresolvable(
                    f'waiting for pod\'s pod group "{key.name}" to appear in scheduling queue'
                )
            # The text, and its grammar, are upstream's.
            return unresolvable(
                f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'
            )
        if terms.fault:
            return unresolvable(terms.fault)
        if terms.gang and len(groups.members(key).pods) < terms.minimum:
            return unresolvable(TOO_FEW_PODS)
        return SUCCESS

    def _of_composite(self, key: GroupKey, terms: GroupTerms | None) -> Status:
        """Return PreEnqueue's answer for a member of a composite group."""
        if terms is not None and terms.fault:
            return unresolvable(terms.fault)
        if terms is None or self._snapshot.groups.members(key).pods_missing(terms):
            return unresolvable(f'waiting for composite pod group "{key.name}" tree to meet quorum')
        return SUCCESS

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Let a member wait until enough members have a node; the last one needed passes.

        The last one needed also allows the waiting members. If members are not tried together, the
        members without a node are activated at once.
        """
        del node_name
        groups = self._snapshot.groups
        key = groups.key_of(pod.pod)
        if key is None or key.source:
            return SUCCESS, 0.0
        terms = groups.source.terms_of(key)
        if terms is None:
            return error(
                f'failed to get podGroup {key.full_name}: podgroup.scheduling.k8s.io "{key.name}" '
                "not found"
            ), 0.0
        if not terms.gang:
            return SUCCESS, 0.0
        members, phase = groups.members(key), state.find(GROUP_PHASE)
        if groups.missing_for(terms):
            if phase is None:
                state.pods_to_activate.update((each.uid, each) for each in members.waiting_pods())
            return Status(Code.WAIT, (TOO_FEW_PLACED,)), terms.wait_seconds
        last = key.composite or members.placed == terms.minimum
        if phase is None or (phase == CARRIED_OUT and last):
            for each in members.assumed:
                self._effects.allow(each, self.name)
        return SUCCESS, 0.0

    def placement_feasible(self, key: GroupKey, progress: GroupProgress) -> Status:
        """Reject a group once the members left cannot complete its minimum, in 1.37."""
        terms = self._snapshot.groups.source.terms_of(key)
        placed, remaining, minimum = progress.placed, progress.remaining, progress.minimum
        if minimum is None:
            minimum = terms.minimum if terms is not None and terms.gang else 1
        if placed + remaining < minimum:
            return unschedulable(
                f"minCount ({minimum}) cannot be satisfied: "
                f"{placed} scheduled, {remaining} remaining"
            )
        if placed < minimum:
            text = (
                f"minCount ({minimum}) is not yet satisfied: "
                f"{placed} scheduled, {remaining} remaining"
            )
            return Status(Code.WAIT, (text,))
        return SUCCESS

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register new pods of the group, the new group, and from 1.37 on a lower minimum."""
        source = self._snapshot.groups
        pod = ClusterEvent(Resource.POD, Action.ADD)
        actions = Action.ADD | Action.UPDATE if self._of_1_37 else Action.ADD
        group = ClusterEvent(Resource.POD_GROUP, actions)

        def member_came(waiting: Pod, old: object | None, new: object | None) -> bool:
            return _member_hint(source.source, waiting, new)

        registrations = (
            EventRegistration(pod, member_came, self._completed_by),
            EventRegistration(group, self._group_hint, replicas_agree=True),
        )
        if self._snapshot.composites is None:
            return registrations
        composite = ClusterEvent(Resource.COMPOSITE_POD_GROUP, actions)
        return (*registrations, EventRegistration(composite, self._group_hint))

    def _group_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Wake the pods of a group, or of its tree, that is new or needs less."""
        if not isinstance(new, PodGroup | CompositePodGroup):
            return True
        if isinstance(old, PodGroup | CompositePodGroup) and _minimum(new) >= _minimum(old):
            return False
        namespace, name = new.metadata.namespace, new.metadata.name
        composites, key = self._snapshot.composites, GroupKey(namespace, name)
        if composites is not None:
            is_composite = isinstance(new, CompositePodGroup)
            key = composites.root_of(namespace, name, composite=is_composite)
        return key == self._snapshot.groups.key_of(waiting)

    def _completed_by(self, old: object | None, new: object | None) -> Sequence[Pod] | None:
        """Return the members to queue when a new pod arrives.

        No member is returned while the group is too small: each member would be rejected again.
        """
        del old
        if not isinstance(new, Pod):
            return None
        groups = self._snapshot.groups
        key = groups.key_of(new)
        if key is None or not self.pre_enqueue(new).ok:
            return ()
        return groups.members(key).waiting_pods()


def _member_hint(source: GroupSource, waiting: Pod, new: object | None) -> bool:
    if not isinstance(new, Pod):
        return True
    key = source.key_of(waiting)
    return key is not None and source.key_of(new) == key


def _minimum(group: PodGroup | CompositePodGroup) -> int:
    gang = group.spec.scheduling_policy.gang
    if gang is None:
        return 0
    return gang.min_count if isinstance(gang, GangSchedulingPolicy) else gang.min_group_count
