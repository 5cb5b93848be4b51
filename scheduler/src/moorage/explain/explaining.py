"""The whole answer about one pod: where it is, why no node takes it, and what would help."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.api.reasons.codes import ReasonCode, code_of_reason
from moorage.base.errors import NotFoundError
from moorage.engine.attempt import CycleError
from moorage.engine.inquiry import Inquiry, in_question, inquire
from moorage.explain.answer import Explanation, Suggestion, Where
from moorage.explain.causes import Causes, Reach, find_causes
from moorage.explain.chosen import chosen_notes, chosen_sentence
from moorage.explain.emptied import empty_nodes
from moorage.explain.groups import (
    MEMBERS_MOST,
    Together,
    missing_group,
    together,
    turned_away,
)
from moorage.explain.nodes import best_nodes, without
from moorage.explain.sentences import (
    cause_sentence,
    causes_in_words,
    group_sentence,
    incomplete,
    incomplete_group,
    lacking_note,
    missing_group_sentence,
    turned_away_sentence,
)
from moorage.explain.standing import standing
from moorage.explain.suggestions.budgets import against_text
from moorage.explain.suggestions.group_room import room_for_group
from moorage.explain.suggestions.members import group_changes
from moorage.explain.suggestions.priorities import Preempted, preempt
from moorage.explain.suggestions.search import Suggestions, find_suggestions
from moorage.explain.trying import Trying
from moorage.explain.turns import NOT_COUNTED, fitting
from moorage.framework.extender import take_part
from moorage.framework.profile import Profile
from moorage.service.core import Core
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.virtual.deciding_half import ClusterInputs

AFRESH: Final = (
    "Computed afresh from the API's objects by the scheduler's engine; queue and backoff are those "
    "of a scheduler that has just started."
)
NOT_ASKED: Final = (
    "The configuration has extenders; computed afresh, they are not asked. Ask the running "
    "scheduler."
)
_WITH_NODES: Final = frozenset({Where.GATED, Where.PERMIT, Where.BINDING})
"""The places for which no node is sought any more, or not yet, and whose nodes are told."""


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of the number of trials.

    Parameters
    ----------
    tries
        Number of changed pods tried against every node.
    tries_by_row
        The same, where a plugin costs a call for each node.
    emptied
        Number of nodes emptied one after another.
    nodes
        Number of nodes in the table; None for all.
    node
        The only node of the table; "" for the best nodes.
    suggestions
        Whether suggestions are sought.
    pair_nodes
        Number of nodes that are asked about for pairs of changes: first changes times nodes.
    """

    tries: int = 24
    tries_by_row: int = 8
    emptied: int = 32
    nodes: int | None = 10
    node: str = ""
    suggestions: bool = True
    pair_nodes: int = 4000


QUICK: Final = Effort()
THOROUGH: Final = Effort(tries=400, tries_by_row=400, emptied=100_000, pair_nodes=400_000)


def explain(core: Core, pod: Pod, effort: Effort = QUICK) -> Explanation:
    """Explain one pod to a person.

    Parameters
    ----------
    core
        The deciding half of a scheduler; it is as before afterwards, draws included.
    pod
        The pod, as the API shows it.
    effort
        Bounds of the number of trials.
    """
    explanation = _explained(core, pod, effort)
    reason = core.disabled_groups.reason_for(pod)
    if not reason or explanation.where is Where.FINISHED:
        return explanation
    return msgspec.structs.replace(explanation, notes=(f"{reason}.", *explanation.notes))


def _explained(core: Core, pod: Pod, effort: Effort) -> Explanation:
    """Explain a pod without regard to groups that no plugin schedules."""
    position = standing(core, pod)  # None: the pod is to get a node
    profile = core.profiles.get(pod.spec.scheduler_name)
    # 1. The pod is past the search for a node, or held before it: that is the answer.
    if position is not None and position.where is not Where.BOUND:
        explanation = _explanation(core, pod, position.where, position.sentence, position.reason)
        if profile is None or position.where not in _WITH_NODES:
            return explanation
        return _with_nodes(core, profile, pod, explanation, effort)
    # 2. No profile here decides about the pod: only its node is known.
    if profile is None:
        return _explanation(core, pod, Where.BOUND, f"bound to {pod.spec.node_name}")
    # 3. The plugins are asked why the pod is on its node, or what its next attempt would find.
    explain_nodes = _explain_choice if position is not None else _explain_search
    try:
        with in_question(profile, pod):
            return explain_nodes(core, profile, pod, effort)
    except CycleError as broken:
        text = f"cannot be decided: {broken.status.message}"
        return _explanation(core, pod, Where.BROKEN, text, ReasonCode.SCHEDULER_ERROR)


def _with_nodes(
    core: Core, profile: Profile, pod: Pod, explanation: Explanation, effort: Effort
) -> Explanation:
    """Add the answers about nodes, as if the pod were tried now, and what a group lacks."""
    own = core.cache.get_pod(pod.uid).spec.node_name if explanation.where is not Where.GATED else ""
    try:
        with in_question(profile, pod), without(core.snapshot, pod) as free:
            inquiry = inquire(profile, core.snapshot, PodInfo(free))
            nodes = best_nodes(inquiry, most=effort.nodes, node_names=(own, effort.node))
        notes = _of_group(core, profile, pod, effort) if explanation.where is Where.PERMIT else ()
    except CycleError:
        return explanation  # what holds the pod is known, though a plugin fails about nodes
    feasible = int(inquiry.fits_n.sum())
    explanation = msgspec.structs.replace(explanation, feasible=feasible, nodes=nodes, notes=notes)
    if explanation.where is not Where.GATED or not effort.suggestions:
        return explanation
    return msgspec.structs.replace(explanation, suggestions=_completing(core, profile, pod))


def _of_group(core: Core, profile: Profile, pod: Pod, effort: Effort) -> tuple[str, ...]:
    """Return what a pod that waits at Permit waits for: the next member of its group."""
    group = together(profile, core.snapshot, pod)
    if group is None or group.lacking or group.terms.minimum > MEMBERS_MOST:
        return ()
    with in_question(profile, pod):
        return lacking_note(group, rows_most=effort.emptied)


def _completing(core: Core, profile: Profile, pod: Pod) -> tuple[Suggestion, ...]:
    """Return the members that an incomplete group lacks, where the group fits with them."""
    group = together(profile, core.snapshot, pod)
    if group is None:
        return ()
    with in_question(profile, pod):
        return tuple(each.suggestion for each in group_changes(group))


def _explanation(
    core: Core, pod: Pod, where: Where, sentence: str, reason: str = ""
) -> Explanation:
    return Explanation(
        namespace=pod.metadata.namespace,
        name=pod.name,
        uid=pod.uid,
        where=where,
        sentence=sentence,
        reason=reason,
        node_count=core.snapshot.num_nodes,
    )


def _explain_choice(core: Core, profile: Profile, pod: Pod, effort: Effort) -> Explanation:
    """Explain a pod on a node: its score there, with the pod itself taken off."""
    snapshot = core.snapshot
    with without(snapshot, pod) as free:
        inquiry = inquire(profile, snapshot, PodInfo(free))
        named = (pod.spec.node_name, effort.node)
        nodes = best_nodes(inquiry, most=effort.nodes, node_names=named)
    extended = (NOT_COUNTED,) if take_part(profile.extenders, pod) else ()
    return msgspec.structs.replace(
        _explanation(core, pod, Where.BOUND, chosen_sentence(core, pod, nodes)),
        notes=(*chosen_notes(core, pod), *extended),
        feasible=int(inquiry.fits_n.sum()),
        nodes=nodes,
    )


def _explain_search(core: Core, profile: Profile, pod: Pod, effort: Effort) -> Explanation:
    """Explain a pod that is to get a node: what its next attempt would find."""
    inquiry = inquire(profile, core.snapshot, PodInfo(pod))
    nodes = best_nodes(inquiry, most=effort.nodes, node_names=(effort.node,))
    group = together(profile, core.snapshot, pod)
    if len(inquiry.feasible):
        explanation = _explain_fitting(core, inquiry, effort, group=group)
    else:
        explanation = _rejected(core, pod, inquiry, effort, group=group)
        explanation = _with_group(explanation, inquiry, group, effort)
    return msgspec.structs.replace(explanation, feasible=len(inquiry.feasible), nodes=nodes)


def _explain_fitting(
    core: Core, inquiry: Inquiry, effort: Effort, *, group: Together | None
) -> Explanation:
    """Explain a pod that some node takes: its group may forbid it, and it may wait for its turn."""
    pod, feasible = inquiry.attempt.pod.pod, len(inquiry.feasible)
    # 1. The pod has no part in an attempt of its group.
    outside = _outside_its_group(inquiry, group)
    if outside is not None:
        return _explanation(core, pod, Where.REJECTED, *outside)
    # 2. The group lacks members, or not all of them find a node. Large groups are not tried.
    small = group is not None and group.terms.minimum <= MEMBERS_MOST
    if group is not None and (group.is_short or (small and not group.fits())):
        text = group_sentence(group, feasible, rows_most=effort.emptied)
        code = ReasonCode.GROUP_INCOMPLETE if group.is_short else ReasonCode.GROUP_UNSCHEDULABLE
        explanation = _explanation(core, pod, Where.REJECTED, text, code)
        if not effort.suggestions:
            return explanation
        changes = (*group_changes(group), *room_for_group(group, inquiry))
        return msgspec.structs.replace(
            explanation, suggestions=tuple(each.suggestion for each in changes)
        )
    # 3. The pod only waits for its turn in the queue, or for extenders.
    position, notes = fitting(core, pod, feasible)
    if group is not None and not small:
        of = f"Its group {group.terms.key.full_name} of {group.terms.minimum} pods"
        notes = (*notes, f"{of} was not tried as a whole: it has more than {MEMBERS_MOST}.")
    explanation = _explanation(core, pod, position.where, position.sentence, position.reason)
    return msgspec.structs.replace(explanation, notes=notes)


def _outside_its_group(inquiry: Inquiry, group: Together | None) -> tuple[str, str] | None:
    """Return why a pod that fits has no part in an attempt of its group, and the code of it."""
    profile, pod, feasible = (
        inquiry.attempt.profile,
        inquiry.attempt.pod.pod,
        int(inquiry.fits_n.sum()),
    )
    missing = missing_group(inquiry.snapshot, pod)
    if missing:
        return missing_group_sentence(missing, feasible), ReasonCode.GROUP_MISSING
    terms = inquiry.snapshot.groups.terms_of(pod)
    if terms is None or (group is not None and group.is_short):
        return None  # too few pods are the reason of all members
    why = turned_away(profile, pod)
    name = terms.key.full_name
    if not why:
        return None
    return turned_away_sentence(name, terms, why, feasible=feasible), code_of_reason(why)


def _with_group(
    explanation: Explanation, inquiry: Inquiry, group: Together | None, effort: Effort
) -> Explanation:
    """Add what the group of a rejected pod lacks; in the sentence if PreFilter said so."""
    if group is None:
        return explanation
    status = inquiry.pre_filter.status
    of_group = status.plugin in {each.name for each in inquiry.attempt.profile.group_gates}
    if status.rejected and of_group and not group.is_short:
        terms, why = group.terms, status.message
        text = turned_away_sentence(terms.key.full_name, terms, why, feasible=None)
        return msgspec.structs.replace(explanation, sentence=text, reason=code_of_reason(why))
    if not group.is_short:
        return explanation
    if not (status.rejected and of_group):
        notes = (*explanation.notes, f"Besides, {incomplete_group(group)}.")
        return msgspec.structs.replace(explanation, notes=notes)
    suggestions = (
        tuple(each.suggestion for each in group_changes(group)) if effort.suggestions else ()
    )
    return msgspec.structs.replace(
        explanation,
        sentence=incomplete(group),
        reason=ReasonCode.GROUP_INCOMPLETE,
        suggestions=suggestions,
    )


def _rejected(
    core: Core, pod: Pod, inquiry: Inquiry, effort: Effort, *, group: Together | None
) -> Explanation:
    """Explain a pod that no node takes."""
    emptied = empty_nodes(inquiry, rows_most=effort.emptied)
    causes = find_causes(inquiry, emptied)
    worded = causes_in_words(inquiry, causes)
    tries = effort.tries
    if any(each.row_by_row for each in inquiry.attempt.profile.filter_forms):
        tries = min(tries, effort.tries_by_row)
    trying = Trying(inquiry, emptied, causes, tries=tries, group=group)
    now = preempt(trying, pod)
    suggestions = Suggestions(())
    if effort.suggestions:
        suggestions = find_suggestions(
            trying, preempts=now is not None, pair_nodes_most=effort.pair_nodes
        )
    where = Where.NEVER if causes.reach is Reach.NEVER else Where.REJECTED
    sentence = cause_sentence(inquiry, causes, worded)
    reason = worded[0].code if worded else ReasonCode.NO_NODES
    notes = (*_notes(core.snapshot, causes, now), *suggestions.notes)
    leaving = _leaving(core, pod)
    if leaving:
        where, notes = Where.NOMINATED, (f"{sentence}.", *notes)
        sentence, reason = leaving, ReasonCode.PREEMPTION
    return msgspec.structs.replace(
        _explanation(core, pod, where, sentence, reason),
        causes=worded,
        suggestions=suggestions.suggestions,
        notes=notes,
    )


def _notes(snapshot: Snapshot, causes: Causes, now: Preempted | None) -> tuple[str, ...]:
    notes = []
    if causes.untried:
        of = f"Of these nodes {causes.untried}"
        notes.append(f"{of} were not emptied on trial, as another took it; --thorough does that.")
    if now is not None:
        names = ", ".join(sorted(victim.full_name for victim in now.evicted))
        text = f"At its priority, its next attempt evicts {names} from {now.node}"
        notes.append(f"{text}{against_text(snapshot, now.evicted)}.")
    return tuple(notes)


def _leaving(core: Core, pod: Pod) -> str:
    """Return that a pod waits for victims on its nominated node; "" where it does not."""
    node_name = core.queue.nominator.node_of(pod.uid) or pod.status.nominated_node_name
    row = core.snapshot.row_of(node_name) if node_name else None
    if row is None:
        return ""
    names = sorted(
        other.key
        for other in core.snapshot.pods(row)
        if other.pod.metadata.deletion_timestamp and other.priority < pod.priority
    )
    if not names:
        return ""
    return f"is nominated to {node_name} and waits for {', '.join(names)} to leave"


def effort_of(*, node: str, every: bool, thorough: bool) -> Effort:
    """Return the effort that a person asks for."""
    effort = THOROUGH if thorough else QUICK
    return msgspec.structs.replace(effort, node=node, nodes=None if every else effort.nodes)


def explain_by_name(
    inputs: ClusterInputs, namespace: str, name: str, effort: Effort
) -> Explanation:
    """Explain a pod of a model: the objects of a server or of a dump.

    Raises
    ------
    NotFoundError
        There is no such pod.
    """
    pod = inputs.objects.pods.get((namespace, name))
    if pod is None:
        raise NotFoundError(404, "NotFound", f'pods "{name}" not found in {namespace}')
    plain, notes = without_extenders(inputs)
    found = explain(plain.fill().core, pod, effort)
    return msgspec.structs.replace(found, source=AFRESH, notes=(*found.notes, *notes))


def without_extenders(inputs: ClusterInputs) -> tuple[ClusterInputs, tuple[str, ...]]:
    """Return a model whose scheduler asks no extenders, and a note if it had some."""
    scheduler = inputs.config.scheduler
    if not scheduler.extenders:
        return inputs, ()
    plain = msgspec.structs.replace(scheduler, extenders=[])
    config = msgspec.structs.replace(inputs.config, scheduler=plain)
    return msgspec.structs.replace(inputs, config=config), (NOT_ASKED,)
