"""Records as they are told: over HTTP, as lines of a file, and by ``moorage explain --attempt``."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from moorage.api.mentions import NodeName, PodName, Prose, SubjectNamespace
from moorage.api.reasons.codes import code_of_message
from moorage.base.clock import NS_PER_SECOND, rfc3339_micro
from moorage.engine.notes.best_nodes import Ranking
from moorage.engine.notes.extender_answers import ExtenderAnswer
from moorage.framework.extender import SCORE_FACTOR
from moorage.observe.records.record import AttemptRecord


class ShownCause(msgspec.Struct, frozen=True, rename="camel"):
    """Something that happened to a pod between two attempts.

    Parameters
    ----------
    time
        RFC 3339 with microseconds.
    what
        What happened, as a short phrase.
    cause
        The cluster event or the call behind it.
    """

    time: str
    what: Prose
    cause: Prose


class ShownRejection(msgspec.Struct, frozen=True, rename="camel"):
    """Nodes that one plugin rejected alike.

    Parameters
    ----------
    plugin
        The first Filter plugin that rejected them; empty for an extender.
    code
        The status code.
    reasons
        The plugin's reasons.
    nodes
        The nodes.
    """

    plugin: str
    code: str
    reasons: tuple[Prose, ...]
    nodes: tuple[NodeName, ...]


class ShownScore(msgspec.Struct, frozen=True, rename="camel"):
    """The score that one plugin gave one node.

    Parameters
    ----------
    plugin
        The plugin.
    weight
        Its weight in the total.
    raw, normalized
        Its score before and after NormalizeScore.
    weighted
        Its part of the total: normalized times weight.
    """

    plugin: str
    weight: int
    raw: int
    normalized: int
    weighted: int


class ShownNode(msgspec.Struct, frozen=True, rename="camel"):
    """One of the best nodes.

    Parameters
    ----------
    node
        Its name.
    total
        The sum of its weighted scores, and of the extenders' scores.
    scores
        The score of each plugin.
    """

    node: NodeName
    total: int
    scores: tuple[ShownScore, ...]


class ShownExtenderScore(msgspec.Struct, frozen=True, rename="camel"):
    """The score that one extender gave one node.

    Parameters
    ----------
    node
        The node.
    score, weighted
        The score, and its part of the total.
    """

    node: NodeName
    score: int
    weighted: int


class ShownExtenderRejection(msgspec.Struct, frozen=True, rename="camel"):
    """Nodes that an extender rejected alike.

    Parameters
    ----------
    code, reasons
        The status code, and the extender's reasons.
    nodes
        The nodes.
    """

    code: str
    reasons: tuple[Prose, ...]
    nodes: tuple[NodeName, ...]


class ShownExtender(msgspec.Struct, frozen=True, rename="camel"):
    """The answers of one extender in an attempt.

    Parameters
    ----------
    extender
        Its URL.
    rejections
        The nodes that it rejected.
    scores
        Its scores of the best nodes.
    errors
        The texts of its calls that failed.
    """

    extender: str
    rejections: tuple[ShownExtenderRejection, ...]
    scores: tuple[ShownExtenderScore, ...]
    errors: tuple[Prose, ...]


class ShownStep(msgspec.Struct, frozen=True, rename="camel"):
    """A step of an attempt after its decision.

    Parameters
    ----------
    name
        Reserve, Permit, WaitOnPermit, PreBind or Bind.
    code
        The status code it ended with.
    seconds
        How long it took, seconds.
    plugin
        The plugin that gave this code; empty where it is the answer of all plugins.
    """

    name: str
    code: str
    seconds: float
    plugin: str = ""


class AttemptHead(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The pod and the attempt, its moment and its outcome.

    Parameters
    ----------
    number
        Numbers attempts of a scheduler in the order of their decisions, from 1.
    namespace, name, uid
        The pod.
    scheduler_name
        The profile that decided.
    attempt
        The pod's own attempts, this one included.
    time
        When the decision was made, RFC 3339 with microseconds.
    seconds
        How long the decision took, seconds; for a member of a group, the decision about the group.
    outcome
        bind, reject or error.
    """

    counted_as: ClassVar[str] = "decision"

    number: int
    namespace: SubjectNamespace
    name: str
    uid: str
    scheduler_name: str
    attempt: int
    time: str
    seconds: float
    outcome: str


class ShownAttempt(AttemptHead, frozen=True, kw_only=True, rename="camel"):
    """The findings of one attempt, and its end.

    Parameters
    ----------
    before
        What happened to the pod since its last attempt, oldest first.
    waited_for
        The plugins that had rejected the pod before.
    node
        The chosen node; empty for none.
    total
        The chosen node's total; null where only one node was feasible.
    feasible, evaluated
        The nodes that passed Filter, and all nodes that were filtered.
    ties
        The nodes with the greatest total, among which one was drawn.
    drawn
        The chosen node's place among these in the order of rows, from 0; null where nothing was
        scored.
    message
        Why there is no node, or why the binding failed.
    reason
        The code of that reason; empty where a node was chosen and bound.
    nominated_node
        The node that the pod was nominated for; null where its nomination was left alone.
    victims
        ``namespace/name`` of the pods to evict, most important first.
    victims_chosen_by
        The rule that chose this node and its victims among the candidates; empty where nothing is
        to be evicted, and where another plugin than DefaultPreemption chose.
    pre_filter_plugins
        The plugins whose PreFilter restricted or rejected the nodes.
    filter_results
        kept; dropped, to stay within the bound of bytes; or none, where nothing was filtered.
    rejections
        The nodes that Filter rejected; null where the results are not kept, or not asked for.
    passed
        The number of nodes that passed Filter; null as `rejections`.
    best
        The ten best nodes, the chosen one first, the others by total.
    extenders
        The answers of the extenders that were asked.
    broken_by
        The plugin whose failure ended the attempt; empty for none.
    steps
        The steps after the decision.
    end
        bound, requeued, or gone; empty while the binding is under way.
    ended
        When the attempt ended; empty before.
    """

    before: tuple[ShownCause, ...]
    waited_for: tuple[str, ...]
    node: NodeName
    total: int | None
    feasible: int
    evaluated: int
    ties: int
    drawn: int | None = None
    message: Prose
    reason: str = ""
    nominated_node: NodeName | None
    victims: tuple[PodName, ...]
    victims_chosen_by: str = ""
    pre_filter_plugins: tuple[str, ...]
    filter_results: str
    rejections: tuple[ShownRejection, ...] | None
    passed: int | None
    best: tuple[ShownNode, ...]
    extenders: tuple[ShownExtender, ...] = ()
    broken_by: str = ""
    steps: tuple[ShownStep, ...]
    end: str
    ended: str


def head_of(record: AttemptRecord) -> dict[str, Any]:
    """Return the fields of `AttemptHead`."""
    namespace, name = record.key
    return msgspec.structs.asdict(
        AttemptHead(
            number=record.number,
            namespace=namespace,
            name=name,
            uid=record.uid,
            scheduler_name=record.profile,
            attempt=record.attempt,
            time=rfc3339_micro(record.at_ns),
            seconds=record.took_ns / NS_PER_SECOND,
            outcome=record.failure.outcome,
        )
    )


def reason_of(record: AttemptRecord) -> str:
    """Return the code of the reason why an attempt came to no binding; "" where it did."""
    message = record.failure.message
    return code_of_message(message) if message else ""


def steps_of(record: AttemptRecord) -> tuple[ShownStep, ...]:
    """Return the steps after the decision."""
    return tuple(
        ShownStep(each.name, each.code, each.took_ns / NS_PER_SECOND, each.plugin)
        for each in record.steps
    )


def shown_attempt(record: AttemptRecord, *, rejections: bool = True) -> ShownAttempt:
    """Return a record in words.

    Parameters
    ----------
    rejections
        Whether the nodes that Filter rejected are told.
    """
    note, known = record.note, record.has_rejections
    looked_at = None if note is None else note.looked_at
    whole = looked_at if rejections and known else None
    ranking = None if note is None else note.ranking
    return ShownAttempt(
        **head_of(record),
        before=tuple(
            ShownCause(rfc3339_micro(each.at_ns), each.what, each.cause) for each in record.before
        ),
        waited_for=tuple(sorted(record.rejectors)),
        node=record.node,
        total=record.total,
        feasible=record.feasible,
        evaluated=record.evaluated,
        ties=record.ties,
        drawn=None if ranking is None else ranking.drawn,
        message=record.failure.message,
        reason=reason_of(record),
        nominated_node=record.failure.nominated,
        victims=record.failure.victims,
        victims_chosen_by=record.failure.chosen_by,
        pre_filter_plugins=() if note is None else tuple(sorted(note.excluded_by)),
        filter_results="kept" if known else "none" if looked_at is None else "dropped",
        rejections=None
        if whole is None
        else tuple(ShownRejection(*key, tuple(nodes)) for key, nodes in whole.rejections().items()),
        passed=None if whole is None else len(whole.passed_rows()),
        best=() if ranking is None else _ranked(ranking),
        extenders=() if note is None else tuple(map(_extender, note.extenders)),
        broken_by=record.failure.broken_by,
        steps=steps_of(record),
        end=record.end,
        ended=rfc3339_micro(record.ended_ns) if record.ended_ns else "",
    )


def _ranked(ranking: Ranking) -> tuple[ShownNode, ...]:
    return tuple(
        ShownNode(
            node,
            total,
            tuple(
                ShownScore(
                    each.plugin,
                    each.weight,
                    each.raw[rank],
                    each.normalized[rank],
                    each.normalized[rank] * each.weight,
                )
                for each in ranking.plugins
            ),
        )
        for rank, (node, total) in enumerate(zip(ranking.nodes, ranking.totals, strict=True))
    )


def _extender(answer: ExtenderAnswer) -> ShownExtender:
    factor = answer.weight * SCORE_FACTOR
    return ShownExtender(
        answer.extender,
        tuple(ShownExtenderRejection(*each) for each in answer.rejected),
        tuple(ShownExtenderScore(node, score, score * factor) for node, score in answer.scores),
        answer.errors,
    )
