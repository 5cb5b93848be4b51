"""Asks sources of metrics for the loads of nodes: a load-watcher, Prometheus, the metrics API.

Rules mirrored: paypal/load-watcher ``pkg/watcher`` (api/client.go, internal/metricsprovider), which
scheduler-plugins v0.35 uses as a library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from moorage.api.quantity import parse_quantity
from moorage.api.usage import NODE_METRICS
from moorage.base.errors import DecodeError, TransportError
from moorage.client.transport import Answer, Call, Transport
from moorage.client.writes import Client
from moorage.framework.loads.node_loads import (
    AVERAGE,
    CPU_LOAD,
    LATEST,
    MEMORY_LOAD,
    STANDARD_DEVIATION,
    Load,
    NodeLoads,
)

_OK: Final = 200
_WATCHER_SECONDS: Final = 55.0
_PROMETHEUS_SECONDS: Final = 10.0
_PERCENT: Final = 100.0
_METRICS: Final = (
    ("instance:node_cpu:ratio", CPU_LOAD),
    ("instance:node_memory_utilisation:ratio", MEMORY_LOAD),
)
_OPERATORS: Final = (
    ("avg_over_time", AVERAGE),
    ("stddev_over_time", STANDARD_DEVIATION),
)
_RESOURCES: Final = (("cpu", CPU_LOAD), ("memory", MEMORY_LOAD))


class _Window(msgspec.Struct, frozen=True):
    end: int = 0


class _Metrics(msgspec.Struct, frozen=True):
    metrics: tuple[Load, ...] = ()


class _Data(msgspec.Struct, frozen=True):
    nodes: dict[str, _Metrics] | None = msgspec.field(name="NodeMetricsMap", default=None)


class _WatcherMetrics(msgspec.Struct, frozen=True):
    window: _Window = _Window()
    data: _Data = _Data()


class _Sample(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct, frozen=True):
    result_type: str = msgspec.field(name="resultType", default="")
    result: list[_Sample] = msgspec.field(default_factory=list)


class _QueryAnswer(msgspec.Struct, frozen=True):
    status: str = ""
    data: _Vector = _Vector()


async def loads_of_watcher(transport: Transport, path: str = "") -> NodeLoads | None:
    """Return the loads that a load-watcher has; None where it has none at all.

    Raises
    ------
    TransportError
        It does not answer, or answers with another status than 200.
    DecodeError
        The answer is not that of a load-watcher.
    """
    call = Call("GET", f"{path}/watcher", timeout_seconds=_WATCHER_SECONDS)
    body = _body(await transport.request(call), "the load-watcher")
    metrics = _decoded(body, _WatcherMetrics, "the load-watcher")
    if metrics.data.nodes is None:
        return None
    by_node = {name: each.metrics for name, each in metrics.data.nodes.items()}
    return NodeLoads(metrics.window.end, by_node)


async def loads_of_prometheus(
    transport: Transport, path: str, *, now_seconds: int, window: str = "15m"
) -> NodeLoads:
    """Return averages and standard deviations of a window, by the label ``instance``.

    Raises
    ------
    TransportError, DecodeError
        As `loads_of_watcher`; no part of the answers counts then.
    """
    by_node: dict[str, list[Load]] = {}
    for function, operator in _OPERATORS:
        for metric, type_ in _METRICS:
            query = (("query", f"{function}({metric}[{window}])"),)
            call = Call(
                "GET", f"{path}/api/v1/query", query=query, timeout_seconds=_PROMETHEUS_SECONDS
            )
            body = _body(await transport.request(call), "Prometheus")
            answer = _decoded(body, _QueryAnswer, "Prometheus")
            for sample in answer.data.result:
                value = _number(sample.value[1]) * _PERCENT
                node = sample.metric.get("instance", "")
                by_node.setdefault(node, []).append(Load(type_, operator, value))
    return NodeLoads(now_seconds, {name: tuple(loads) for name, loads in by_node.items()})


async def loads_of_metrics_server(
    client: Client, capacities: Mapping[str, Mapping[str, int]], *, now_seconds: int
) -> NodeLoads:
    """Return what nodes use now, from ``metrics.k8s.io``.

    Parameters
    ----------
    client
        To the API server.
    capacities
        By node: the capacities by resource, nano units. Other nodes have no loads.
    now_seconds
        Unix time.

    Raises
    ------
    ApiError, TransportError
        The API server refuses, or does not answer.
    """
    listed: Any = (await client.list(NODE_METRICS)).get("items") or ()
    by_node = {}
    for item in listed:
        name = item["metadata"]["name"]
        capacity = capacities.get(name)
        if capacity is not None:
            by_node[name] = tuple(_used(item.get("usage") or {}, capacity))
    return NodeLoads(now_seconds, by_node)


def _used(usage: Mapping[str, Any], capacity: Mapping[str, int]) -> Iterable[Load]:
    for resource, type_ in _RESOURCES:
        total = capacity.get(resource, 0)
        if total > 0:
            used = parse_quantity(usage.get(resource, "0"))
            yield Load(type_, LATEST, _PERCENT * used / total)


def _body(answer: Answer, source: str) -> bytes:
    if answer.status != _OK:
        raise TransportError(f"{source} answered with status {answer.status}")
    return answer.body


def _decoded(body: bytes, type_: type[Any], source: str) -> Any:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise DecodeError(f"{source} sent no metrics: {problem}") from problem


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
