"""The pod groups of which not every member is bound, for the answer of ``/moorage/v1/queue``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from moorage.api.pod import Pod
from moorage.engine.groups.decision import GROUP_UNSCHEDULABLE
from moorage.service.core import Core
from moorage.service.incomplete_groups import lack_of
from moorage.service.questions.answers import QueuedGroup
from moorage.snapshot.pod_groups import GroupMembers

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
                message=lack_of(key, terms, members)
                or _last_failure(core, members)
                or ("" if terms is None else terms.succeeded_note.removeprefix(", ")),
            )
        )
    return (*groups_waiting, *_disabled_groups(core))


def _last_failure(core: Core, members: GroupMembers) -> str:
    """Return why the members wait; "" for members that were not tried.

    Members that had a place say why the group has none. The others say why they have none
    themselves, which says less; most of them count.
    """
    texts = filter(None, (_last_failure_of(core, pod) for pod in members.waiting_pods()))
    messages = Counter(texts)
    of_group = (text for text in messages if text.startswith(GROUP_UNSCHEDULABLE))
    return next(of_group, max(messages, key=messages.__getitem__, default=""))


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
        )
