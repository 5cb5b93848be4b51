"""The pod groups of which not every member is bound, for the answer of ``/moorage/v1/queue``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.api.reasons.codes import ReasonCode, code_of_message
from moorage.service.core import Core
from moorage.service.groups.incomplete_groups import lack_of
from moorage.service.questions.answers import QueuedGroup, QueuedPod
from moorage.service.questions.folding.group_reason import reason_of_group
from moorage.snapshot.pod_groups import GroupKey, GroupMembers, GroupTerms

_GATED: Final = "SchedulingGated"


def incomplete_groups(core: Core, *, waiting_uids: Iterable[str] = ()) -> tuple[QueuedGroup, ...]:
    """Return the pod groups of which not every member is bound, by name.

    Parameters
    ----------
    core
        The state; it is not changed.
    waiting_uids
        The uids of the pods that Permit plugins hold.
    """
    groups, at_permit = core.snapshot.groups, set(waiting_uids)
    groups_waiting = []
    for key, members in sorted(groups.all_groups().items()):
        if len(members.assigned) == len(members.pods):
            continue
        terms = groups.source.terms_of(key)
        reason, message = _reason(core, key, terms, members)
        groups_waiting.append(
            QueuedGroup(
                namespace=key.namespace,
                name=key.name,
                source=key.source,
                minimum=None if terms is None else terms.declared_minimum,
                succeeded=0 if terms is None else terms.succeeded,
                members=len(members.pods),
                placed=members.placed,
                waiting=len(members.waiting),
                gated=len(members.gated),
                at_permit=sum(uid in at_permit for uid in members.assumed),
                reason=reason,
                message=message
                or ("" if terms is None else terms.succeeded_note.removeprefix(", ")),
            )
        )
    return (*groups_waiting, *_disabled_groups(core))


def with_reason_of_group(
    pods: Iterable[QueuedPod], groups: Iterable[QueuedGroup]
) -> Iterator[QueuedPod]:
    """Yield pods of the queue; members of a group wait for the reason for which their group waits.

    A member with scheduling gates keeps its own reason, and so does one that has a node, and one
    whose group needs no more pods.
    """
    by_name = {f"{each.namespace}/{each.name}": each for each in groups if _waits_as_one(each)}
    for pod in pods:
        group = by_name.get(pod.group)
        own = not pod.reason or pod.reason == ReasonCode.SCHEDULING_GATED or pod.queue == "permit"
        if group is None or own:
            yield pod
        else:
            yield msgspec.structs.replace(pod, reason=group.reason, message=group.message)


def _waits_as_one(group: QueuedGroup) -> bool:
    """Whether members wait until enough of them have a place together."""
    if not group.reason:
        return False
    return group.minimum is None or max(1, group.placed + group.succeeded) < group.minimum


def _reason(
    core: Core, key: GroupKey, terms: GroupTerms | None, members: GroupMembers
) -> tuple[str, str]:
    """Return the code and the text of what a group lacks, or why its last attempt failed."""
    lack = lack_of(key, terms, members)
    return reason_of_group(
        [lack] if lack else (_last_failure_of(core, pod) for pod in members.waiting_pods())
    )


def _last_failure_of(core: Core, pod: Pod) -> str:
    """Return why a pod waits, by the queue or else by its condition; "" for a gated pod."""
    message = core.queue.reader.last_failure(pod)
    if message:
        return message
    failure = pod.status.scheduling_failure
    return "" if failure is None or failure.reason == _GATED else failure.message


def _disabled_groups(core: Core) -> Iterator[QueuedGroup]:
    """Yield the groups that no plugin schedules; they need no members together."""
    index = core.disabled_groups
    index.update()
    for key, (reason, pods) in index.members().items():
        placed = [pod.uid for pod in pods if pod.spec.node_name or core.cache.is_assumed(pod.uid)]
        waiting = [pod for pod in pods if pod.uid not in placed]
        yield QueuedGroup(
            namespace=key.namespace,
            name=key.name,
            source=key.source,
            minimum=None,
            members=len(pods),
            placed=len(placed),
            waiting=len(waiting),
            gated=sum(bool(pod.spec.scheduling_gates) for pod in waiting),
            at_permit=0,
            message=reason,
            reason=code_of_message(reason),
        )
