"""Workloads at an API server in another process, with a scheduler of its own, over HTTPS."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from moorage.api.resources import NAMESPACES, NODES, PRIORITY_CLASSES
from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage.client.http_transport import HttpTransport
from moorage.client.kubeconfig import find_access
from moorage.client.requests import Selection
from moorage.client.writes import Client
from moorage_lab.bench.processes import Child, wait_for
from moorage_lab.bench.scheduler_perf.clusters import Cluster
from moorage_lab.bench.scheduler_perf.files import OWN, read_files
from moorage_lab.bench.scheduler_perf.processes import SchedulerProcess, at_kubeconfig, over_https
from moorage_lab.bench.scheduler_perf.run_suite import Failed, Open, Suite, SuiteReport
from moorage_lab.bench.scheduler_perf.run_workload import Planned

CLOCK = SystemClock()


async def run(opened: Open, names: str) -> SuiteReport:
    """Run the small workload of a case."""
    suite = Suite(opened, clock=CLOCK, streams=Streams(1), names=names, labels="short")
    return await suite.run(read_files(OWN))


def process_of(planned: Planned) -> SchedulerProcess:
    """Return how the scheduler of a workload is started."""
    return SchedulerProcess(
        config=planned.config_path, gates=planned.config.gates, seed=1, clock=CLOCK
    )


@pytest.mark.slow
async def test_a_workload_runs_over_https_with_the_metrics_of_the_scheduler() -> None:
    def opened(planned: Planned, failed: Failed) -> AbstractAsyncContextManager[Cluster]:
        return over_https(process_of(planned), failed)

    (workload,) = (await run(opened, "GangScheduling")).workloads
    assert (workload.outcome, workload.messages) == ("done", ())
    metrics = {item.metric for item in workload.items}
    assert {"SchedulingThroughput", "scheduler_plugin_execution_duration_seconds"} < metrics


@pytest.mark.slow
async def test_a_cluster_of_a_kubeconfig_is_given_back_as_it_was(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"

    def opened(planned: Planned, failed: Failed) -> AbstractAsyncContextManager[Cluster]:
        return at_kubeconfig(str(kubeconfig), process_of(planned), failed, clock=CLOCK)

    flags = ["up", "--nodes", "0", "--empty", "--no-scheduler", "--port", "0", "-o", "quiet"]
    server = Child(
        "server", [*flags, "--kubeconfig-out", str(kubeconfig)], log=tmp_path / "server.log"
    )
    await server.start()
    try:
        await wait_for(kubeconfig, server, seconds=60)
        transport = HttpTransport(find_access(str(kubeconfig), clock=CLOCK), user_agent="test")
        try:
            client = Client(transport, rng=Streams(1).stream("test"))
            before = await names(client)
            (workload,) = (await run(opened, "PreemptionBasic")).workloads
            assert (workload.outcome, workload.messages) == ("done", ())
            assert await names(client) == before
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
            await client.create(NODES, node)
            (refused,) = (await run(opened, "PreemptionBasic")).workloads
            assert refused.outcome == "failed"
            assert "has 1 nodes, and pods would run on them" in refused.messages[0]
        finally:
            await transport.close()
    finally:
        await server.stop()


async def names(client: Client) -> list[str]:
    """Return the names of the objects that a workload makes outside of namespaces."""
    found = []
    for resource in (NODES, NAMESPACES, PRIORITY_CLASSES):
        listed: Any = await client.list(resource, Selection())
        found += [f"{resource.plural}/{each['metadata']['name']}" for each in listed["items"]]
    return sorted(found)
