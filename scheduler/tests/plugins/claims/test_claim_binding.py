"""What DynamicResources writes: PreBind, Unreserve and PostFilter against an API server.

The server is real and the time virtual; the test plays the watch, and whoever else writes.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import pytest

from moorage.api.codec import from_dict, to_dict
from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from moorage.api.resources import PODS, RESOURCE_CLAIMS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.errors import ApiError, TransportError
from moorage.base.rng import Streams
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.transport import Answer, Call
from moorage.client.writes import Client
from moorage.config.args import default_args
from moorage.framework.effects import NoEffects
from moorage.framework.handle import Handle
from moorage.framework.status import SUCCESS, ReasonTable, Status, error
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.binding.api_binding import ApiBinding
from moorage.service.binding.slots import BindingSlots
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.plugins.claims.builders import (
    claim,
    device_class,
    devices,
    offered,
    put,
    wanting,
)
from scheduler.tests.plugins.claims.test_dynamic_resources import Asked

PROTECTED = ["resource.kubernetes.io/delete-protection"]
CONDITIONS = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}


class Told(NoEffects):
    """Effects that are kept for the test to look at, and to do."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.work: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self.activated: list[str] = []

    def emit(self, pod: Pod, *, kind: str, reason: str, action: str, note: str) -> None:
        self.notes.append(f"{kind} {reason} {action} {pod.metadata.name}: {note}")

    def in_background(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        self.work.append((what, work))

    def activate(self, pods: Iterable[Pod]) -> None:
        self.activated += [pod.metadata.name for pod in pods]


class Losing(InProcessTransport):
    """Carries calls, and loses the answers to writes of some paths."""

    lost = ""
    """Pattern of the calls whose answers are lost: method and path."""
    slow_seconds = 0.0
    """How late the answer to the next call is."""

    async def request(self, call: Call) -> Answer:
        late, self.slow_seconds = self.slow_seconds, 0.0
        answer = await super().request(call)
        if late:
            await aio.sleep(late)
        if re.fullmatch(self.lost, f"{call.method} {call.path}"):
            raise TransportError("the answer did not come")
        return answer


class World:
    """A server, the plugin, and what the plugin sees."""

    def __init__(self, clock: ManualClock, snapshot: Snapshot) -> None:
        self.clock = clock
        self.snapshot = snapshot
        streams = Streams(1)
        self.server = ApiServer(served_kinds(), clock=clock, streams=streams)
        bootstrap(self.server)
        self.transport = Losing(self.server)
        self.client = Client(self.transport, rng=streams.stream("test"))
        self.told = Told()
        self.tasks = TaskOwner()
        handle = Handle(
            profile_name="default-scheduler",
            snapshot=snapshot,
            reasons=ReasonTable(),
            clock=clock,
            streams=streams,
            client=ApiBinding(self.client, lambda *_: Pod(), BindingSlots()),
            effects=self.told,
        )
        entry = in_tree_registry().find("DynamicResources")
        assert entry is not None
        self.plugin: Any = entry.make(default_args("DynamicResources"), handle)

    @property
    def seconds(self) -> int:
        """Time since the beginning; what calls take is rounded off."""
        return round(self.clock.monotonic_ns() / NS_PER_SECOND)

    async def begin(self, *claims: ResourceClaim) -> None:
        """Let the server have claims, and the watch show them."""
        for each in claims:
            body = to_dict(each)
            body["metadata"] = {
                key: value
                for key, value in body["metadata"].items()
                if key not in ("uid", "resourceVersion")
            }
            kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
            await self.client.create(RESOURCE_CLAIMS, {**kind, **body}, namespace="default")
            if body.get("status"):
                await self.write({"status": body["status"]}, each.name, subresource="status")
        await self.watch()

    async def watch(self) -> None:
        """Show the plugin every claim as it is now."""
        for each in await self.claims():
            put(self.snapshot, from_dict(ResourceClaim, each))

    async def watch_soon(self) -> None:
        await aio.sleep(0.05)
        await self.watch()

    async def claims(self) -> list[Any]:
        found = await self.client.list(RESOURCE_CLAIMS)
        items = found["items"]
        assert isinstance(items, list)
        return items

    async def claim(self, name: str = "c") -> Any:
        return await self.client.get(RESOURCE_CLAIMS, name, namespace="default")

    async def write(self, change: Manifest, name: str = "c", *, subresource: str = "") -> None:
        """Change a claim as somebody else."""
        await self.client.patch(
            RESOURCE_CLAIMS,
            name,
            patch_body(change),
            namespace="default",
            subresource=subresource,
            content_type=MERGE_PATCH,
        )

    def asked(self, wanted: Pod) -> Asked:
        return Asked(self.snapshot, wanted, plugin=self.plugin)

    async def bind(self, asked: Asked, on: str = "a") -> Status:
        """Filter, reserve and pre-bind."""
        assert asked.prepared == SUCCESS
        asked.filtered()
        assert asked.reserve(on) == SUCCESS
        return await self.pre_bind(asked, on)

    async def pre_bind(self, asked: Asked, on: str = "a") -> Status:
        status: Status = await self.plugin.pre_bind(asked.state, asked.pod, on)
        return status

    async def work(self) -> list[str]:
        """Do what was asked for in the background; return what it was."""
        done = [what for what, _ in self.told.work]
        for _, work in self.told.work:
            await work()
        self.told.work.clear()
        return done


def scenario(
    play: Callable[[World], Coroutine[Any, Any, None]],
    *slices: Any,
    nodes: tuple[str, ...] = ("a",),
) -> None:
    clock = ManualClock()
    offers = slices or (offered("a", "a0", "a1"),)
    run_virtual(play(World(clock, devices(device_class(), *offers, nodes=nodes))), clock)


def using(*names: str, name: str = "p", **spec: Any) -> Pod:
    manifest = pod_manifest(name, resourceClaims=wanting(*names), **spec)
    manifest["metadata"]["uid"] = f"uid-{name}"
    return from_dict(Pod, manifest)


def reserved_for(found: Any) -> list[str]:
    return [each["uid"] for each in found["status"].get("reservedFor", ())]


def device_of(found: Any) -> str:
    (result,) = found["status"]["allocation"]["devices"]["results"]
    return str(result["device"])


def test_an_allocation_is_written_with_finalizer_time_and_reservation_and_counts_at_once():
    async def play(world: World) -> None:
        await world.begin(claim(), claim("d"))
        asked = world.asked(using("c"))
        assert await world.bind(asked) == SUCCESS
        found = await world.claim()
        assert found["metadata"]["finalizers"] == PROTECTED
        assert found["status"] == {
            "allocation": {
                "allocationTimestamp": "2026-01-01T00:00:00Z",
                "devices": {
                    "results": [
                        {"request": "r", "driver": "gpu.example", "pool": "a", "device": "a0"}
                    ]
                },
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["a"]}
                            ]
                        }
                    ]
                },
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}],
        }
        # The watch has shown nothing of it, and yet the device is taken.
        assert list(world.snapshot.claims.under_way()) == []
        assert await world.bind(world.asked(using("d", name="q"))) == SUCCESS
        assert device_of(await world.claim("d")) == "a1"
        assert (world.told.notes, world.told.work) == ([], [])

    scenario(play)


def test_a_pod_that_shares_a_claim_is_only_added_to_reserved_for():
    async def play(world: World) -> None:
        await world.begin(claim())
        assert await world.bind(world.asked(using("c"))) == SUCCESS
        await world.watch()
        before = (await world.claim())["status"]["allocation"]
        world.clock.advance(5)
        assert await world.bind(world.asked(using("c", name="q"))) == SUCCESS
        found = await world.claim()
        # A strategic merge puts a new element before the server's elements (mergeSortedSlice of
        # kubernetes v1.36 apimachinery pkg/util/strategicpatch).
        assert reserved_for(found) == ["uid-q", "uid-p"]
        assert found["status"]["allocation"] == before
        again = world.asked(using("c"))  # reserved for it already
        version = found["metadata"]["resourceVersion"]
        await world.watch()
        assert await world.bind(again) == SUCCESS
        assert (await world.claim())["metadata"]["resourceVersion"] == version

    scenario(play)


def test_a_conflict_with_an_irrelevant_change_is_retried():
    async def play(world: World) -> None:
        await world.begin(claim())
        asked = world.asked(using("c"))
        await world.write({"metadata": {"labels": {"l": "v"}, "finalizers": ["example.com/f"]}})
        assert await world.bind(asked) == SUCCESS
        found = await world.claim()
        assert found["metadata"]["labels"] == {"l": "v"}
        assert found["metadata"]["finalizers"] == [*PROTECTED, "example.com/f"]
        assert reserved_for(found) == ["uid-p"]

    scenario(play)


ELSEWHERE = {
    "status": {
        "allocation": {
            "devices": {
                "results": [{"request": "r", "driver": "other", "pool": "a", "device": "a1"}]
            }
        }
    }
}


async def deleted(world: World) -> None:
    await world.write({"metadata": {"finalizers": ["example.com/f"]}})
    await world.client.delete(RESOURCE_CLAIMS, "c", namespace="default")


@pytest.mark.parametrize(
    ("meanwhile", "text"),
    [
        pytest.param(
            lambda world: world.write(ELSEWHERE, subresource="status"),
            "claim default/c got allocated elsewhere in the meantime",
            id="another allocation was written meanwhile",
        ),
        pytest.param(deleted, "claim default/c got deleted in the meantime", id="being deleted"),
        pytest.param(
            lambda world: world.client.delete(RESOURCE_CLAIMS, "c", namespace="default"),
            'add finalizer to claim default/c: resourceclaims.resource.k8s.io "c" not found',
            id="deleted",
        ),
    ],
)
def test_a_conflict_with_a_relevant_change_ends_the_attempt(meanwhile, text):
    async def play(world: World) -> None:
        await world.begin(claim(), claim("d"))
        asked = world.asked(using("c"))
        asked.filtered()
        assert asked.reserve("a") == SUCCESS
        await meanwhile(world)
        assert await world.pre_bind(asked) == error(text)
        assert len(list(world.snapshot.claims.under_way())) == 1
        asked.unreserve("a")
        assert list(world.snapshot.claims.under_way()) == []
        assert world.told.work == []  # nothing of it was written
        assert await world.bind(world.asked(using("d", name="q"))) == SUCCESS
        assert device_of(await world.claim("d")) == "a0"

    scenario(play)


def test_a_claim_that_lost_its_devices_is_not_reserved():
    async def play(world: World) -> None:
        await world.begin(claim())
        await world.bind(world.asked(using("c")))
        await world.watch()
        late = world.asked(using("c", name="q"))
        status = {"allocation": None, "reservedFor": None}
        await world.write({"status": status}, subresource="status")
        text = "claim default/c got deallocated elsewhere in the meantime"
        assert await world.bind(late) == error(text)

    scenario(play)


def test_a_failed_binding_removes_the_reservation():
    async def play(world: World) -> None:
        await world.begin(claim())
        asked = world.asked(using("c"))
        await world.bind(asked)
        await world.write({"metadata": {"labels": {"l": "v"}}})  # no conflict for this one
        asked.unreserve("a")
        assert await world.work() == ["reservation of ResourceClaim default/c for pod default/p"]
        found = await world.claim()
        assert reserved_for(found) == []
        assert device_of(found) == "a0"

    scenario(play)


def test_a_claim_whose_reservation_was_removed_is_reserved_again_before_the_watch_tells():
    """Otherwise the next attempt would bind the pod without its reservation."""

    async def play(world: World) -> None:
        await world.begin(claim())
        first = world.asked(using("c"))
        await world.bind(first)
        await world.watch()
        first.unreserve("a")
        await world.work()
        assert reserved_for(await world.claim()) == []
        assert await world.bind(world.asked(using("c"))) == SUCCESS
        assert reserved_for(await world.claim()) == ["uid-p"]

    scenario(play)


# -- devices that have to become ready ---------------------------------------------------------


def condition(kind: str) -> Manifest:
    told = {"type": kind, "status": "True", "reason": "Because", "message": "it is", **STAMP}
    device = {"driver": "gpu.example", "pool": "a", "device": "a0", "conditions": [told]}
    return {"status": {"devices": [device]}}


STAMP = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
PENDING = (
    "Normal BindingConditionsPending Scheduling p: "
    "waiting for binding conditions for device on node a"
)


@pytest.mark.parametrize(
    ("after_seconds", "kind", "status", "seconds", "ending"),
    [
        pytest.param(12, "Ready", SUCCESS, 15, "success", id="ready at the third check"),
        pytest.param(
            7,
            "Broken",
            error('device binding failed: claim=c, reason=Because, message="it is"'),
            10,
            "failure",
            id="the device failed",
        ),
        pytest.param(
            700,
            "Ready",
            error("device binding timeout: claim=c"),
            600,
            "timeout",
            id="the timeout has passed",
        ),
    ],
)
def test_a_pod_is_bound_when_its_devices_are_ready(after_seconds, kind, status, seconds, ending):
    async def play(world: World) -> None:
        await world.begin(claim())

        async def driver() -> None:
            await aio.sleep(after_seconds)
            await world.write(condition(kind), subresource="status")
            await world.watch()

        world.tasks.spawn(driver(), name="driver")
        found = await world.bind(world.asked(using("c")))
        assert (found, world.seconds, world.told.notes) == (status, seconds, [PENDING])
        counts = world.plugin.counts
        labels = ("default-scheduler", "gpu.example", ending)
        assert dict(counts.allocations) == {labels: 1}
        assert [(told, round(waited)) for told, waited in counts.waits] == [(labels, seconds)]
        await world.tasks.cancel_all()

    scenario(play, offered("a", "a0", bindsToNode=True, **CONDITIONS))


def test_a_claim_deleted_during_the_wait_for_devices_ends_the_wait():
    async def play(world: World) -> None:
        await world.begin(claim())

        async def going() -> None:
            await aio.sleep(3)
            world.snapshot.listers.resource_claims.remove(claim())

        world.tasks.spawn(going(), name="going")
        text = 'could not find ResourceClaim "default/c"'
        assert await world.bind(world.asked(using("c"))) == error(text)
        assert world.seconds == 5

    scenario(play, offered("a", "a0", bindsToNode=True, **CONDITIONS))


# -- extended resources ------------------------------------------------------------------------

GPU = "example.com/gpu"


def asking() -> Manifest:
    manifest = pod_manifest("p")
    manifest["spec"]["containers"][0]["resources"] = {"requests": {GPU: "2"}, "limits": {GPU: "2"}}
    return manifest


async def created(world: World) -> Pod:
    stored = await world.client.create(PODS, asking(), namespace="default")
    return from_dict(Pod, stored)


def test_a_claim_is_made_for_extended_resources_and_its_pod_told():
    async def play(world: World) -> None:
        put(world.snapshot, device_class(resource=GPU))
        wanted = await created(world)
        asked = world.asked(wanted)

        world.tasks.spawn(world.watch_soon(), name="watch")
        assert await world.bind(asked) == SUCCESS
        (made,) = await world.claims()
        name, spec = made["metadata"]["name"], made["spec"]["devices"]["requests"]
        assert name.startswith("p-extended-resources-")
        assert made["metadata"]["annotations"] == {
            "resource.kubernetes.io/extended-resource-claim": "true"
        }
        assert made["metadata"]["ownerReferences"][0]["uid"] == wanted.uid
        assert spec == [
            {
                "name": "container-0-request-0",
                "exactly": {
                    "deviceClassName": "gpu",
                    "allocationMode": "ExactCount",
                    "count": 2,
                },
            }
        ]
        results = made["status"]["allocation"]["devices"]["results"]
        assert [each["device"] for each in results] == ["a0", "a1"]
        assert reserved_for(made) == [wanted.uid]
        assert dict(world.plugin.counts.creates) == {("success",): 1}
        told = await world.client.get(PODS, "p", namespace="default")
        status = told["status"]
        assert isinstance(status, dict)
        assert status["extendedResourceClaimStatus"] == {
            "resourceClaimName": name,
            "requestMappings": [
                {
                    "containerName": "main",
                    "resourceName": GPU,
                    "requestName": "container-0-request-0",
                }
            ],
        }
        asked.unreserve("a")
        assert await world.work() == [f"deletion of ResourceClaim default/{name}"]
        assert await world.claims() == []

    scenario(play)


@pytest.mark.parametrize(
    "part",
    [
        pytest.param("/status", id="the answer to the allocation"),
        pytest.param("", id="the answer to the finalizer"),
    ],
)
def test_a_special_claim_is_deleted_though_an_answer_was_lost(part):
    async def play(world: World) -> None:
        put(world.snapshot, device_class(resource=GPU))
        asked = world.asked(await created(world))
        world.transport.lost = rf"PATCH .*/p-extended-resources-\w+{part}"
        status = await world.bind(asked)
        assert status.reasons[0].endswith("the answer did not come")
        world.transport.lost = ""
        asked.unreserve("a")
        await world.work()
        assert await world.claims() == []

    scenario(play)


def test_a_special_claim_of_an_earlier_attempt_is_deleted():
    async def play(world: World) -> None:
        put(world.snapshot, device_class(resource=GPU))
        wanted = await created(world)
        world.tasks.spawn(world.watch_soon(), name="watch")
        await world.bind(world.asked(wanted))
        await world.watch()
        again = world.asked(wanted)
        assert again.filtered() == {"a": "cannot schedule extended resource claim"}
        assert again.post_filtered().reasons == ("deletion of ResourceClaim completed",)
        await world.work()
        assert await world.claims() == []

    scenario(play)


# -- giving back -------------------------------------------------------------------------------


def held_elsewhere() -> ResourceClaim:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    allocation = {
        "devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }
    return claim(allocation=allocation)


def test_devices_that_no_node_can_reach_are_deallocated():
    async def play(world: World) -> None:
        await world.begin(held_elsewhere())
        asked = world.asked(using("c"))
        asked.filtered()
        assert asked.post_filtered().reasons == ("deallocation of ResourceClaim completed",)
        assert await world.work() == ["deallocation of ResourceClaim default/c"]
        assert (await world.claim()).get("status", {}) == {}

    scenario(play)


def test_after_a_failed_deallocation_the_pod_is_activated_later():
    async def play(world: World) -> None:
        await world.begin(held_elsewhere())
        asked = world.asked(using("c"))
        asked.filtered()
        asked.post_filtered()
        await world.write({"metadata": {"labels": {"l": "v"}}})  # perhaps somebody uses it now
        with pytest.raises(ApiError):
            await world.work()
        assert (world.told.activated, world.seconds) == (["p"], 10)
        assert (await world.claim())["status"]["allocation"]

    scenario(play)
