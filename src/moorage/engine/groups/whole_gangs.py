"""Victims that belong to a gang go with all of it, or nobody goes.

A gang with a member less is of no use: evicting one pod of it wastes what the others hold. Only in
profiles with Coscheduling; the preemption of others stays kube-scheduler's. Not looked at: budgets
that protect the members added, and whether another node would have cost less.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.pod import Pod
from moorage.snapshot.pod_groups import GroupKey, PodGroups


def with_whole_gangs(
    groups: PodGroups, victims: Sequence[Pod], *, below: int
) -> tuple[tuple[Pod, ...], str]:
    """Add to victims the members with a place of the gangs they belong to.

    Parameters
    ----------
    groups
        Who belongs together.
    victims
        As preemption chose them.
    below
        Priority of the preemptor: a member that is not below it may not be evicted.

    Returns
    -------
    tuple
        All victims, those chosen last; and "" or, without any victim, why nobody may go.
    """
    chosen = {pod.uid for pod in victims}
    gangs: dict[GroupKey, None] = {}
    for pod in victims:
        key = groups.key_of(pod)
        terms = None if key is None else groups.source.terms_of(key)
        if key is not None and terms is not None and terms.gang:
            gangs[key] = None
    others: list[Pod] = []
    for key in gangs:
        members = groups.members(key)
        for uid in members.placed_uids():
            pod = members.pods[uid]
            if uid in chosen or pod.metadata.deletion_timestamp:
                continue
            if pod.priority >= below:
                return (
                    (),
                    f"pod group {key.full_name} cannot be evicted as a whole: {pod.name} stays",
                )
            others.append(pod)
    return (*others, *victims), ""
