"""A scheduler with API servers of every supported version: what it misses, and that it schedules.

The versions come from the table of watched kinds; the page of the table is generated from it, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from moorage.api.resources import POD_GROUPS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.service.kinds import POD_GROUP, SERVER_VERSIONS, WATCHED, WatchedKind
from moorage.testing.builders import node_manifest, pod_manifest
from moorage.testing.virtual_cluster import VirtualCluster
from moorage.testing.virtual_loop import run_virtual
from tests.client.fakes import ScriptedTransport, Stream, failure

DEVICES = ["deviceclasses", "resourceslices", "resourceclaims"]
# Served by default: resource.k8s.io/v1 from 1.34 on; PodGroup, with a gate, in 1.36 as v1alpha2 and
# in 1.37 as v1beta1. Every other kind is stable since 1.24 or longer.
OLD = [*DEVICES, "podgroups"]
LACKING: dict[str, list[str]] = {
    **{f"1.{minor}": OLD for minor in range(28, 34)},
    "1.34": ["podgroups"],
    "1.35": ["podgroups"],
    "1.36": [],
    "1.37": [],
}


def _path(kind: WatchedKind) -> str:
    version = kind.resource.api_version
    return f"/{'apis' if kind.resource.group else 'api'}/{version}/{kind.resource.plural}"


class ServerOf:
    """A server that serves only what one version serves of the kinds that are watched."""

    def __init__(self, inner: Transport, version: str) -> None:
        self.inner = inner
        self.missing = {_path(k) for k in (*WATCHED, POD_GROUP) if not k.served_by(version)}
        self.serves = "v1beta1" if version == "1.37" else "v1alpha2"

    async def request(self, call: Call) -> Answer:
        if self._lacks(call):
            return Answer(404, {}, msgspec.json.encode(failure(404, "NotFound")))
        return _of_1_37(await self.inner.request(_of_1_36(call)), call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        refusing = ScriptedTransport(Stream(failure(404, "NotFound"), status=404))
        transport = refusing if self._lacks(call) else self.inner
        async with transport.stream(_of_1_36(call)) as lines:
            yield _Lines(lines) if "v1beta1" in call.path else lines

    def _lacks(self, call: Call) -> bool:
        group, _, rest = call.path.removeprefix("/apis/").partition("/")
        if group == "scheduling.k8s.io" and "/podgroups" in call.path:
            return _path(POD_GROUP) in self.missing or rest.partition("/")[0] != self.serves
        return call.path in self.missing

    async def close(self) -> None:
        await self.inner.close()


class _Lines:
    """A watch whose objects have the form of 1.37."""

    def __init__(self, inner: LineStream) -> None:
        self.inner, self.status, self.headers = inner, inner.status, inner.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in self.inner:
            yield _renamed(line)


def _of_1_36(call: Call) -> Call:
    return msgspec.structs.replace(call, path=call.path.replace("v1beta1", "v1alpha2"))


def _of_1_37(answer: Answer, call: Call) -> Answer:
    if "v1beta1" not in call.path:
        return answer
    return Answer(answer.status, answer.headers, _renamed(answer.body))


def _renamed(body: bytes) -> bytes:
    text = body.replace(b"scheduling.k8s.io/v1alpha2", b"scheduling.k8s.io/v1beta1")
    return text.replace(b'"disruptionMode":"PodGroup"', b'"disruptionMode":{"all":{}}')


def test_the_table_has_every_supported_version():
    assert list(LACKING) == list(SERVER_VERSIONS)


@pytest.mark.parametrize("version", SERVER_VERSIONS)
def test_pods_are_scheduled_with_a_server_of(version: str, caplog: pytest.LogCaptureFixture):
    clock = ManualClock()
    gates = feature_gates({"GenericWorkload": True, "GangScheduling": True})

    async def main() -> None:
        async with VirtualCluster(
            clock,
            nodes=[node_manifest("n1")],
            config=LoadedConfiguration(gates=gates),
            around=lambda inner: ServerOf(inner, version),
        ) as cluster:
            await cluster.create(pod_manifest("p"))
            await cluster.until(lambda: cluster.node_of("p") == "n1")
            await aio.sleep(5)
            assert len(await cluster.events("p", reason="Scheduled")) == 1

    run_virtual(main(), clock)
    told = [each.getMessage() for each in caplog.records if "does not serve" in each.getMessage()]
    names = sorted(line.split(" does not serve ")[1].split(" of ")[0] for line in told)
    assert names == sorted(LACKING[version])


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_a_gang_is_placed_all_or_none_and_its_status_is_written_with_a_server_of(version: str):
    clock = ManualClock()
    gates = feature_gates({"GenericWorkload": True, "GangScheduling": True})
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": "PodGroup"},
    }

    async def main() -> None:
        async with VirtualCluster(
            clock,
            nodes=[node_manifest("n1", cpu="3")],
            config=LoadedConfiguration(gates=gates),
            around=lambda inner: ServerOf(inner, version),
        ) as cluster:
            await cluster.create(group)
            member: Any = {"schedulingGroup": {"podGroupName": "g"}}
            await cluster.create(pod_manifest("a", cpu="2", **member))
            await cluster.create(pod_manifest("b", cpu="2", **member))
            await aio.sleep(5)
            assert not cluster.node_of("a")
            assert not cluster.node_of("b")
            groups = cluster.scheduler.core.snapshot.listers.pod_groups
            kept = groups.get("g", namespace="default")
            assert kept is not None
            assert kept.spec.disrupted_whole
            stored: Any = await cluster.client.get(POD_GROUPS, "g", namespace="default")
            (told,) = stored["status"]["conditions"]
            assert (told["type"], told["reason"]) == ("PodGroupScheduled", "Unschedulable")
            await cluster.play([node_manifest("n2", cpu="3")])
            await cluster.until(lambda: bool(cluster.node_of("a") and cluster.node_of("b")))

    run_virtual(main(), clock)
