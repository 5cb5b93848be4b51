"""Pods by stage and cause: one pod of each class is explained for all pods of it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from moorage.api.pod import Pod
from moorage.explain.answer import Explanation, Where
from moorage.explain.explaining import QUICK, explain
from moorage.explain.workloads.answer import PodCount, Stage
from moorage.explain.workloads.classes import PodClass, classes_of
from moorage.explain.workloads.placing import place_pods
from moorage.explain.workloads.stages import PodStage
from moorage.service.core import Core

EXPLAINED_MOST: Final = 8
"""Classes of which a pod is explained; of further ones the last failure is reported. A guess."""
_NODES: Final = msgspec.structs.replace(QUICK, nodes=0)
PLAIN: Final = msgspec.structs.replace(_NODES, suggestions=False)
"""The effort of an answer without suggestions and without the table of nodes."""
_ORDER: Final = {stage: rank for rank, stage in enumerate(Stage)}
_LAST: Final = frozenset({Stage.READY, Stage.TERMINATING, Stage.ENDED})

Steps: TypeAlias = Generator[None, None, None]
"""Work in steps: between two of them a running scheduler may decide about other pods."""


class FoldedPods:
    """Pods by stage and cause.

    Parameters
    ----------
    core
        The deciding half of a scheduler.
    stages
        The pods, each with its stage.

    Attributes
    ----------
    main
        The largest class of pending pods, with the explanation of its example; None without one.
    """

    def __init__(self, core: Core, stages: Sequence[PodStage]) -> None:
        self._core = core
        self._counts: dict[tuple[Stage, str], PodCount] = {}
        self._pending = [
            each.pod for each in stages if each.stage is Stage.PENDING and not each.cause
        ]
        self.main: tuple[PodClass, Explanation] | None = None
        for each in stages:
            if each.stage is not Stage.PENDING or each.cause:
                self._count(each.stage, each.cause, [each.pod])

    def explain_pending(self) -> Steps:
        """Explain one pod of each class of pending pods."""
        for number, each in enumerate(classes_of(self._core, self._pending)):
            if number >= EXPLAINED_MOST:
                cause = (
                    f"its last attempt failed: {each.message}"
                    if each.message
                    else f"not looked at: more than {EXPLAINED_MOST} kinds of pods are pending"
                )
                self._count(Stage.PENDING, cause, each.pods, plugins=each.plugins)
                continue
            yield
            there = self._still_pending(each.pods)
            if there:
                self._explain_class(msgspec.structs.replace(each, pods=there), first=not number)

    def add_uncreated(self, pods: int, cause: str) -> None:
        """Count pods that do not exist."""
        self._add(PodCount(stage=Stage.NOT_CREATED, pods=pods, cause=cause))

    def counts(self) -> tuple[PodCount, ...]:
        """Return the numbers: what keeps most pods first, ready pods and those that end last."""
        return tuple(
            sorted(
                self._counts.values(),
                key=lambda each: (each.stage in _LAST, -each.pods, _ORDER[each.stage]),
            )
        )

    def number(self, *stages: Stage) -> int:
        """Return the number of pods in some stages."""
        return sum(each.pods for each in self._counts.values() if each.stage in stages)

    # --- leaves ---------------------------------------------------------------------------------

    def _count(
        self, stage: Stage, cause: str, pods: Sequence[Pod], *, plugins: tuple[str, ...] = ()
    ) -> None:
        self._add(
            PodCount(
                stage=stage,
                pods=len(pods),
                cause=cause,
                plugins=plugins,
                example=pods[0].full_name,
            )
        )

    def _add(self, count: PodCount) -> None:
        """Add a number of pods to the one of their stage and cause."""
        key = count.stage, count.cause
        known = self._counts.get(key)
        if known is not None:
            count = msgspec.structs.replace(known, pods=known.pods + count.pods)
        self._counts[key] = count

    def _still_pending(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return the pods that have got no node since they were sorted into classes."""
        store, pending = self._core.store, list[Pod]()
        for pod in pods:
            now = store.get(*pod.key)
            if now is not None and now.uid == pod.uid and not now.spec.node_name:
                pending.append(now)
        return pending

    def _explain_class(self, of: PodClass, *, first: bool) -> None:
        core = self._core
        explanation = explain(core, of.example, _NODES if first else PLAIN)
        if first:
            self.main = of, explanation
        if explanation.where is not Where.FITS or len(of.pods) == 1:
            self._count_pending(explanation, of.pods)
            return
        # Some fit now: they are put on their nodes, and the next pod is explained beside them.
        profile = core.profiles[of.example.spec.scheduler_name]
        with core.snapshot.trial() as trial:
            number = max(1, place_pods(profile, core.snapshot, of.pods, trial))
            self._count_pending(explanation, of.pods[:number])
            if number < len(of.pods):
                rest = of.pods[number:]
                self._count_pending(explain(core, rest[0], PLAIN), rest)

    def _count_pending(self, explanation: Explanation, pods: Sequence[Pod]) -> None:
        causes = explanation.causes
        plugins = causes[0].plugins if causes else ()
        self._count(Stage.PENDING, explanation.sentence, pods, plugins=plugins)
