"""The sentence about a pod that no node takes, and about a group that does not fit together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from moorage.api.pod import Pod
from moorage.api.reasons.codes import code_of_reasons
from moorage.engine.attempt import CycleError
from moorage.engine.groups.decision import GroupDecision, GroupOutcome, Member
from moorage.engine.groups.numbers import PODS
from moorage.engine.inquiry import Inquiry, inquire
from moorage.engine.packing.apart import SHARES, WHOLE
from moorage.engine.packing.bounds import Shortage
from moorage.explain.answer import Cause
from moorage.explain.causes import Causes, Reach, find_causes, group_causes
from moorage.explain.emptied import empty_nodes
from moorage.explain.facts import fact_about
from moorage.explain.groups import Together
from moorage.explain.rejections import Rejection
from moorage.explain.words import amount_text, joined, listed
from moorage.framework.cycle_state import REJECTION_FIGURES
from moorage.snapshot.pod_groups import GroupTerms

_OTHERS_MOST: Final = 2
_RESOURCE_GAP: Final = "resource gap"


def _at_pre_filter(inquiry: Inquiry) -> Cause:
    """Return the cause where PreFilter rejects the pod before any node is looked at."""
    status, outcome = inquiry.pre_filter.status, inquiry.pre_filter
    plugins = (status.plugin,) if status.plugin else tuple(sorted(outcome.plugins))
    text = f"{' and '.join(plugins)} ({status.message})"
    if status.plugin:
        rows, reasons = np.empty(0, np.int64), status.reasons
        fact = fact_about(
            Rejection(inquiry=inquiry, plugin=status.plugin, rows=rows, reasons=reasons, never=True)
        )
        figures = inquiry.attempt.state.find(REJECTION_FIGURES)
        if figures:
            fact = figures
        text = fact if fact == text else f"{fact} ({status.plugin}: {status.message})"
    return Cause(
        plugins=plugins,
        reasons=status.reasons,
        fact=text,
        nodes=inquiry.snapshot.num_nodes,
        code=code_of_reasons(status.reasons),
    )


def causes_in_words(inquiry: Inquiry, causes: Causes) -> tuple[Cause, ...]:
    """Return the causes in words; of a rejection at PreFilter the only one."""
    if inquiry.pre_filter.status.rejected:
        return (_at_pre_filter(inquiry),)
    return group_causes(inquiry, causes)


def cause_sentence(inquiry: Inquiry, causes: Causes, worded: tuple[Cause, ...]) -> str:
    """Return why no node takes a pod, from its causes."""
    n = inquiry.snapshot.num_nodes
    if not n:
        return "fits on no node now: there are no nodes"
    if inquiry.pre_filter.status.rejected:
        return f"is not tried on any node, because of {worded[0].fact}"
    first = worded[0]
    others = [each for each in worded[1:] if not {*first.plugins} <= {*each.plugins}][:_OTHERS_MOST]
    if causes.reach is Reach.WAIT:
        rest = "".join(f"; {_where(each, n)}{each.fact}" for each in others)
        return f"fits on no node now: {first.fact}{rest}"
    if causes.reach is Reach.NEVER:
        start = f": on {nodes_text(first.nodes)}" if others else ","
        rest = "".join(f"; on {each.nodes} more because of {each.fact}" for each in others)
        return f"never fits here, not even on an empty node{start} because of {first.fact}{rest}"
    text = f"would fit on {nodes_text(first.nodes)} of {n} but for {first.fact}"
    return text + "".join(f"; on {each.nodes} more but for {each.fact}" for each in others)


def _where(cause: Cause, n: int) -> str:
    """Return on how many further nodes a cause is one, "" where its fact counts them itself."""
    return "" if cause.fact.startswith(f"{cause.nodes} of {n} node") else f"on {cause.nodes} more "


# --- groups ---------------------------------------------------------------------------------------


def group_sentence(group: Together, feasible: int, *, rows_most: int) -> str:
    """Return that a pod fits alone and its group does not, and what the group lacks.

    Parameters
    ----------
    group, feasible
        The pod's group, and the number of nodes that take the pod alone.
    rows_most
        How many nodes are emptied one after another, at most, to explain the next member.
    """
    known = group.snapshot.groups.members(group.terms.key)
    alone = f"would fit on {nodes_text(feasible)} alone, but its group {group.terms.key.full_name}"
    if group.is_short:
        return f"{alone} {_has(group)}"
    decision = group.decide_group()
    if decision.outcome is GroupOutcome.PREEMPTING:
        return f"{alone} gets a place only after evictions: {_victims(decision)}"
    decision = group.decide_group(evicting=False)
    count = sum(bool(each.node_name) for each in decision.members) + len(known.placed_uids())
    note = f"{group.terms.succeeded_note}," if group.terms.succeeded else ""
    text = (
        f"{alone} needs {group.terms.declared_minimum} pods with a place, and only "
        f"{count + group.terms.succeeded}{note} fit together{_domain(group, decision)}"
    )
    shortage = None if decision.search is None else decision.search.shortage
    proof = "" if shortage is None else shortage_text(shortage)
    reasons = [each for each in (proof, _next_member(group, decision, rows_most)) if each]
    return f"{text}: {'; '.join(reasons)}" if reasons else text


def shortage_text(shortage: Shortage) -> str:
    """Return what a group is short of on all nodes together; "" where one pod alone is.

    Parameters
    ----------
    shortage
        The shortage that proves that the group has no places.
    """
    name, needed, available = shortage.dimension, shortage.needed, shortage.available
    if not name or not available:
        return ""
    if name == SHARES:
        if shortage.each != WHOLE:
            return "its pods that may not share a node need more nodes than there are for them"
        nodes = f"{nodes_text(available)} {'takes' if available == 1 else 'take'} such pods"
        return f"{needed} of its pods may not share a node, and {nodes}"
    if shortage.each is not None and name != PODS:
        pods = (
            f"{needed} of its pods request {amount_text(name, shortage.each)} {name} or more each"
        )
        return f"{pods}, and the nodes have room for {available} such pods"
    if name == PODS:
        return f"the nodes take {available} more pods, and the group needs {needed}"
    return (
        f"its pods request {amount_text(name, needed)} {name} in all, and "
        f"{amount_text(name, available)} is free on the nodes that take them"
    )


def _domain(group: Together, decision: GroupDecision) -> str:
    """Return in which topology domain a group was tried that no domain takes; "" for none."""
    key = group.terms.topology_key
    return (
        f" in {decision.placement}, the best domain of {key}" if key and decision.placement else ""
    )


def turned_away_sentence(name: str, terms: GroupTerms, why: str, *, feasible: int | None) -> str:
    """Return that a plugin does not let a pod into the attempt of its group.

    Parameters
    ----------
    name, terms
        The group.
    why
        The message of the plugin.
    feasible
        The number of nodes that take the pod alone; None where no node is tried.
    """
    start = "is not tried on any node:"
    if feasible is not None:
        start = f"would fit on {nodes_text(feasible)} alone, but"
    if not why.startswith(_RESOURCE_GAP):
        return f"{start} its group {name} is not tried with it: {why}"
    wanted = [f"{amount_text(each, units)} {each}" for each, units in terms.resources]
    return f"{start} its group {name} needs {joined(wanted)} free in the cluster (minResources)"


def missing_group_sentence(name: str, feasible: int) -> str:
    """Return that a pod fits, and that its group does not exist."""
    return f"would fit on {nodes_text(feasible)}, but its PodGroup {name} does not exist"


def incomplete(group: Together) -> str:
    """Return that a pod is not tried on any node, because its group lacks pods."""
    return f"is not tried on any node: {incomplete_group(group)}"


def incomplete_group(group: Together) -> str:
    """Return the pods that a group lacks."""
    return f"its group {group.terms.key.full_name} {_has(group)}"


def _has(group: Together) -> str:
    there = len(group.snapshot.groups.members(group.terms.key).pods)
    if group.lacking:
        return group.lack
    untried = group.untried()
    are = "is" if len(untried) == 1 else "are"
    needed = f"{group.terms.minimum} more" if group.terms.succeeded else f"{group.terms.minimum}"
    return (
        f"needs {needed} pods, and {len(untried)} of its {there} {are} not tried: "
        f"{_first_of(untried)}"
    )


def _first_of(pods: Sequence[tuple[Pod, str]]) -> str:
    """Return what is said of the first of some pods, and how many more there are."""
    pod, why = pods[0]
    more = f", and {len(pods) - 1} more" if len(pods) > 1 else ""
    return f"pod {pod.full_name} {why}{more}"


def lacking_note(group: Together, *, rows_most: int) -> tuple[str, ...]:
    """Return a note on what the next member of a group lacks whose other members have a place."""
    found = group.decide_group(evicting=False)
    why = _next_member(group, found, rows_most) if found.outcome is GroupOutcome.REJECTED else ""
    return (f"Its group lacks a member: {why}.",) if why else ()


def _victims(decision: GroupDecision) -> str:
    """Return which pods the next attempt of a group evicts."""
    victims = {each.full_name for each in decision.victims}
    for member in decision.members:
        victims |= {each.full_name for each in member.decision.victims}
    return f"its next attempt evicts {listed(sorted(victims))}" if victims else "they are under way"


def _next_member(group: Together, decision: GroupDecision, rows_most: int) -> str:
    """Return what the first member without a place lacks, next to the members with one."""
    lacking = next((each for each in decision.members if not each.node_name), None)
    if lacking is None:
        excluded = [(pod, f"is not tried with the group: {why}") for pod, why in group.excluded()]
        return _first_of(excluded) if excluded else decision.detail
    pod, snapshot = lacking.decision.pod, group.snapshot
    with snapshot.trial() as trial:
        for member in decision.members:
            row = snapshot.row_of(member.node_name) if member.node_name else None
            if row is not None:
                trial.add_pod(member.decision.pod, row)
        text = _why(group, lacking, rows_most)
    return f"the next, pod {pod.key}, {text}" if text else decision.detail


def _why(group: Together, member: Member, rows_most: int) -> str:
    try:
        inquiry = inquire(group.profile, group.snapshot, member.decision.pod)
        if inquiry.fits_n.any():  # the place of the group is at fault, or what Reserve says
            return f"gets no node: {member.message}" if member.message else ""
        causes = find_causes(inquiry, empty_nodes(inquiry, rows_most=rows_most))
        return cause_sentence(inquiry, causes, causes_in_words(inquiry, causes))
    except CycleError:
        return ""


def nodes_text(count: int) -> str:
    """Return a number of nodes: ``1 node``, ``2 nodes``."""
    return "1 node" if count == 1 else f"{count} nodes"
