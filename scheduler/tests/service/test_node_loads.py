"""The loads of nodes: fetched beside decisions from each kind of source, in virtual time.

The wire forms are those of paypal/load-watcher and of Prometheus' HTTP API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import msgspec
import pytest

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import TransportError
from moorage.client.transport import Answer, Call
from moorage.config.load import parse_config
from moorage.framework.loads.node_loads import Load, LoadReport
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from tests.scenarios.over_https import run_scenario

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {{enabled: [{{name: TargetLoadPacking, weight: 100}}]}}
  pluginConfig:
  - {{name: TargetLoadPacking, args: {{{args}}}}}
"""
WATCHER = "watcherAddress: 'http://watcher.example:2020/base'"
PROMETHEUS = "metricProvider: {type: Prometheus, address: 'http://prometheus.example:9090'}"
Source = Callable[[Call], bytes]


class Fake:
    """A source that answers by a function; None stands for no answer."""

    def __init__(self, answer: Source) -> None:
        self.answer = answer
        self.calls: list[Call] = []

    async def request(self, call: Call) -> Answer:
        self.calls.append(call)
        return Answer(200, {}, self.answer(call))

    async def close(self) -> None:
        pass


def watcher(call: Call) -> bytes:
    metrics = {"n1": 90.0, "n2": 30.0}
    return msgspec.json.encode(
        {
            "timestamp": 1,
            "window": {"duration": "15m", "start": 0, "end": 900},
            "source": "x",
            "data": {
                "NodeMetricsMap": {
                    name: {"metrics": [{"type": "CPU", "operator": "AVG", "value": value}]}
                    for name, value in metrics.items()
                }
            },
        }
    )


def prometheus(call: Call) -> bytes:
    query = dict(call.query)["query"]
    value = "0.3" if query.startswith("avg") else "0.1"
    sample = {"metric": {"instance": "n2"}, "value": [1.5, value]}
    data = {"resultType": "vector", "result": [sample] if "cpu" in query else []}
    return msgspec.json.encode({"status": "success", "data": data})


def play(args: str, scenario: Any, source: Fake | None = None) -> None:
    """Run a scenario; the scheduler asks the fake source in place of a server."""
    config = parse_config(CONFIG.format(args=args))

    async def main(clock: Clock) -> None:
        nodes = [node_manifest("n1", cpu="4"), node_manifest("n2", cpu="4")]
        async with VirtualCluster(clock, nodes=nodes, config=config) as cluster:
            await scenario(cluster)

    with mock.patch("moorage.service.loads.fetcher.over_http", return_value=source):
        run_scenario(main, https=False)


def report_of(cluster: VirtualCluster) -> LoadReport:
    (report,) = cluster.scheduler.core.loads.by_source.values()
    return report


def test_a_load_watcher_is_asked_and_the_pod_goes_below_the_target():
    source = Fake(watcher)

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.until(lambda: report_of(cluster).latest is not None)
        assert [call.path for call in source.calls] == ["/base/watcher"]
        await cluster.create_objects(pod_manifest("p", cpu="100m"))
        await cluster.until(lambda: cluster.node_of("p") != "")
        assert cluster.node_of("p") == "n2"

    play(WATCHER, scenario, source)


def test_prometheus_is_asked_for_averages_and_deviations():
    source = Fake(prometheus)

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.until(lambda: report_of(cluster).latest is not None)
        assert [dict(call.query)["query"] for call in source.calls] == [
            "avg_over_time(instance:node_cpu:ratio[15m])",
            "avg_over_time(instance:node_memory_utilisation:ratio[15m])",
            "stddev_over_time(instance:node_cpu:ratio[15m])",
            "stddev_over_time(instance:node_memory_utilisation:ratio[15m])",
        ]
        latest = report_of(cluster).latest
        assert latest is not None
        assert latest.by_node == {"n2": (Load("CPU", "AVG", 30), Load("CPU", "STD", 10))}

    play(PROMETHEUS, scenario, source)


def test_the_metrics_api_of_the_server_is_asked_by_default():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("busy", cpu="1"))
        await cluster.until(lambda: cluster.phase_of("busy") == "Running")
        await aio.sleep(120)
        latest = report_of(cluster).latest
        assert latest is not None
        used = {
            name: {each.type: each.value for each in loads}
            for name, loads in latest.by_node.items()
        }
        assert used[cluster.node_of("busy")]["CPU"] == pytest.approx(25)

    play("targetUtilization: 50", scenario)


@pytest.mark.parametrize("body", [b"no json", b"[]", b'{"data": {"NodeMetricsMap": 3}}'])
def test_loads_that_were_read_stay_when_the_source_fails(body: bytes):
    source = Fake(watcher)

    def refuse(_call: Call) -> bytes:
        raise TransportError("no route")

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.until(lambda: report_of(cluster).latest is not None)
        before = report_of(cluster).latest
        for answer in (lambda _call: body, refuse):
            source.answer = answer
            asked = len(source.calls)
            await aio.sleep(31)
            assert len(source.calls) > asked
            assert report_of(cluster).latest is before
        await cluster.create_objects(pod_manifest("p"))
        await cluster.until(lambda: cluster.node_of("p") != "")

    play(WATCHER, scenario, source)
