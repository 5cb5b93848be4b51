"""The things that every operation of a run works with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError
from moorage.base.rng import Random
from moorage_lab.bench.scheduler_perf.objects import Objects
from moorage_lab.bench.scheduler_perf.pod_tallies import PodTallies
from moorage_lab.bench.scheduler_perf.spelling import Spelling
from moorage_lab.bench.scheduler_perf.templates import Manifest, Templates


class Scene:
    """One run of a workload.

    Parameters
    ----------
    objects, tallies
        The way to the server, and what a watch on its pods tells.
    templates
        The manifests of the test case.
    default_pod
        Template of pods where an operation names none; "" for the suite's own pod.
    clock, rng
        Time, and the stream of random choices.
    wait_seconds
        How long a pod is waited for.

    Attributes
    ----------
    expected
        Pods by namespace that no operation has waited for.
    tasks
        Work next to the operations.
    complaints
        Failures of that work; it goes on, but the workload has failed.
    """

    def __init__(
        self,
        objects: Objects,
        tallies: PodTallies,
        templates: Templates,
        *,
        default_pod: str,
        clock: Clock,
        rng: Random,
        wait_seconds: float,
    ) -> None:
        self.objects = objects
        self.tallies = tallies
        self.templates = templates
        self.default_pod = default_pod
        self.clock = clock
        self.rng = rng
        self.wait_seconds = wait_seconds
        self.expected: dict[str, int] = {}
        self.complaints: list[str] = []
        self.tasks = TaskOwner(self._failed)

    def _failed(self, name: str, error: BaseException) -> None:
        self.complaints.append(f"{name}: {error}")

    async def namespace(self, name: str) -> None:
        """Create a namespace that no operation has created."""
        if name not in self.expected:
            await self.objects.ensure_namespace(name)
            self.expected[name] = 0

    def manifests(
        self, name: str, count: int, params: Mapping[str, Any], spelling: Spelling = "any case"
    ) -> list[Manifest]:
        """Return the objects of a template."""
        return [
            self.templates.manifest(name, index, count=count, params=params, spelling=spelling)
            for index in range(count)
        ]

    async def until_scheduled(
        self, namespace: str, count: int, labels: Mapping[str, str] | None = None
    ) -> None:
        """Wait until so many pods of a namespace have a node.

        Raises
        ------
        MoorageError
            The time is over.
        """
        await self._until(namespace, count, labels or {}, attempted=False)

    async def until_attempted(
        self, namespace: str, count: int, labels: Mapping[str, str] | None = None
    ) -> None:
        """Wait until so many pods of a namespace have a node, or were rejected.

        Raises
        ------
        MoorageError
            The time is over.
        """
        await self._until(namespace, count, labels or {}, attempted=True)

    async def _until(
        self, namespace: str, count: int, labels: Mapping[str, str], *, attempted: bool
    ) -> None:
        tally = self.tallies.tally(namespace, labels)

        def reached() -> bool:
            return (tally.attempted if attempted else tally.scheduled) >= count

        if await self.tallies.until(reached, seconds=self.wait_seconds):
            return
        pods = self.tallies.selected_pods(namespace, labels)
        left = [pod for pod in pods if not (pod.is_attempted if attempted else pod.is_scheduled)]
        word, done = ("attempted", tally.attempted) if attempted else ("scheduled", tally.scheduled)
        first = f"; pod {left[0].name} is not" if left else ""
        raise MoorageError(
            f"namespace {namespace}: {done} of {count} pods are {word} after "
            f"{self.wait_seconds:.0f} s{first}"
        )
