"""A scheduler with API servers of every supported version: what it misses, and that it schedules.

The versions come from the table of watched kinds; the page of the table is generated from it, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

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
# Served by default: resource.k8s.io/v1 from 1.34 on; scheduling.k8s.io/v1alpha2 in 1.36 only,
# 1.37 has v1beta1 in its place. Every other kind is stable since 1.24 or longer.
OLD = [*DEVICES, "podgroups"]
LACKING: dict[str, list[str]] = {
    **{f"1.{minor}": OLD for minor in range(28, 34)},
    "1.34": ["podgroups"],
    "1.35": ["podgroups"],
    "1.36": [],
    "1.37": ["podgroups"],
}


def _path(kind: WatchedKind) -> str:
    version = kind.resource.api_version
    return f"/{'apis' if kind.resource.group else 'api'}/{version}/{kind.resource.plural}"


class ServerOf:
    """A server that serves only what one version serves of the kinds that are watched."""

    def __init__(self, inner: Transport, version: str) -> None:
        self.inner = inner
        self.missing = {_path(k) for k in (*WATCHED, POD_GROUP) if not k.served_by(version)}

    async def request(self, call: Call) -> Answer:
        if call.path in self.missing:
            return Answer(404, {}, msgspec.json.encode(failure(404, "NotFound")))
        return await self.inner.request(call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        refusing = ScriptedTransport(Stream(failure(404, "NotFound"), status=404))
        lacks = call.path in self.missing
        async with (refusing if lacks else self.inner).stream(call) as lines:
            yield lines

    async def close(self) -> None:
        await self.inner.close()


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
