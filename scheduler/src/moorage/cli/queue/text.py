"""The scheduler's queue as text; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.cli.render import Columns, Table
from moorage.cli.rows.durations import duration
from moorage.cli.rows.text import cut, fold_lines, rows_left, table_lines
from moorage.service.questions.answers import QueueAnswer, QueuedGroup, QueuedPod
from moorage.service.questions.folding.folds import Fold, Folded

_HEADINGS: Final = ("namespace", "name", "queue", "attempts", "since", "until", "why")
_MORE: Final = ("reason", "owner", "priority", "scheduler", "node", "group", "woken by")
_SHORT: Final = ("placed", "group", "minimum", "waiting", "gated", "at permit")
_GROUP_HEADINGS: Final = (
    "namespace",
    "group",
    "minimum",
    "members",
    "placed",
    "waiting",
    "gated",
    "at permit",
    "why",
)


def narrowed(answer: QueueAnswer, namespace: str) -> QueueAnswer:
    """Return an answer with the pods, rows and groups of one namespace only; "" for all of them."""
    if not namespace:
        return answer
    return msgspec.structs.replace(
        answer,
        pods=tuple(each for each in answer.pods if each.namespace == namespace),
        groups=tuple(each for each in answer.groups if each.namespace == namespace),
        folds=tuple(each for each in answer.folds if each.namespace == namespace),
    )


def folded_lines(answer: QueueAnswer, folds: Sequence[Fold], *, width: int) -> list[str]:
    """Return the table of rows of pods, and the table of groups if there are any."""
    text: list[str] = []
    if folds:
        text += fold_lines(folds, now_ns=parse_rfc3339(answer.time), width=width)
    if answer.groups:
        if text:
            text.append("")
        text += _group_lines(answer.groups, width)
    return text


def _group_lines(groups: Sequence[QueuedGroup], width: int) -> list[str]:
    """Return the table of groups; below each group what it lacks."""
    rows = [
        (
            str(each.placed),
            f"{each.namespace}/{each.name}",
            "?" if each.minimum is None else str(each.minimum),
            str(each.waiting),
            str(each.gated),
            str(each.at_permit),
        )
        for each in groups
    ]
    lines = table_lines(_SHORT, rows, width=width, flexible=1)
    text = lines[:1]
    for line, each in zip(lines[1:], groups, strict=True):
        text.append(line)
        if each.message:
            text.append(cut(f"        {each.message}", width))
    return text


def wide_lines(answer: QueueAnswer) -> list[str]:
    """Return the table of all pods with all columns, and the table of groups if there are any."""
    now_ns = parse_rfc3339(answer.time)
    text: list[str] = []
    if answer.pods:
        table = Columns((*_HEADINGS, *_MORE))
        text += table.lines([_pod_cells(each, now_ns) for each in answer.pods])
    if answer.groups:
        if text:
            text.append("")
        text += group_table(answer.groups).lines()
    return text


def group_table(groups: Sequence[QueuedGroup]) -> Table:
    """Return the table of pod groups with all columns."""
    return Table(_GROUP_HEADINGS, tuple(map(_group_cells, groups)))


def folded_remarks(answer: QueueAnswer, shown: Folded, namespace: str) -> Iterator[str]:
    """Yield the notes below the table of rows: no pod waits, or pods and rows are left out."""
    yield from _states(answer, namespace)
    rows, pods = shown.rows_left + answer.rows_left, shown.pods_left + answer.pods_left
    if rows:
        yield rows_left(rows, "--limit shows more", pods=pods)
    yield from _group_hint(answer.groups)
    if namespace:
        return
    size = sum(msgspec.to_builtins(answer.sizes).values())
    seen = sum(each.pods for each in shown.folds) + pods
    if seen < size:
        yield f"{seen} of {size} pods are counted, the first of each queue"


def _group_hint(groups: Sequence[QueuedGroup]) -> Iterator[str]:
    """Yield the command that says what the first of the groups that wait needs."""
    for each in groups:
        if each.waiting and each.minimum is not None:
            command = f"moorage explain podgroup/{each.name} -n {each.namespace}"
            yield f"`{command}` says what would help the group"
            return


def remarks(answer: QueueAnswer, namespace: str) -> Iterator[str]:
    """Yield the notes below the table of pods: no pod waits, or pods are left out."""
    yield from _states(answer, namespace)
    if namespace:
        return
    listed = Counter(each.queue for each in answer.pods)
    for queue, size in msgspec.to_builtins(answer.sizes).items():
        if listed[queue] < size:
            yield f"{listed[queue]} of {size} {queue} pods are listed; --limit lists more"


def _states(answer: QueueAnswer, namespace: str) -> Iterator[str]:
    if not (answer.pods or answer.groups or answer.folds):
        yield f"no pods wait{f' in {namespace} namespace' if namespace else ''}"
    if not answer.scheduling:
        yield "this scheduler waits for the lease: it does not schedule"


def _pod_cells(pod: QueuedPod, now_ns: int) -> list[str]:
    waking = [f"{each.plugin or 'any'}: {', '.join(each.events)}" for each in pod.woken_by]
    more = (
        pod.reason,
        pod.owner,
        str(pod.priority),
        pod.scheduler_name,
        pod.node,
        pod.group,
        "; ".join(waking),
    )
    return [
        pod.namespace,
        pod.name,
        pod.queue,
        "" if pod.attempts is None else str(pod.attempts),
        duration((now_ns - parse_rfc3339(pod.since)) / NS_PER_SECOND) if pod.since else "",
        _until(pod),
        _why(pod),
        *(cell or "<none>" for cell in more),
    ]


def _until(pod: QueuedPod) -> str:
    """Return what ends a pod's wait."""
    left = "" if pod.seconds_left is None else f"in {duration(pod.seconds_left)}"
    match pod.queue:
        case "active":
            return f"#{pod.position}"
        case "backoff":
            return f"{left} or sooner" if pod.may_be_early else left
        case "unschedulable":
            return f"event, or {left}"
        case "gated":
            return "event"
        case "permit":
            return left
        case "binding" | "in-flight":
            return pod.step or "decision"


def _why(pod: QueuedPod) -> str:
    plugins = ", ".join(pod.plugins)
    if pod.queue in {"gated", "permit"}:
        return ": ".join(filter(None, (plugins, pod.message)))
    if pod.queue == "binding":
        return f"node {pod.node}"
    return pod.message or plugins


def _group_cells(group: QueuedGroup) -> tuple[str, ...]:
    numbers: Sequence[int] = (
        group.members,
        group.placed,
        group.waiting,
        group.gated,
        group.at_permit,
    )
    minimum = "?" if group.minimum is None else str(group.minimum)
    return (group.namespace, group.name, minimum, *map(str, numbers), group.message)
