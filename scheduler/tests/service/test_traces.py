"""Traces of attempts in a whole cluster in virtual time: which spans there are, and their parents.

How spans reach a collector is in scheduler/tests/observe/traces/test_otlp.py, in
scheduler/tests/service/test_span_sender.py and in tests/cli/run/test_tracing.py.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.observe.traces.attempts import MILLION, Traces
from moorage.observe.traces.span import Span
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

DECIDING = ["PreFilter", "Filter", "PreScore", "Score"]


class Listening:
    """A transport that keeps the calls of the scheduler with a ``traceparent``."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.parents: dict[str, str] = {}

    async def request(self, call: Call) -> Answer:
        found = dict(call.headers).get("traceparent")
        if found is not None:
            self.parents[call.path] = found
        return await self.inner.request(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        assert not call.headers
        return self.inner.stream(call)

    async def close(self) -> None:
        await self.inner.close()


class Traced:
    """A virtual cluster of two nodes with a traced scheduler."""

    def __init__(self, rate_per_million: int = MILLION) -> None:
        self.clock = ManualClock()
        self.spans: list[Span] = []
        rng = Streams(7).stream("traces")
        self.traces = Traces(
            self.clock, rng, rate_per_million=rate_per_million, emit=self.spans.extend
        )
        self.listening: list[Listening] = []
        self.cluster = VirtualCluster(
            self.clock,
            nodes=[node_manifest(name, cpu="2") for name in ("n1", "n2")],
            around=self._listened,
            traces=self.traces,
        )

    def _listened(self, transport: Transport) -> Transport:
        self.listening.append(Listening(transport))
        return self.listening[-1]

    @property
    def parents(self) -> dict[str, str]:
        return self.listening[0].parents

    def run(self, *pods: tuple[str, str]) -> None:
        async def main() -> None:
            async with self.cluster as cluster:
                for name, cpu in pods:
                    await cluster.create_objects(pod_manifest(name, cpu=cpu))
                await aio.sleep(5)

        run_virtual(main(), self.clock)

    def of(self, pod: str) -> list[Span]:
        """The spans of a pod's only attempt, the span of the attempt first."""
        (whole,) = [each for each in self.spans if each.attributes.get("k8s.pod.name") == pod]
        return [each for each in self.spans if each.trace_id == whole.trace_id]


def test_the_trace_of_a_bound_pod_is_whole_and_its_binding_names_the_span_of_the_call() -> None:
    traced = Traced()
    traced.run(("web", "1"))
    whole, *parts = traced.of("web")
    by_name = {each.name: each for each in parts}
    decide = by_name["decide"]
    assert whole.parent_id == 0
    assert [each.name for each in parts if each.parent_id == decide.span_id] == DECIDING
    assert {each.name for each in parts if each.parent_id == whole.span_id} == {
        "decide",
        "Reserve",
        "Permit",
        "Bind",
    }
    call = by_name["API POST"]
    assert call.parent_id == by_name["Bind"].span_id
    assert call.is_call
    assert traced.parents == {
        "/api/v1/namespaces/default/pods/web/binding": (
            f"00-{call.trace_id:032x}-{call.span_id:016x}-01"
        )
    }
    assert whole.failure is None
    assert whole.attributes == {
        "k8s.namespace.name": "default",
        "k8s.pod.name": "web",
        "k8s.pod.uid": whole.attributes["k8s.pod.uid"],
        "k8s.node.name": whole.attributes["k8s.node.name"],
        "moorage.profile": "default-scheduler",
        "moorage.attempt": 1,
        "moorage.end": "bound",
    }
    assert decide.attributes == {"moorage.nodes.evaluated": 2, "moorage.nodes.feasible": 2}
    assert {each.trace_id for each in parts} == {whole.trace_id}
    assert len({each.span_id for each in traced.spans}) == len(traced.spans)
    for each in traced.spans:
        assert whole.start_ns <= each.start_ns <= each.end_ns <= whole.end_ns


def test_a_pod_without_a_node_has_a_trace_that_says_why_and_is_no_failure() -> None:
    traced = Traced()
    traced.run(("giant", "9"))
    whole, decide, *points = traced.of("giant")
    assert whole.failure is None
    assert whole.attributes["moorage.end"] == "requeued"
    assert str(whole.attributes["moorage.message"]).startswith("0/2 nodes are available: 2 Insuff")
    assert [each.name for each in points] == ["PreFilter", "Filter", "PostFilter"]
    assert {each.parent_id for each in points} == {decide.span_id}


@pytest.mark.parametrize("rate", [0, MILLION // 2])
def test_an_attempt_that_is_not_sampled_has_no_span_and_sends_no_header(rate: int) -> None:
    traced = Traced(rate)
    traced.run(*[(f"p{number}", "10m") for number in range(40)])
    wholes = [each for each in traced.spans if not each.parent_id]
    assert len(traced.parents) == len(wholes)
    assert bool(rate) == (0 < len(wholes) < 40)
    assert all(traced.cluster.node_of(f"p{number}") for number in range(40))


def test_the_calls_that_evict_victims_are_in_the_trace_of_the_attempt_that_chose_them() -> None:
    traced = Traced()

    async def main() -> None:
        async with traced.cluster as cluster:
            for name in ("low1", "low2"):
                await cluster.create_objects(pod_manifest(name, cpu="2"))
            await aio.sleep(5)
            await cluster.create_objects(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": "first"},
                    "value": 10,
                }
            )
            await cluster.create_objects(pod_manifest("high", cpu="2", priorityClassName="first"))
            await cluster.until(lambda: bool(cluster.node_of("high")), seconds=120)

    run_virtual(main(), traced.clock)
    (first,) = [
        each
        for each in traced.spans
        if each.attributes.get("k8s.pod.name") == "high" and each.attributes["moorage.attempt"] == 1
    ]
    calls = [each for each in traced.spans if each.trace_id == first.trace_id and each.is_call]
    assert {each.name for each in calls} == {"API PATCH", "API DELETE"}
    assert {each.parent_id for each in calls} == {first.span_id}
    (victim,) = [each for each in calls if each.name == "API DELETE"]
    path = str(victim.attributes["url.path"])
    assert path in traced.parents
    assert path.rpartition("/")[2] in {"low1", "low2"}
