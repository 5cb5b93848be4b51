"""The pod groups of which not every member is bound, for the answer of ``/moorage/v1/queue``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage.service.core import Core
from moorage.service.incomplete_groups import lack_of
from moorage.service.questions.answers import QueuedGroup


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
                or ("" if terms is None else terms.succeeded_note.removeprefix(", ")),
            )
        )
    return (*groups_waiting, *_disabled_groups(core))


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
