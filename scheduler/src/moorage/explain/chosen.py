"""The choice of a bound pod's node: the record of its attempt, and the scores as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.pod import Pod
from moorage.explain.answer import NodeAnswer
from moorage.observe.records.record import AttemptRecord
from moorage.observe.records.shown_attempt import shown_attempt
from moorage.service.core import Core

_PARTS_NAMED: Final = 3


def chosen_sentence(core: Core, pod: Pod, nodes: tuple[NodeAnswer, ...]) -> str:
    """Return why a pod is on its node: by its attempt on record, or else by the scores of now.

    Parameters
    ----------
    core
        The deciding half of a scheduler, with its records if it keeps some.
    pod
        A bound pod.
    nodes
        The answers about nodes now, with the pod itself taken off.
    """
    node_name = pod.spec.node_name
    if core.snapshot.row_of(node_name) is None:
        return f"bound to {node_name}, a node that does not exist"
    now = next((each for each in nodes if each.node == node_name), None)
    record = next((each for each in reversed(_records(core, pod)) if each.node == node_name), None)
    if record is not None:
        return f"bound to {node_name}{_then(record)}{_meanwhile(now, nodes)}"
    if now is None or now.score is None:
        reasons = "; ".join(", ".join(each) for each in now.rejections.values()) if now else ""
        text = f"bound to {node_name}, which would not take it now"
        return f"{text}: {reasons}" if reasons else text
    best, of = _best(nodes), _parts(now.scores)
    if now.score == best:
        return f"bound to {node_name} because of its score {now.score}, the highest now{of}"
    text = f"now it has {now.score}{of}, and {best} is the highest"
    return f"bound to {node_name} because of its score then; {text}"


def chosen_notes(core: Core, pod: Pod) -> tuple[str, ...]:
    """Return the evictions that made room for a bound pod, as far as they are on record."""
    return tuple(
        f"Its attempt {each.attempt} evicted {', '.join(each.failure.victims)} from "
        f"{each.failure.nominated}."
        for each in _records(core, pod)
        if each.failure.victims and each.failure.nominated == pod.spec.node_name
    )


def _records(core: Core, pod: Pod) -> list[AttemptRecord]:
    if core.recorder is None:
        return []
    key = (pod.metadata.namespace, pod.name)
    return [each for each in core.recorder.ring.of_pod(key) if each.uid == pod.uid]


def _then(record: AttemptRecord) -> str:
    """Return what the attempt found."""
    if record.total is None:
        return f", the only feasible node in its attempt {record.attempt}"
    best = next((each for each in shown_attempt(record).best if each.node == record.node), None)
    of = "" if best is None else _parts({each.plugin: each.weighted for each in best.scores})
    drawn = f", drawn among {record.ties} with equal scores" if record.ties > 1 else ""
    return (
        f" because of its score {record.total}, the highest of {record.feasible} feasible nodes "
        f"in its attempt {record.attempt}{of}{drawn}"
    )


def _meanwhile(now: NodeAnswer | None, nodes: tuple[NodeAnswer, ...]) -> str:
    """Return where another node would be better now; "" where none would."""
    if now is None:
        return ""
    if now.score is None:
        reasons = "; ".join(", ".join(each) for each in now.rejections.values())
        return f"; it would not take it now: {reasons}"
    best = _best(nodes)
    return "" if now.score == best else f"; now its score is {now.score}, and {best} is the highest"


def _best(nodes: tuple[NodeAnswer, ...]) -> int:
    return max(each.score for each in nodes if each.score is not None)


def _parts(scores: Mapping[str, int]) -> str:
    """Return the largest parts of a score in brackets; "" where every part is 0."""
    largest = sorted(scores.items(), key=lambda each: (-each[1], each[0]))[:_PARTS_NAMED]
    named = ", ".join(f"{plugin} {score}" for plugin, score in largest if score)
    return f" ({named})" if named else ""
