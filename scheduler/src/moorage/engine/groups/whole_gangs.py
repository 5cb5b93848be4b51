"""Completes the victims that a plugin proposes by what their gangs need, or evicts no pod.

A gang below its minimum is useless: the room of the other members is wasted. A profile does this
only if one of its plugins has the role `EVICTS_WHOLE_GANGS`; otherwise preemption stays
kube-scheduler's. The plugins of moorage judge gangs inside their dry runs, and nothing is added to
their victims. Victims of other plugins are completed here: budgets that protect the added members
are not considered, and neither is a cheaper node.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.pod import Pod
from moorage.snapshot.pod_groups import GroupKey, GroupTerms, PodGroups


def with_whole_gangs(
    groups: PodGroups, victims: Sequence[Pod], *, below: int
) -> tuple[tuple[Pod, ...], str]:
    """Add to victims the other placed members of gangs that would fall below their minimum.

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
    gangs: dict[GroupKey, GroupTerms] = {}
    for pod in victims:
        key = groups.key_of(pod)
        terms = None if key is None else groups.source.terms_of(key)
        if key is not None and terms is not None and terms.gang:
            gangs[key] = terms
    others: list[Pod] = []
    for key, terms in gangs.items():
        members = groups.members(key)
        placed = [members.pods[uid] for uid in members.placed_uids() if uid not in chosen]
        staying = [pod for pod in placed if not pod.metadata.deletion_timestamp]
        if not terms.missing(staying):
            continue
        for pod in staying:
            if pod.priority >= below:
                return (
                    (),
                    f"pod group {key.full_name} cannot be evicted as a whole: {pod.name} stays",
                )
            others.append(pod)
    return (*others, *victims), ""
