"""The scheduler's queue as text; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.base.errors import MoorageError
from moorage.cli.render import Columns
from moorage.service.questions.answers import QueueAnswer, QueuedGroup, QueuedPod

_HEADINGS: Final = ("namespace", "name", "queue", "attempts", "since", "until", "why")
_WIDE: Final = (*_HEADINGS, "priority", "scheduler", "node", "group", "woken by")
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
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def read_answer(body: bytes) -> QueueAnswer:
    """Decode the answer of a scheduler.

    Raises
    ------
    MoorageError
        It is not an answer of this version.
    """
    try:
        return msgspec.json.decode(body, type=QueueAnswer)
    except msgspec.MsgspecError as error:
        raise MoorageError(
            f"the scheduler's answer cannot be read: {error}; has it another version?"
        ) from error


def narrowed(answer: QueueAnswer, namespace: str) -> QueueAnswer:
    """Return an answer with the pods and groups of one namespace only; "" for all of them."""
    if not namespace:
        return answer
    return msgspec.structs.replace(
        answer,
        pods=tuple(each for each in answer.pods if each.namespace == namespace),
        groups=tuple(each for each in answer.groups if each.namespace == namespace),
    )


def lines(answer: QueueAnswer, *, wide: bool) -> list[str]:
    """Return the table of pods, and the table of groups if there are any."""
    now_ns = parse_rfc3339(answer.time)
    text: list[str] = []
    if answer.pods:
        table = Columns(_WIDE if wide else _HEADINGS)
        text += table.lines([_pod_cells(each, now_ns, wide=wide) for each in answer.pods])
    if answer.groups:
        if text:
            text.append("")
        text += Columns(_GROUP_HEADINGS).lines(map(_group_cells, answer.groups))
    return text


def remarks(answer: QueueAnswer, namespace: str) -> Iterator[str]:
    """Yield the notes below the tables: no pod waits, or pods are left out."""
    if not (answer.pods or answer.groups):
        yield f"no pods wait{f' in {namespace} namespace' if namespace else ''}"
    if not answer.scheduling:
        yield "this scheduler waits for the lease: it does not schedule"
    if namespace:
        return
    listed = Counter(each.queue for each in answer.pods)
    for queue, size in msgspec.to_builtins(answer.sizes).items():
        if listed[queue] < size:
            yield f"{listed[queue]} of {size} {queue} pods are listed; --limit lists more"


def _pod_cells(pod: QueuedPod, now_ns: int, *, wide: bool) -> list[str]:
    cells = [
        pod.namespace,
        pod.name,
        pod.queue,
        "" if pod.attempts is None else str(pod.attempts),
        duration((now_ns - parse_rfc3339(pod.since)) / NS_PER_SECOND) if pod.since else "",
        _until(pod),
        _why(pod),
    ]
    if wide:
        waking = [f"{each.plugin or 'any'}: {', '.join(each.events)}" for each in pod.woken_by]
        more = (str(pod.priority), pod.scheduler_name, pod.node, pod.group, "; ".join(waking))
        cells += [cell or "<none>" for cell in more]
    return cells


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


def _group_cells(group: QueuedGroup) -> list[str]:
    numbers: Sequence[int] = (
        group.members,
        group.placed,
        group.waiting,
        group.gated,
        group.at_permit,
    )
    minimum = "?" if group.minimum is None else str(group.minimum)
    return [group.namespace, group.name, minimum, *map(str, numbers), group.message]


def duration(seconds: float) -> str:
    """Return a duration in at most two units: ``1.4s``, ``4m12s``, ``3h5m``, ``2d4h``."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f}s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    for large, small, names in ((_DAY, _HOUR, "dh"), (_HOUR, _MINUTE, "hm"), (_MINUTE, 1, "ms")):
        if whole >= large:
            more = whole % large // small
            return f"{whole // large}{names[0]}" + (f"{more}{names[1]}" if more else "")
    raise AssertionError("a minute is the shortest of the large units")
