"""The answer about a node: why nothing lands on it, and what is stranded there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Final

import msgspec

from moorage.api.node import Node
from moorage.base.errors import NotFoundError
from moorage.engine.attempt import CycleError
from moorage.engine.inquiry import in_question, inquire
from moorage.explain.words import amount_text, listed, taint_text
from moorage.explain.workloads.answer import AmountUse, ObjectExplanation, PodCount, Stage
from moorage.explain.workloads.classes import PodClass, classes_of
from moorage.explain.workloads.stages import stage_of
from moorage.service.core import Core
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

CLASSES_MOST: Final = 24
"""Classes of pending pods that are asked about; a guess."""
_FULL_SHARE: Final = 0.95
"""A resource of which so much is requested counts as full; a guess."""
_STRANDED_SHARE: Final = 0.25
"""A resource of which so much is free is stranded where another one is full; a guess."""
_CORDON: Final = "node.kubernetes.io/unschedulable"
_PODS: Final = "pods"


class _Amount(msgspec.Struct, frozen=True):
    resource: str
    used: int
    most: int

    @property
    def is_full(self) -> bool:
        return self.used >= self.most * _FULL_SHARE

    @property
    def is_free(self) -> bool:
        return self.most - self.used >= self.most * _STRANDED_SHARE

    def text(self, units: int) -> str:
        return str(units) if self.resource == _PODS else amount_text(self.resource, units)


def explain_node(core: Core, name: str) -> Generator[None, None, ObjectExplanation]:
    """Explain a node: what closes it, what is full, and why pending pods do not land on it.

    Raises
    ------
    NotFoundError
        There is no such node.
    """
    snapshot = core.snapshot
    row = snapshot.row_of(name)
    if row is None:
        raise NotFoundError(404, "NotFound", f'nodes "{name}" not found')
    node, amounts = snapshot.node(row), _amounts(snapshot, row)
    stages = Counter(stage_of(core, each.pod).stage for each in snapshot.pods(row))
    pending = core.queue.pending()
    queued = [
        each.pod
        for part in (pending.active, pending.backoff, pending.unschedulable)
        for each in part
    ]
    rejections: Counter[tuple[tuple[str, ...], str]] = Counter()
    examples: dict[tuple[tuple[str, ...], str], str] = {}
    classes = classes_of(core, queued)
    for each in classes[:CLASSES_MOST]:
        yield
        key = _rejection(core, each, name)
        if key is not None:
            rejections[key] += len(each.pods)
            examples.setdefault(key, each.example.full_name)
    unasked = sum(len(each.pods) for each in classes[CLASSES_MOST:])
    counts = [
        PodCount(
            stage=Stage.PENDING, pods=pods, cause=key[1], plugins=key[0], example=examples[key]
        )
        for key, pods in rejections.most_common()
    ]
    counts += [PodCount(stage=stage, pods=pods) for stage, pods in stages.most_common()]
    notes = [f"{unasked} more pending pods were not asked about."] if unasked else []
    return ObjectExplanation(
        type_="node",
        name=name,
        sentence=_sentence(node, amounts, rejections, len(queued)),
        pods=sum(stages.values()),
        ready=stages[Stage.READY],
        counts=tuple(counts),
        amounts=tuple(_use(each, amounts) for each in amounts),
        notes=tuple(notes),
    )


_FITS: Final[tuple[tuple[str, ...], str]] = ((), "fits on this node now")


def _rejection(core: Core, of: PodClass, name: str) -> tuple[tuple[str, ...], str] | None:
    """Return which plugins keep a class of pods off a node, and their reasons; None if unknown."""
    pod = of.example
    profile, row = core.profiles.get(pod.spec.scheduler_name), core.snapshot.row_of(name)
    if profile is None or row is None:
        return None
    try:
        with in_question(profile, pod):
            inquiry = inquire(profile, core.snapshot, PodInfo(pod))
            status = inquiry.pre_filter.status
            if status.rejected:
                return (status.plugin,), f"no node is asked: {status.plugin}: {status.message}"
            reasons = inquiry.reasons_at(row)
    except CycleError:
        return None
    if not reasons:
        return _FITS
    words = "; ".join(f"{plugin}: {', '.join(each)}" for plugin, each in reasons.items())
    return tuple(reasons), f"rejected here by {words}"


def _amounts(snapshot: Snapshot, row: int) -> list[_Amount]:
    """Return the resources of a node, the number of pods last."""
    names = sorted(
        snapshot.table.exact_limit, key=lambda each: (each not in {"cpu", "memory"}, each)
    )
    amounts = [
        _Amount(each, int(snapshot.requested(each)[row]), int(snapshot.allocatable(each)[row]))
        for each in names
    ]
    pods = _Amount(_PODS, int(snapshot.pod_count[row]), int(snapshot.allowed_pods[row]))
    return [*(each for each in amounts if each.most), pods]


def _use(amount: _Amount, all_: list[_Amount]) -> AmountUse:
    full = [each.resource for each in all_ if each.is_full]
    note = ""
    if amount.is_full:
        note = "full"
    elif full and amount.is_free and amount.resource != _PODS:
        note = f"stranded: {' and '.join(full)} {'is' if len(full) == 1 else 'are'} full"
    return AmountUse(
        resource=amount.resource,
        used=amount.text(amount.used),
        most=amount.text(amount.most),
        note=note,
    )


def _sentence(
    node: Node,
    amounts: list[_Amount],
    rejections: Counter[tuple[tuple[str, ...], str]],
    pending: int,
) -> str:
    """Return what closes a node, what is full there, and what keeps most pending pods off it."""
    parts = []
    if node.spec.unschedulable:
        parts.append("is cordoned")
    taints = [taint_text(each) for each in node.spec.taints if each.key != _CORDON]
    if taints:
        parts.append(f"has the taint{'s' if len(taints) > 1 else ''} {listed(taints)}")
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        parts.append(f"is not ready ({ready.reason or ready.status})")
    full = [each.resource for each in amounts if each.is_full]
    if full:
        parts.append(f"has no {' and no '.join(full)} left")
    text = ", and ".join(parts) if len(parts) < 3 else ", ".join(parts)
    text = text or "is open and has room"
    refused = Counter({key: pods for key, pods in rejections.items() if key != _FITS})
    if not pending:
        return f"{text}; no pod is pending"
    if not refused:
        return f"{text}; {rejections[_FITS]} of {pending} pending pods fit on it now"
    (first, pods), total = refused.most_common(1)[0], sum(refused.values())
    most = "" if pods == total else f", {pods} of them"
    return f"{text}; {total} of {pending} pending pods do not fit on it{most}: {first[1]}"
