"""A scheduler with API servers of every supported version: what it misses, and that it schedules.

What each version serves is recorded (`scheduler.tests.service.served_apis`). The table of watched
kinds, from which the page of versions is generated, is compared with the recordings. Left out: the
form of objects in older versions, which the recordings do not have.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any

import msgspec
import pytest

from moorage.api.resources import POD_GROUPS, RESOURCES
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import TransportError
from moorage.client.served_version import VERSIONS
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.service.intake.kinds import DEVICE_TAINT_RULE, JOB, POD_GROUP, SERVER_VERSIONS, WATCHED
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.client.fakes import ScriptedTransport, Stream, failure
from scheduler.tests.service.served_apis import Served
from tests.deploy.chart import kept, objects
from tests.deploy.rights import Script, granted, play
from tests.deploy.scenarios import SCENARIOS

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


ABSENT = Answer(404, {}, msgspec.json.encode(failure(404, "NotFound")))


def served_with_groups(version: str) -> Served:
    """Return what a version serves by default, and PodGroups if it has them."""
    return Served(version, more=[f"{POD_GROUPS.group}/{each}" for each in VERSIONS[POD_GROUPS]])


class ServerOf:
    """A server that answers only calls that one version knows."""

    def __init__(self, inner: Transport, version: str) -> None:
        self.inner = inner
        self._served = served_with_groups(version)

    async def request(self, call: Call) -> Answer:
        if self._served.lacks(call):
            return ABSENT
        return _of_1_37(await self.inner.request(_of_1_36(call)), call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        refusing = ScriptedTransport(Stream(failure(404, "NotFound"), status=404))
        transport = refusing if self._served.lacks(call) else self.inner
        async with transport.stream(_of_1_36(call)) as lines:
            yield _Lines(lines) if "v1beta1" in call.path else lines

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
def test_the_table_of_watched_kinds_agrees_with_what_was_recorded(version: str):
    served = served_with_groups(version)
    groups = {f"{POD_GROUPS.group}/{each}" for each in VERSIONS[POD_GROUPS]}
    for kind in (*WATCHED, JOB, POD_GROUP, DEVICE_TAINT_RULE):
        names = groups if kind is POD_GROUP else {kind.resource.api_version}
        found = any(served.has(name, kind.resource.plural, "list") for name in names)
        assert kind.served_by(version) == found, kind.resource.qualified


@pytest.mark.parametrize("version", SERVER_VERSIONS)
def test_every_right_of_the_scheduler_is_about_something_that_is_served(version: str):
    served = Served(version)
    versions = {(each.group, each.plural): each.api_version for each in RESOURCES}
    absent = set()
    for right in granted(objects(kept("second-scheduler.yaml"))):
        plural = right.resource.partition("/")[0]
        # The server asks for this right about a write of the status; it is no resource.
        permission_only = right.resource == "resourceclaims/binding"
        named = versions[right.group, plural]
        if not permission_only and not served.has(named, right.resource, right.verb):
            absent.add(plural)
    assert sorted(absent) == sorted({*DEVICES} & {*LACKING[version]})


@pytest.mark.parametrize("version", SERVER_VERSIONS)
def test_pods_are_scheduled_with_a_server_of(version: str, caplog: pytest.LogCaptureFixture):
    clock = ManualClock()
    gates = feature_gates({"GenericWorkload": True, "GangScheduling": True}, "1.36")

    async def main() -> None:
        async with VirtualCluster(
            clock,
            nodes=[node_manifest("n1")],
            config=LoadedConfiguration(gates=gates),
            around=lambda inner: ServerOf(inner, version),
        ) as cluster:
            await cluster.create_objects(pod_manifest("p"))
            await cluster.until(lambda: cluster.node_of("p") == "n1")
            await aio.sleep(5)
            assert len(await cluster.events("p", reason="Scheduled")) == 1

    run_virtual(main(), clock)
    told = [each.getMessage() for each in caplog.records if "does not serve" in each.getMessage()]
    names = sorted(line.split(" does not serve ")[1].split(" of ")[0] for line in told)
    assert names == sorted(LACKING[version])


NEEDS_DEVICES = {
    "sees every change at once",
    "allocates a device",
    "allocates a device that has changed",
    "makes the claim of an extended resource",
    "takes back a claim that it made",
}


@pytest.mark.slow
@pytest.mark.parametrize("version", SERVER_VERSIONS)
def test_every_part_of_the_work_is_done_with_a_server_of(version: str):
    served, refused = Served(version), dict[str, None]()
    lacking = {*DEVICES} & {*LACKING[version]}
    for name, scenario in SCENARIOS.items():
        wanted: AbstractContextManager[Any] = nullcontext()
        if lacking and name in NEEDS_DEVICES:
            wanted = pytest.raises(AssertionError, match=r"not reached|not seen")
        with wanted:
            play(
                scenario.run,
                objects(kept("second-scheduler.yaml")),
                nodes=scenario.nodes,
                config=scenario.config,
                streams_lists=scenario.streams_lists,
                script=_as_version(served, scenario.script(), refused),
            )
    # Nothing but the lists was asked for, so nothing was decided by what the server lacks.
    assert sorted(refused) == sorted(f"GET /apis/resource.k8s.io/v1/{each}" for each in lacking)


def _as_version(served: Served, script: Script, refused: dict[str, None]) -> Script:
    """Return a script that answers 404 to what a version lacks, and notes it."""

    def answer(call: Call) -> Answer | TransportError | None:
        if not served.lacks(call):
            return script(call)
        refused[f"{call.method} {call.path}"] = None
        return ABSENT

    return answer


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_a_gang_is_placed_all_or_none_and_its_status_is_written_with_a_server_of(version: str):
    clock = ManualClock()
    gates = feature_gates({"GenericWorkload": True, "GangScheduling": True}, "1.36")
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
            await cluster.create_objects(group)
            member: Any = {"schedulingGroup": {"podGroupName": "g"}}
            await cluster.create_objects(pod_manifest("a", cpu="2", **member))
            await cluster.create_objects(pod_manifest("b", cpu="2", **member))
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
