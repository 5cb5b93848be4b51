"""Carries out the operations of one workload, one after the other, through an API server.

Source: kubernetes v1.36 test/integration/scheduler_perf (``WorkloadExecutor``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from moorage.api.schedules.durations import parse_duration
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import MoorageError
from moorage.base.memory import settle_memory
from moorage.config.feature_gates import FeatureGates
from moorage_lab.bench.scheduler_perf.cases import MetricsCollectorConfig
from moorage_lab.bench.scheduler_perf.churning import churn
from moorage_lab.bench.scheduler_perf.claims import create_driver, give_devices
from moorage_lab.bench.scheduler_perf.data_items import DataItem
from moorage_lab.bench.scheduler_perf.groups import wait_for_groups
from moorage_lab.bench.scheduler_perf.histograms import histogram_items
from moorage_lab.bench.scheduler_perf.nodes import create_nodes
from moorage_lab.bench.scheduler_perf.objects import NotSupportedError
from moorage_lab.bench.scheduler_perf.operations import (
    AllocResourceClaims,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePodGroups,
    CreatePods,
    CreateResourceClaims,
    CreateResourceDriver,
    DeletePods,
    Operation,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
    WaitForPodGroups,
)
from moorage_lab.bench.scheduler_perf.pods import (
    create_pods,
    delete_pods,
    keep_steady,
    pod_manifests,
)
from moorage_lab.bench.scheduler_perf.scene import Scene
from moorage_lab.bench.scheduler_perf.spelling import Spelling
from moorage_lab.bench.scheduler_perf.throughput import Throughput

Metrics = Callable[[], Awaitable[str]]
Progress = Callable[[str], None]

PREFIX: Final = "BenchmarkPerfScheduling"
"""First part of the names of results, as the suite's benchmark is called."""
# The watch tells the last binding before the scheduler has its answer, and counts it; a guess.
_ANSWERS_SECONDS: Final = 0.1


class Executor:
    """One run of a workload.

    Parameters
    ----------
    scene
        The things that operations work with.
    metrics
        Reads the scheduler's page of metrics; None if the scheduler shows none.
    collected
        The histograms to collect; None for the default.
    gates
        The scheduler's feature gates.
    name
        ``<test case>/<workload>``.
    progress
        Called with each operation.

    Attributes
    ----------
    items
        The results.
    """

    def __init__(
        self,
        scene: Scene,
        *,
        metrics: Metrics | None,
        collected: MetricsCollectorConfig | None,
        gates: FeatureGates,
        name: str,
        progress: Progress,
    ) -> None:
        self._scene = scene
        self._metrics = metrics
        self._collected = collected
        self._gates = gates
        self._name = name
        self._progress = progress
        self._measured: tuple[Throughput, str] | None = None
        self._sampling = aio.TaskOwner(self._scene_failed)
        self.items: list[DataItem] = []

    def _scene_failed(self, name: str, error: BaseException) -> None:
        self._scene.complaints.append(f"{name}: {error}")

    async def run(self, operations: Sequence[Operation]) -> None:
        """Carry out operations; work next to them ends with the last.

        Raises
        ------
        MoorageError
            An operation failed; the message begins with its index.
        """
        try:
            for index, op in enumerate(operations):
                self._progress(f"  {index}: {op.opcode}{_shown(op)}")
                try:
                    await self._carry_out(op, index)
                except NotSupportedError:
                    raise
                except MoorageError as error:
                    raise MoorageError(f"op {index} ({op.opcode}): {error}") from error
        finally:
            await self._sampling.cancel_all()
            await self._scene.tasks.cancel_all()

    async def _carry_out(self, op: Operation, index: int) -> None:
        scene, own = self._scene, f"namespace-{index}"
        match op:
            case DeletePods():
                await self._beside_if(op.skip_wait_to_completion, delete_pods(scene, op), index)
            case Churn():
                namespace = own if op.namespace is None else op.namespace
                await scene.objects.ensure_namespace(namespace)
                await self._beside_if(True, churn(scene, op, namespace), index)
            case Barrier():
                await self._wait(op)
            case Sleep():
                await aio.sleep(parse_duration(op.duration or "0") / NS_PER_SECOND)
            case WaitForPodGroups():
                await wait_for_groups(scene, op)
            case StartCollectingMetrics():
                self._start_churn(op.name, op.namespaces, op.label_selector)
            case StopCollectingMetrics():
                await self._stop()
            case CreatePods():
                await self._create_pods(op, own if op.namespace is None else op.namespace)
            case _:
                await self._write_objects(op, index)

    async def _write_objects(self, op: Operation, index: int) -> None:
        """Create or change objects other than pods."""
        match op:
            case CreateNodes():
                await create_nodes(self._scene, op, index)
            case CreateNamespaces():
                await self._create_namespaces(op)
            case CreateAny() | CreateResourceClaims() | CreatePodGroups():
                await self._create_any(op)
            case UpdateAny():
                await self._update_any(op)
            case CreateResourceDriver():
                await create_driver(self._scene, op)
            case AllocResourceClaims():
                await give_devices(self._scene, op, self._gates)
            case _:
                raise AssertionError(f"{op.opcode} is not carried out")

    async def _beside_if(self, beside: bool, work: Awaitable[None], index: int) -> None:
        """Await work, or do it next to the operations that follow."""

        async def done() -> None:
            await work

        if beside:
            self._scene.tasks.spawn(done(), name=f"op {index}")
        else:
            await work

    async def _create_namespaces(self, op: CreateNamespaces) -> None:
        path = op.namespace_template_path
        base = self._scene.templates.manifest(path) if path else None
        for number in range(op.count):
            name = f"{op.prefix}-{number}"
            await self._scene.objects.ensure_namespace(name, base)
            self._scene.expected.setdefault(name, 0)

    async def _create_pods(self, op: CreatePods, namespace: str) -> None:
        scene = self._scene
        await scene.namespace(namespace)
        pods = [] if op.steady_state else pod_manifests(scene, op, op.count)
        if op.collect_metrics:
            self._start_churn(namespace, [namespace], {})
        if op.steady_state:
            await keep_steady(scene, op, namespace)
        else:
            await create_pods(scene, op, namespace, pods)
        if op.skip_wait_to_completion:
            scene.expected[namespace] += op.count
        elif not op.steady_state:
            await scene.until_scheduled(namespace, op.count)
        if op.collect_metrics:
            await self._stop()

    async def _create_any(self, op: CreateAny | CreateResourceClaims | CreatePodGroups) -> None:
        count = 1 if op.count is None else op.count
        params = {} if isinstance(op, CreateResourceClaims) else op.template_params
        spelling: Spelling = "exact" if isinstance(op, CreateAny) else "any case"
        if op.namespace:
            await self._scene.namespace(op.namespace)
        for obj in self._scene.manifests(op.template_path, count, params, spelling):
            await self._scene.objects.create_object(obj, op.namespace)

    async def _update_any(self, op: UpdateAny) -> None:
        count = 1 if op.count is None else op.count
        if op.namespace:
            await self._scene.namespace(op.namespace)
        for obj in self._scene.manifests(op.template_path, count, op.template_params, "exact"):
            if op.update_per_second:
                await aio.sleep(1 / op.update_per_second)
            await self._scene.objects.replace(obj, op.namespace, op.subresources)

    async def _wait(self, op: Barrier) -> None:
        scene = self._scene
        for namespace in op.namespaces or list(scene.expected):
            if namespace not in scene.expected:
                raise MoorageError(f"unknown namespace {namespace}")
            count = scene.expected[namespace]
            if op.stage_requirement == "Attempted":
                await scene.until_attempted(namespace, count, op.label_selector)
            else:
                await scene.until_scheduled(namespace, count, op.label_selector)
        if op.stage_requirement != "Attempted":
            # The suite forgets the namespaces; it would create them again, and ours are kept.
            for namespace in op.namespaces or list(scene.expected):
                scene.expected[namespace] = 0

    # --- measuring --------------------------------------------------------------------------

    def _start_churn(self, name: str, namespaces: Sequence[str], labels: Mapping[str, str]) -> None:
        if self._measured is not None:
            raise MoorageError("metrics are being collected already; stop that collection first")
        settle_memory()
        throughput = Throughput(self._scene.clock, namespaces=namespaces, labels=labels)
        self._scene.tallies.on_scheduled.append(throughput.count_pod)
        self._sampling.spawn(throughput.run(), name="samples")
        self._measured = throughput, f"{PREFIX}/{self._name}/{name}"

    async def _stop(self) -> None:
        if self._measured is None:
            raise MoorageError("no metrics are being collected; use startCollectingMetrics first")
        (throughput, name), self._measured = self._measured, None
        self._scene.tallies.on_scheduled.remove(throughput.count_pod)
        await self._sampling.cancel_all()
        self.items += throughput.items(name)
        if self._metrics is not None:
            await aio.sleep(_ANSWERS_SECONDS)
            self.items += histogram_items(await self._metrics(), self._collected, name)


def _shown(op: Operation) -> str:
    count = getattr(op, "count", None)
    return "" if count is None else f" {count}"
