"""One workload: checked and filled in, then carried out in a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from moorage.api.resources import PODS
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import ConfigError, UsageError
from moorage.base.rng import Streams
from moorage.client.reflector import Reflector
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration
from moorage_lab.bench.scheduler_perf.cases import TestCase, Workload
from moorage_lab.bench.scheduler_perf.cleaning import remove_all
from moorage_lab.bench.scheduler_perf.clusters import Cluster
from moorage_lab.bench.scheduler_perf.data_items import DataItem
from moorage_lab.bench.scheduler_perf.executor import Executor, Progress
from moorage_lab.bench.scheduler_perf.gates import gates_of
from moorage_lab.bench.scheduler_perf.histograms import collects
from moorage_lab.bench.scheduler_perf.objects import NotSupportedError, Objects
from moorage_lab.bench.scheduler_perf.operations import CreatePods, Operation, templates_of
from moorage_lab.bench.scheduler_perf.parameters import Resolved, resolve
from moorage_lab.bench.scheduler_perf.pod_tallies import CountedPod, PodTallies
from moorage_lab.bench.scheduler_perf.scene import Scene
from moorage_lab.bench.scheduler_perf.templates import Templates


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that can be run.

    Parameters
    ----------
    name
        ``<test case>/<workload>``.
    case
        The test case.
    operations
        The operations, with the numbers of the workload.
    config, config_path
        The scheduler's configuration, with its feature gates, and its file if it has one.
    """

    name: str
    case: TestCase
    operations: tuple[Operation, ...]
    config: LoadedConfiguration
    config_path: Path | None = None


def plan(case: TestCase, workload: Workload) -> tuple[Planned, list[str]]:
    """Return a workload that can be run, and notes about it.

    Raises
    ------
    NotSupportedError
        It asks for opcodes, feature gates or fields that moorage does not have; all are named.
    ConfigError
        A parameter, a template, or the scheduler's configuration has faults; all are listed.
    """
    gates = gates_of(case.gates(workload))
    missing = [f"opcode {opcode}" for opcode in dict.fromkeys(case.unknown)]
    missing += gates.unsupported
    if case.written.scheduler_api_client_qps:
        missing.append("field schedulerApiClientQPS")
    if any(isinstance(op, CreatePods) and op.nominated_node_name for op in case.operations):
        missing.append("field nominatedNodeName of createPods")
    if missing:
        raise NotSupportedError(*missing)
    _check_threshold(case, workload)
    faults: list[str] = []
    resolved, notes = Resolved((), ()), list(gates.notes)
    try:
        resolved = resolve(case.operations, workload.params)
    except ConfigError as error:
        faults += error.faults
    faults += _faults_of_templates(case)
    config, path = LoadedConfiguration(), None
    if case.written.scheduler_config_path:
        path = Templates(case.folder).path_of(case.written.scheduler_config_path)
        try:
            config = load_config(path)
        except ConfigError as error:
            faults += (f"schedulerConfigPath: {path}: {fault}" for fault in error.faults)
    if faults:
        raise ConfigError(faults)
    if resolved.unused:
        notes.append(f"no operation uses the parameters {', '.join(resolved.unused)}")
    planned = Planned(
        name=f"{case.name}/{workload.name}",
        case=case,
        operations=resolved.operations,
        config=msgspec.structs.replace(config, gates=gates.switched),
        config_path=path,
    )
    return planned, notes


def _faults_of_templates(case: TestCase) -> Iterator[str]:
    """Yield a sentence for every template that cannot be read."""
    templates = Templates(case.folder)
    for index, op in enumerate(case.operations):
        for name in templates_of(op, case.written.default_pod_template_path):
            try:
                templates.check_template(name)
            except UsageError as error:
                yield f"op {index} ({op.opcode}): {error}"


def _check_threshold(case: TestCase, workload: Workload) -> None:
    """Refuse a threshold for a number that the workload does not measure.

    Raises
    ------
    ConfigError
        The metric is not collected, or the bucket is not named.
    """
    selected = case.threshold_metric(workload)
    if not selected.data_bucket:
        raise ConfigError([f"threshold: metric {selected.name} is selected without a dataBucket"])
    if not collects(case.written.metrics_collector_config, selected):
        shown = "".join(f" {label}={value}" for label, value in selected.labels.items())
        raise ConfigError(
            [f"threshold: metric {selected.name}{shown} is selected, but not collected"]
        )


class Running:
    """One run of a workload.

    Parameters
    ----------
    planned
        The workload.
    clock, streams
        Time and randomness.
    wait_seconds
        How long an operation waits for pods.
    progress
        Called with each operation.
    """

    def __init__(
        self,
        planned: Planned,
        *,
        clock: Clock,
        streams: Streams,
        wait_seconds: float,
        progress: Progress,
    ) -> None:
        self._planned = planned
        self._clock = clock
        self._streams = streams
        self._wait_seconds = wait_seconds
        self._progress = progress

    async def run(self, cluster: Cluster, items: list[DataItem], messages: list[str]) -> None:
        """Carry out the operations; add results and messages to the lists, failed or not.

        Raises
        ------
        MoorageError
            An operation failed.
        """
        tallies, watching = PodTallies(), TaskOwner()
        reflector: Reflector[CountedPod] = Reflector(
            cluster.transport,
            PODS,
            CountedPod,
            handler=tallies,
            clock=self._clock,
            rng=self._streams.stream("bench/reflector"),
        )
        scene = self._scene(cluster, tallies)
        written = self._planned.case.written
        executor = Executor(
            scene,
            metrics=cluster.metrics,
            collected=written.metrics_collector_config,
            gates=self._planned.config.gates,
            name=self._planned.name,
            progress=self._progress,
        )
        watching.spawn(reflector.run(), name="watch pods")
        try:
            await reflector.synced.wait()
            await executor.run(self._planned.operations)
        finally:
            items += executor.items
            messages += scene.complaints
            if cluster.shared:
                messages += await remove_all(scene.objects)
            await watching.cancel_all()

    def _scene(self, cluster: Cluster, tallies: PodTallies) -> Scene:
        case = self._planned.case
        return Scene(
            Objects(cluster.client),
            tallies,
            Templates(case.folder),
            default_pod=case.written.default_pod_template_path,
            clock=self._clock,
            rng=self._streams.stream("bench/scheduler-perf"),
            wait_seconds=self._wait_seconds,
        )
