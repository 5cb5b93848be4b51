"""``moorage explain pod NAME --attempt K``: what an attempt found, from a scheduler or a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from moorage.base.errors import MoorageError, UsageError
from moorage.cli.render import Columns
from moorage.observe.records.shown_attempt import ShownAttempt, ShownNode

if TYPE_CHECKING:
    from moorage.cli.question_target import QuestionTarget

_NODES_MAX: Final = 10


def record_of(
    to: QuestionTarget, pod: tuple[str, str], attempt: int, *, file: Path | None
) -> ShownAttempt:
    """Return the record of an attempt of a pod, from a file, or else from the scheduler.

    Parameters
    ----------
    to
        The scheduler.
    pod
        (namespace, name).
    attempt
        Counted from 1; negative numbers count from the last one, which is -1.
    file
        The file; None asks the scheduler.

    Raises
    ------
    MoorageError
        There is no such record, or it cannot be read.
    """
    if attempt == 0:
        raise UsageError("--attempt 0: attempts are counted from 1, or from the last one, -1")
    if file is not None:
        return of_file(file, *pod, attempt)
    return of_scheduler(to, *pod, attempt)


def of_scheduler(to: QuestionTarget, namespace: str, name: str, attempt: int) -> ShownAttempt:
    """Ask a running scheduler for the record of an attempt.

    Parameters
    ----------
    attempt
        Counted from 1; negative numbers count from the last one, which is -1.

    Raises
    ------
    MoorageError
        No scheduler answers, or it has no such record.
    """
    from moorage.cli.ask import SchedulerLink, run_asking
    from moorage.service.questions.records import RecordsAnswer

    async def work(link: SchedulerLink) -> ShownAttempt:
        wanted = {"pod": f"{namespace}/{name}"}
        number = attempt
        if number < 0:
            listed = msgspec.json.decode(await link.ask("/records", wanted), type=RecordsAnswer)
            number = _chosen(listed.attempts, attempt, f"{namespace}/{name}").attempt
        body = await link.ask("/records", {**wanted, "attempt": str(number)})
        return msgspec.json.decode(body, type=RecordsAnswer).attempts[-1]

    return run_asking(work, to)


def of_file(path: Path, namespace: str, name: str, attempt: int) -> ShownAttempt:
    """Return the record of an attempt from a file that ``moorage run --record`` wrote.

    Raises
    ------
    UsageError
        The file cannot be read.
    MoorageError
        It has no such record.
    """
    from moorage.observe.records.file import read_records

    found = [
        each for each in read_records(path) if (each.namespace, each.name) == (namespace, name)
    ]
    newest = [each for each in found if each.uid == found[-1].uid]
    return _chosen(newest, attempt, f"{namespace}/{name}")


def _chosen(attempts: Sequence[ShownAttempt], attempt: int, pod: str) -> ShownAttempt:
    if attempt < 0:
        if len(attempts) >= -attempt:
            return attempts[attempt]
    else:
        for each in attempts:
            if each.attempt == attempt:
                return each
    numbers = ", ".join(str(each.attempt) for each in attempts) or "none"
    raise MoorageError(f"attempt {attempt} of pod {pod} is not on record; on record: {numbers}")


def record_text(attempt: ShownAttempt, *, node: str, every: bool, wide: bool) -> str:
    """Return a record for people: what happened, the best nodes, the nodes that were rejected.

    Parameters
    ----------
    node
        Show only this node; "" for all.
    every
        Whether every rejected node is listed.
    wide
        Whether raw and normalised scores are shown next to the weighted ones.
    """
    head = list(_head(attempt))
    lines = list(head)
    best = [each for each in attempt.best if not node or each.node == node]
    if best:
        lines += ["", *_scores(best, wide=wide)]
    lines += _rejected(attempt, node, every=every)
    lines += _extenders(attempt, node, every=every)
    if node and not best and len(lines) == len(head):
        lines += ["", f"Nothing is on record about node {node}: it is none of the ten best nodes."]
    return "\n".join(lines)


def _head(attempt: ShownAttempt) -> Iterator[str]:
    pod = f"pod {attempt.namespace}/{attempt.name}, attempt {attempt.attempt}, {attempt.time}"
    if attempt.node:
        why = f"total {attempt.total}" if attempt.total is not None else "the only feasible node"
        ties = f", drawn among {attempt.ties} equal ones" if attempt.ties > 1 else ""
        yield f"{pod}: node {attempt.node} was chosen ({why}{ties})"
    else:
        yield f"{pod}: {attempt.outcome}: {attempt.message}"
    took = f"{attempt.seconds * 1e3:.2f} ms"
    yield f"  {attempt.feasible} of {attempt.evaluated} nodes were feasible; {took}"
    if attempt.broken_by:
        yield f"  broken by plugin {attempt.broken_by}"
    if attempt.waited_for:
        yield f"  before, it waited for: {', '.join(attempt.waited_for)}"
    yield from (f"  {each.time} {each.what} ({each.cause})" for each in attempt.before)
    if attempt.pre_filter_plugins:
        yield f"  PreFilter restricted the nodes: {', '.join(attempt.pre_filter_plugins)}"
    if attempt.nominated_node:
        rule = f" (chosen by: {attempt.victims_chosen_by})" if attempt.victims_chosen_by else ""
        victims = f", evicting {', '.join(attempt.victims)}{rule}" if attempt.victims else ""
        yield f"  nominated for {attempt.nominated_node}{victims}"
    yield from (
        f"  {each.name}: {each.code}, {each.seconds * 1e3:.2f} ms{_by(each.plugin)}"
        for each in attempt.steps
    )
    if attempt.end:
        told = f": {attempt.message}" if attempt.node and attempt.message else ""
        yield f"  {attempt.end} {attempt.ended}{told}"


def _scores(best: Sequence[ShownNode], *, wide: bool) -> list[str]:
    plugins = [each.plugin for each in best[0].scores]
    table = Columns(["node", "total", *plugins])
    rows = []
    for each in best:
        cells = [
            f"{score.raw} > {score.normalized} > {score.weighted}" if wide else str(score.weighted)
            for score in each.scores
        ]
        rows.append([each.node, str(each.total), *cells])
    return table.lines(rows)


def _rejected(attempt: ShownAttempt, node: str, *, every: bool) -> Iterator[str]:
    if attempt.filter_results == "dropped":
        yield ""
        yield "The rejected nodes are not on record any more, to stay within --records-bytes."
    for each in attempt.rejections or ():
        head = f"{each.plugin or 'extender'}: {each.code}: {', '.join(each.reasons)}"
        lines = _alike(head, each.nodes, node, every=every)
        yield from ("", *lines) if lines else ()


def _extenders(attempt: ShownAttempt, node: str, *, every: bool) -> Iterator[str]:
    for each in attempt.extenders:
        yield ""
        yield f"extender {each.extender}"
        yield from (f"  failed: {text}" for text in each.errors)
        scores = [score for score in each.scores if not node or score.node == node]
        if scores:
            told = ", ".join(f"{score.node} {score.score} > {score.weighted}" for score in scores)
            yield f"  scores, alone > in the total: {told}"
        for alike in each.rejections:
            head = f"  {alike.code}: {', '.join(alike.reasons) or 'no reason given'}"
            yield from _alike(head, alike.nodes, node, every=every)


def _alike(head: str, names: Sequence[str], node: str, *, every: bool) -> list[str]:
    """Return lines about nodes that were rejected alike; none where no node is to be shown."""
    nodes = [name for name in names if not node or name == node]
    if not nodes:
        return []
    shown = nodes if every else nodes[:_NODES_MAX]
    more = f" and {len(nodes) - len(shown)} more" if len(shown) < len(nodes) else ""
    return [head, f"  {len(nodes)} nodes: {', '.join(shown)}{more}"]


def _by(plugin: str) -> str:
    return f", by {plugin}" if plugin else ""
