"""Adds to victims the other members of their gangs, or evicts no pod.

A gang without one of its members is useless: the room of the other members is wasted. A profile
does this only if one of its plugins has the role `EVICTS_WHOLE_GANGS`; otherwise preemption stays
kube-scheduler's. Budgets that protect the added members are not considered. Neither is a cheaper
node.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.pod import Pod
from moorage.snapshot.pod_groups import GroupKey, PodGroups


def with_whole_gangs(
    groups: PodGroups, victims: Sequence[Pod], *, below: int
) -> tuple[tuple[Pod, ...], str]:
    """Add to victims the other placed members of the victims' gangs.

    Parameters
    ----------
    groups
        The pod groups.
    victims
        The victims that preemption chose.
    below
        Priority of the preemptor: a member that is not below it may not be evicted.

    Returns
    -------
    tuple
        All victims, the chosen ones last, and ""; or no victim, and the reason.
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
