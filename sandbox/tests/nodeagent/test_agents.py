"""Agents against an API server in memory, under virtual time: nodes, leases, lives of pods.

Not covered here: each refusal and each status (see their own tests); real HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.base.errors import UnauthorizedError
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call
from moorage.client.writes import Client
from moorage.nodeshapes.templates import default_nodes
from moorage_sandbox.nodeagent.agents import NodeAgents
from moorage_sandbox.nodeagent.pod_life import PodLife
from sandbox.tests.nodeagent.memory_api import MemoryApi, _failure
from sandbox.tests.nodeagent.virtual import START_NS, LoopClock, run_virtual

Scene = Callable[[MemoryApi], Awaitable[None]]


def play(scene: Scene, *, api: MemoryApi | None = None, nodes: int = 2) -> MemoryApi:
    """Run agents until the scene is over; return the server."""

    async def main() -> MemoryApi:
        server = api or MemoryApi()
        # An event belongs to the loop it is waited for in.
        server.changed = asyncio.Event()
        client = Client(server, rng=Streams(1).stream("client"))
        agents = NodeAgents(client, default_nodes(nodes), clock=LoopClock(), streams=Streams(1))
        tasks = aio.TaskOwner()
        task = tasks.spawn(agents.run(), name="agents")
        registered = tasks.spawn(agents.registered.wait(), name="registered")
        await asyncio.wait([task, registered], return_when=asyncio.FIRST_COMPLETED)
        try:
            if task.done():
                await task
            await scene(server)
            if task.done():
                await task
        finally:
            await tasks.cancel_all()
        return server

    return run_virtual(main())


def pod(name: str = "web", node: str = "node-01", **more: Any) -> dict[str, Any]:
    annotations = {f"moorage.dev/{key}": value for key, value in more.pop("say", {}).items()}
    requests = more.pop("requests", {"cpu": "1"})
    owner = {"apiVersion": "v1", "kind": more.pop("owner", ""), "name": "o", "uid": "u"}
    owners = [owner | {"controller": True}] if owner["kind"] else []
    spec = {
        "nodeName": node,
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
    }
    metadata = {"namespace": "default", "name": name, "annotations": annotations}
    return {
        "metadata": {**metadata, "ownerReferences": owners},
        "spec": {**spec, **more},
        "status": {"phase": "Pending"},
    }


def deletion(*, seconds: float, grace: int) -> dict[str, Any]:
    """The metadata the server sets when a deletion is asked for at a moment."""
    end = START_NS + round((seconds + grace) * NS_PER_SECOND)
    return {
        "metadata": {
            "deletionTimestamp": rfc3339(end),
            "deletionGracePeriodSeconds": grace,
        }
    }


def phases(api: MemoryApi, name: str = "web") -> list[str]:
    """The phases a pod went through, with its going."""
    seen: list[str] = []
    for _, plural, event, obj in api.log:
        if plural == "pods" and obj["metadata"]["name"] == name:
            phase = "gone" if event == "DELETED" else obj["status"]["phase"]
            if "reason" in obj["status"] and event != "DELETED":
                phase += f" {obj['status']['reason']}"
            if not seen or seen[-1] != phase:
                seen.append(phase)
    return seen


def test_nodes_register_with_lease_labels_and_conditions():
    async def scene(api: MemoryApi) -> None:
        """Nothing happens."""

    api = play(scene)
    node = api.get("nodes", "node-02", "")
    lease = api.get("leases", "node-02", "kube-node-lease")
    assert node["metadata"]["labels"] == {
        "kubernetes.io/hostname": "node-02",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "sandbox",
        "topology.kubernetes.io/zone": "b",
    }
    assert node["status"]["allocatable"] == {
        "cpu": "8",
        "memory": "32Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
    }
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert lease["spec"]["holderIdentity"] == "node-02"
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


def test_leases_are_renewed_every_ten_seconds_and_status_every_five_minutes():
    async def scene(api: MemoryApi) -> None:
        api.calls.clear()
        await aio.sleep(600)

    api = play(scene, nodes=1)
    renewals = api.calls.count(
        "PATCH /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-01"
    )
    assert 59 <= renewals <= 61
    assert api.calls.count("PATCH /api/v1/nodes/node-01/status") == 2
    assert len(api.calls) == renewals + 2, "an idle node writes nothing else"


def test_a_node_that_was_taken_for_dead_says_within_ten_seconds_that_it_is_ready():
    async def scene(api: MemoryApi) -> None:
        doubts = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
        api.change("nodes", "", "node-01", {"status": {"conditions": doubts}})
        api.calls.clear()
        await aio.sleep(11)

    api = play(scene, nodes=1)
    [ready] = [
        each
        for each in api.get("nodes", "node-01", "")["status"]["conditions"]
        if each["type"] == "Ready"
    ]
    assert ready["status"] == "True"
    assert api.calls.count("PATCH /api/v1/nodes/node-01/status") == 1


def test_a_node_that_is_taken_for_dead_during_a_heartbeat_says_soon_that_it_is_ready():
    """The heartbeat was made before the doubt; its answer comes after the watch told of both."""

    class Doubtful(MemoryApi):
        doubted = False

        async def request(self, call: Call) -> Answer:
            if call.path != "/api/v1/nodes/node-01/status" or self.doubted:
                return await super().request(call)
            self.doubted = True
            doubts = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
            self.change("nodes", "", "node-01", {"status": {"conditions": doubts}})
            answer = await super().request(call)
            await aio.sleep(1)
            return answer

    server = Doubtful()

    async def scene(api: MemoryApi) -> None:
        while not server.doubted:
            await aio.sleep(1)
        await aio.sleep(12)

    api = play(scene, api=server, nodes=1)
    conditions = api.get("nodes", "node-01", "")["status"]["conditions"]
    assert [each["status"] for each in conditions if each["type"] == "Ready"] == ["True"]


def test_a_lost_lease_is_made_again():
    async def scene(api: MemoryApi) -> None:
        del api.objects[("leases", "kube-node-lease", "node-01")]
        await aio.sleep(11)
        assert ("leases", "kube-node-lease", "node-01") in api.objects

    play(scene, nodes=1)


def test_a_bound_pod_runs_with_address_and_conditions():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        await aio.sleep(5)

    api = play(scene)
    status = api.get("pods", "web")["status"]
    assert phases(api) == ["Pending", "Running"]
    assert status["podIP"] == "10.128.0.1"
    assert status["hostIP"] == "10.0.1.0"
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }
    assert status["containerStatuses"][0]["state"]["running"]["startedAt"]


CASES = [
    pytest.param(
        {"say": {"run-seconds": "20"}},
        ["Pending", "Running", "Succeeded"],
        id="a pod with run-seconds succeeds",
    ),
    pytest.param(
        {"say": {"run-seconds": "20", "exit-code": "3"}},
        ["Pending", "Running", "Failed"],
        id="a pod with an exit code fails",
    ),
    pytest.param(
        {"activeDeadlineSeconds": 5},
        ["Pending", "Running", "Failed DeadlineExceeded"],
        id="a pod that outlives its deadline fails",
    ),
    pytest.param(
        {"requests": {"cpu": "9"}},
        ["Pending", "Failed OutOfcpu"],
        id="a pod that does not fit is refused",
    ),
    pytest.param(
        {"node": "elsewhere"}, ["Pending"], id="a pod of somebody else's node is left alone"
    ),
    pytest.param(
        {"say": {"run-seconds": "soon"}},
        ["Pending", "Running"],
        id="an annotation that is no number is ignored",
    ),
    pytest.param(
        {"owner": "Job"}, ["Pending", "Running", "Succeeded"], id="a pod of a job ends by itself"
    ),
    pytest.param(
        {"owner": "Job", "say": {"run-seconds": "60"}},
        ["Pending", "Running"],
        id="a pod of a job ends when it is told to",
    ),
    pytest.param(
        {"owner": "ReplicaSet"}, ["Pending", "Running"], id="a pod of a replica set goes on"
    ),
    pytest.param(
        {"say": {"start-seconds": "60"}},
        ["Pending"],
        id="a pod may be slow to start",
    ),
]


@pytest.mark.parametrize(("build", "expected"), CASES)
def test_each_pod_goes_through_its_expected_statuses(build, expected):
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod(**build))
        await aio.sleep(40)

    assert phases(play(scene)) == expected


def test_a_refusal_is_told_as_an_event_in_the_name_of_the_node():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod(requests={"cpu": "9"}))
        await aio.sleep(5)

    api = play(scene)
    events = [obj for (plural, _, _), obj in api.objects.items() if plural == "events"]
    assert [(e["reason"], e["note"], e["reportingInstance"]) for e in events] == [
        (
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 8000",
            "node-01",
        )
    ]


@pytest.mark.parametrize(
    ("grace", "stop", "seconds", "code"),
    [
        pytest.param(30, "10", 10, 143, id="a pod that stops goes before its grace is over"),
        pytest.param(5, "10", 5, 137, id="a pod that does not stop goes when its grace is over"),
        pytest.param(30, "0", 0, 143, id="a pod that stops at once goes at once"),
    ],
)
def test_a_deleted_pod_stops_after_its_grace_period(grace, stop, seconds, code):
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod(say={"stop-seconds": stop}))
        await aio.sleep(10 - asyncio.get_running_loop().time())
        api.change("pods", "default", "web", deletion(seconds=10, grace=grace))
        await aio.sleep(seconds - 0.5 if seconds else 0.01)
        assert (("pods", "default", "web") in api.objects) == (seconds > 0)
        await aio.sleep(1)
        assert ("pods", "default", "web") not in api.objects

    api = play(scene)
    assert phases(api) == ["Pending", "Running", "Failed", "gone"]
    last = [obj for _, plural, _, obj in api.log if plural == "pods"][-1]
    state = last["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (code, "Error")


def test_a_second_deletion_may_shorten_the_grace():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod(say={"stop-seconds": "600"}))
        await aio.sleep(10 - asyncio.get_running_loop().time())
        api.change("pods", "default", "web", deletion(seconds=10, grace=300))
        await aio.sleep(1)
        api.change("pods", "default", "web", deletion(seconds=11, grace=2))
        await aio.sleep(3)
        assert ("pods", "default", "web") not in api.objects

    play(scene)


def test_a_pod_is_ready_when_its_gates_are_open():
    def gate(status: str) -> dict[str, Any]:
        return {"status": {"conditions": [{"type": "example.com/lb", "status": status}]}}

    def told(api: MemoryApi) -> tuple[str, str | None, str | None]:
        found = api.get("pods", "web")["status"]["conditions"]
        ready = next(each for each in found if each["type"] == "Ready")
        return ready["status"], ready.get("reason"), ready.get("message")

    closed, seen = "ReadinessGatesNotReady", []
    name = 'pod readiness gate "example.com/lb"'

    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod(readinessGates=[{"conditionType": "example.com/lb"}]))
        await aio.sleep(5)
        seen.append(told(api))
        for status in ("True", "Unknown", "True"):
            api.change("pods", "default", "web", gate(status))
            await aio.sleep(1)
            seen.append(told(api))

    api = play(scene)
    assert seen == [
        ("False", closed, f"corresponding condition of {name} does not exist."),
        ("True", None, None),
        ("False", closed, f'the status of {name} is not "True", but Unknown'),
        ("True", None, None),
    ]
    statuses = {c["type"]: c["status"] for c in api.get("pods", "web")["status"]["conditions"]}
    assert statuses["ContainersReady"] == statuses["example.com/lb"] == "True"


def test_the_resources_of_a_removed_pod_are_free_again():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod("first", requests={"cpu": "8"}, say={"run-seconds": "5"}))
        await aio.sleep(1)
        api.put("pods", pod("second", requests={"cpu": "8"}))
        await aio.sleep(20)
        api.put("pods", pod("third", requests={"cpu": "8"}))
        await aio.sleep(5)

    api = play(scene)
    assert {name: phases(api, name)[-1] for name in ("first", "second", "third")} == {
        "first": "Succeeded",
        "second": "Failed OutOfcpu",
        "third": "Running",
    }


def crash_loop(api: MemoryApi) -> tuple[str, int, str, int | None]:
    """Phase, number of restarts, state, and the exit code of the run before."""
    status = api.get("pods", "web")["status"]
    told = status["containerStatuses"][0]
    (state, detail), *_ = told["state"].items()
    last = told.get("lastState", {}).get("terminated", {}).get("exitCode")
    return status["phase"], told["restartCount"], detail.get("reason", state), last


def test_a_container_that_fails_runs_again_after_ever_longer_backoffs():
    seen: list[Any] = []

    async def scene(api: MemoryApi) -> None:
        say = {"run-seconds": "5,5,5,1000", "exit-code": "3,4,5,0", "start-seconds": "0"}
        api.put("pods", pod(restartPolicy="Always", say=say))
        began = asyncio.get_running_loop().time()
        for second in (1, 6, 11, 21, 26, 47):
            await aio.sleep(began + second - asyncio.get_running_loop().time())
            seen.append((second, *crash_loop(api)))
            if second == 11:
                [waiting] = api.get("pods", "web")["status"]["containerStatuses"]
                uid = api.get("pods", "web")["metadata"]["uid"]
                assert waiting["state"]["waiting"]["message"] == (
                    f"back-off 10s restarting failed container=main pod=web_default({uid})"
                )
                ready = {
                    c["type"]: c["status"] for c in api.get("pods", "web")["status"]["conditions"]
                }
                assert ready["Ready"] == ready["ContainersReady"] == "False"

    api = play(scene)
    assert seen == [
        (1, "Running", 0, "running", None),
        (6, "Running", 1, "running", 3),
        (11, "Running", 1, "CrashLoopBackOff", 4),
        (21, "Running", 2, "running", 4),
        (26, "Running", 2, "CrashLoopBackOff", 5),
        (47, "Running", 3, "running", 5),
    ]
    events = [obj for (plural, _, _), obj in api.objects.items() if plural == "events"]
    assert {(e["reason"], e["action"], e["reportingInstance"]) for e in events} == {
        ("BackOff", "Restarting", "node-01")
    }


def test_agents_that_come_back_know_how_often_a_container_was_restarted():
    async def first(api: MemoryApi) -> None:
        say = {"run-seconds": "5,5,1000", "exit-code": "3", "start-seconds": "0"}
        api.put("pods", pod(restartPolicy="Always", say=say))
        await aio.sleep(12)
        assert crash_loop(api) == ("Running", 1, "CrashLoopBackOff", 3)

    async def second(api: MemoryApi) -> None:
        # The clock of this test begins anew, and the container ended 10 s after its beginning.
        await aio.sleep(12)

    # A kubelet that restarts forgets the backoff, too.
    assert crash_loop(play(second, api=play(first))) == ("Running", 2, "running", 3)


def test_a_pod_is_ready_after_its_delay_and_may_be_told_another_one():
    seen: list[Any] = []

    def ready(api: MemoryApi) -> tuple[str, bool, bool]:
        status = api.get("pods", "web")["status"]
        told = status["containerStatuses"][0]
        found = {each["type"]: each["status"] for each in status["conditions"]}
        return found["Ready"], told["started"], told["ready"]

    async def scene(api: MemoryApi) -> None:
        say = {"start-seconds": "0", "startup-seconds": "4", "ready-seconds": "9"}
        api.put("pods", pod(say=say))
        for seconds in (2, 4, 4):
            await aio.sleep(seconds)
            seen.append(ready(api))
        told = {"metadata": {"annotations": {"moorage.dev/ready-seconds": "60"}}}
        api.change("pods", "default", "web", told)
        for seconds in (1, 60):
            await aio.sleep(seconds)
            seen.append(ready(api))

    play(scene)
    assert seen == [
        ("False", False, False),
        ("False", True, False),
        ("True", True, True),
        ("False", True, False),
        ("True", True, True),
    ]


def test_annotations_that_cannot_be_read_are_told_as_events():
    async def scene(api: MemoryApi) -> None:
        say = {
            "run-seconds": "soon",
            "exit-code": "0,1",
            "ready-seconds": "1,2",
            "exit-code.side": "1",
            "exit-code.main": "-1",
        }
        api.put("pods", pod(say=say))
        await aio.sleep(5)

    [event] = [obj for (plural, _, _), obj in play(scene).objects.items() if plural == "events"]
    assert (event["reason"], event["type"]) == ("InvalidAnnotation", "Warning")
    assert event["note"].replace("moorage.dev/", "").split("; ") == [
        "exit-code.main: '-1' is no number >= 0 and is ignored",
        "exit-code.side: the pod has no container 'side', so this is ignored",
        "ready-seconds: '1,2' is a list, of which the first number is taken",
        "run-seconds: 'soon' is no number >= 0 and is ignored",
    ]


def test_agents_that_come_back_take_pods_up_where_they_are():
    async def first(api: MemoryApi) -> None:
        api.put("pods", pod("runs", requests={"cpu": "6"}))
        api.put("pods", pod("ends", say={"run-seconds": "30"}))
        api.put("pods", pod("slow", say={"start-seconds": "10"}))
        await aio.sleep(5)

    async def second(api: MemoryApi) -> None:
        api.put("pods", pod("big", requests={"cpu": "2"}))
        await aio.sleep(60)

    api = play(first)
    address = api.get("pods", "runs")["status"]["podIP"]
    play(second, api=api)
    assert api.get("pods", "runs")["status"]["podIP"] == address
    assert {name: phases(api, name)[-1] for name in ("runs", "ends", "slow", "big")} == {
        "runs": "Running",
        "ends": "Succeeded",
        "slow": "Running",
        "big": "Failed OutOfcpu",
    }


def test_a_pod_replaced_under_the_same_name_does_not_get_the_old_status():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod(say={"start-seconds": "5"}))
        await aio.sleep(1)
        old = api.objects.pop(("pods", "default", "web"))
        api._tell("pods", "DELETED", old)
        api.put("pods", pod(node=""))
        await aio.sleep(20)

    api = play(scene)
    assert api.get("pods", "web")["status"] == {"phase": "Pending"}


def test_wrong_credentials_end_the_agents_with_the_reason():
    async def scene(api: MemoryApi) -> None:
        raise AssertionError("never registered")

    api_failures = [_failure(409, "AlreadyExists")] + [_failure(401, "Unauthorized")] * 5

    async def main() -> MemoryApi:
        api = MemoryApi()
        api.fail_next = api_failures
        return api

    with pytest.raises(UnauthorizedError, match="Unauthorized"):
        play(scene, api=run_virtual(main()))


def test_a_part_that_breaks_ends_the_agents_with_the_reason(monkeypatch):
    def broken(*_args: object, **_kwargs: object) -> None:
        raise ValueError("broken")

    async def scene(api: MemoryApi) -> None:
        monkeypatch.setattr(PodLife, "on_pod", broken)
        api.put("pods", pod())
        await aio.sleep(5)

    with pytest.raises(ValueError, match="broken"):
        play(scene)


def test_hundreds_of_nodes_and_thousands_of_pods_need_no_task_each():
    async def scene(api: MemoryApi) -> None:
        before = len(asyncio.all_tasks())
        for number in range(1000):
            api.put("pods", pod(f"p{number}", node=f"node-{number % 200 + 1:03d}"))
        await aio.sleep(3)
        assert len(asyncio.all_tasks()) == before
        assert all(
            obj["status"]["phase"] == "Running"
            for (plural, _, _), obj in api.objects.items()
            if plural == "pods"
        )

    play(scene, nodes=200)
