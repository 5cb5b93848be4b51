"""A group that no plugin schedules says so: on the group, on one member, in explain and the queue.

Each form of group under a configuration without it, and under one that schedules it.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import POD_GROUPS, PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.rng import Streams
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.config.feature_gates import feature_gates
from moorage.config.gate_table import GANG_SCHEDULING, VERSIONS
from moorage.config.own import LoadedConfiguration, emulating
from moorage.explain.explaining import explain
from moorage.service.groups.disabled_groups.objects import GroupObjects
from moorage.service.questions.queue import queue_answer
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from tests.scenarios.gangs import Cluster, coscheduling, of_labels, of_object, play, pod_group

KUBERNETES_GROUP = {
    "apiVersion": POD_GROUPS.api_version,
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}
REMEDY = {
    "kubernetes": "--feature-gates=GenericWorkload=true,GangScheduling=true",
    "object": "enabled: [{name: Coscheduling}]",
    "labels": "enabled: [{name: Coscheduling}]",
}
CAUSE = {
    "kubernetes": "the feature gate GenericWorkload is off",
    "object": "profile default-scheduler has no plugin Coscheduling",
    "labels": "profile default-scheduler has no plugin Coscheduling",
}


def _of_kubernetes(name: str, *, least: int) -> Manifest:
    del least
    return pod_manifest(name, cpu="1", schedulingGroup={"podGroupName": "g"})


FORMS: dict[str, tuple[Any, tuple[Manifest, ...]]] = {
    "labels": (of_labels, ()),
    "object": (of_object, (pod_group(least=3),)),
    "kubernetes": (_of_kubernetes, (KUBERNETES_GROUP,)),
}
RESOURCES = {"object": COSCHEDULING_POD_GROUPS, "kubernetes": POD_GROUPS}
NODES = [node_manifest("n1", cpu="2", memory="8Gi")]


def conditions(found: Any) -> dict[str, tuple[str, str, str]]:
    """Return status, reason and message of an object's conditions, by type."""
    listed = (found.get("status") or {}).get("conditions") or []
    return {
        each["type"]: (each["status"], each.get("reason", ""), each.get("message", ""))
        for each in listed
    }


def _of_pods(live: Cluster, *names: str) -> list[tuple[str, str, str]]:
    found = (conditions(live.stored_pod(name) or {}) for name in names)
    wanted = "moorage.dev/GroupScheduling"
    return [each[wanted] for each in found if wanted in each]


@pytest.mark.parametrize("form", FORMS)
def test_group_and_one_member_say_so_within_seconds(form: str) -> None:
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        members = ["m1", "m2", "m3"]
        await live.create_objects(*objects, *(make(name, least=3) for name in members))
        await aio.sleep(5)
        assert live.bound(*members) == 2, "as kube-scheduler does"
        (condition,) = _of_pods(live, *members)
        status, reason, text = condition
        assert (status, reason) == ("False", "GroupsNotScheduled")
        assert text.startswith("pod group default/g (")
        assert [part for part in (CAUSE[form], REMEDY[form], "--groups") if part not in text] == []
        told = [each for name in members for each in await live.events(name, reason=reason)]
        assert [(each["type"], each["message"]) for each in told] == [("Warning", text)]
        if objects:
            group = await live.client.get(RESOURCES[form], "g", namespace="default")
            name = "PodGroupScheduled" if form == "kubernetes" else "moorage.dev/GroupScheduling"
            assert conditions(group)[name] == condition
            assert [each["message"] for each in await live.events("g", reason=reason)] == [text]
        # Once is enough.
        await aio.sleep(60)
        assert len(await live.events("g", reason=reason)) == bool(objects)
        assert len(_of_pods(live, *members)) == 1

    play(scenario, cluster=NODES, config=LoadedConfiguration())


@pytest.mark.parametrize("form", FORMS)
def test_explain_and_queue_say_so(form: str) -> None:
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        members = ["m1", "m2", "m3"]
        await live.create_objects(*objects, *(make(name, least=3) for name in members))
        await aio.sleep(5)
        core = live.scheduler.core
        pods = {pod.name: pod for pod in core.store.all_pods()}
        for name in members:
            found = explain(core, pods[name])
            assert CAUSE[form] in found.notes[0]
            assert REMEDY[form] in found.notes[0]
            assert not [each for each in found.suggestions if each.delete], "no sibling goes"
        answer = queue_answer(core, now_ns=0, limit=10, scheduling=True)
        (group,) = json.loads(msgspec.json.encode(answer))["groups"]
        assert (group["name"], group["members"], group["placed"], group["waiting"]) == (
            "g",
            3,
            2,
            1,
        )
        assert CAUSE[form] in group["message"]

    play(scenario, cluster=NODES, config=LoadedConfiguration())


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_said_where_groups_are_scheduled(form: str) -> None:
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        members = ["m1", "m2", "m3"]
        stale = {"type": "moorage.dev/GroupScheduling", "status": "False", "reason": "x"}
        await live.create_objects(*objects, *(make(name, least=3) for name in members))
        await live.client.patch(
            PODS,
            "m1",
            patch_body({"status": {"conditions": [stale]}}),
            namespace="default",
            subresource="status",
            content_type=MERGE_PATCH,
        )
        await aio.sleep(5)
        assert live.bound(*members) == 0
        assert _of_pods(live, *members) == [("True", "GroupsScheduled", "")]
        core = live.scheduler.core
        pods = {pod.name: pod for pod in core.store.all_pods()}
        assert "not scheduled as a group" not in " ".join(explain(core, pods["m1"]).notes)
        assert not core.disabled_groups.members()

    play(scenario, cluster=NODES, config=_with(form))


def _with(form: str) -> LoadedConfiguration:
    if form != "kubernetes":
        return coscheduling()
    gates = feature_gates({"GenericWorkload": True, "GangScheduling": True}, "1.36")
    return msgspec.structs.replace(LoadedConfiguration(), gates=gates)


def test_a_gang_under_the_gate_of_groups_alone_says_so_and_a_basic_group_does_not() -> None:
    config = msgspec.structs.replace(
        LoadedConfiguration(), gates=feature_gates({"GenericWorkload": True})
    )
    basic = {
        **KUBERNETES_GROUP,
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"schedulingPolicy": {"basic": {}}},
    }

    async def scenario(live: Cluster) -> None:
        plain = pod_manifest("p", cpu="1", schedulingGroup={"podGroupName": "b"})
        await live.create_objects(KUBERNETES_GROUP, basic, _of_kubernetes("m1", least=3), plain)
        await aio.sleep(5)
        assert [text.split(": ")[1].split(".")[0] for _, _, text in _of_pods(live, "m1")] == [
            "profile default-scheduler has no plugin GangScheduling"
        ]
        assert _of_pods(live, "p") == []

    play(scenario, cluster=NODES, config=config)


@pytest.mark.parametrize(
    ("version", "served", "type_"),
    [
        ("1.36", "v1alpha2", "PodGroupScheduled"),
        ("1.37", "v1beta1", "PodGroupInitiallyScheduled"),
    ],
)
def test_the_condition_of_a_group_is_that_of_the_emulated_version(
    version: str, served: str, type_: str
) -> None:
    resource = msgspec.structs.replace(POD_GROUPS, version=served)
    group = {**KUBERNETES_GROUP, "apiVersion": resource.api_version}

    async def scenario(live: Cluster) -> None:
        await live.client.create(resource, group, namespace="default")
        await live.create_objects(_of_kubernetes("m1", least=3))
        await aio.sleep(5)
        stored = await live.client.get(resource, "g", namespace="default")
        assert list(conditions(stored)) == [type_]

    play(scenario, cluster=NODES, config=emulating(LoadedConfiguration(), version=version))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_flag_in_the_message_is_accepted_in_the_emulated_version(version: str) -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(_of_kubernetes("m1", least=3))
        await aio.sleep(5)
        ((_, _, text),) = _of_pods(live, "m1")
        flag = next(word for word in text.split() if word.startswith("--feature-gates="))
        gates = flag.removeprefix("--feature-gates=").rstrip(",.;")
        assert emulating(LoadedConfiguration(), version=version, gates=gates).gates(GANG_SCHEDULING)

    play(scenario, cluster=NODES, config=emulating(LoadedConfiguration(), version=version))


def test_a_pod_of_another_scheduler_is_not_spoken_of() -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(of_object("m1", schedulerName="another"))
        await aio.sleep(5)
        assert _of_pods(live, "m1") == []

    play(scenario, cluster=NODES, config=LoadedConfiguration())


@pytest.mark.parametrize("form", RESOURCES)
def test_an_object_that_no_pod_names_says_so(form: str) -> None:
    objects = FORMS[form][1]

    async def scenario(live: Cluster) -> None:
        watch = GroupObjects(
            live.transport, clock=live.clock, streams=Streams(1), is_scheduled=lambda _: False
        )
        reports = live.scheduler.parts.disabled_groups
        tasks = TaskOwner()
        tasks.spawn(watch.run(reports.take_object), name="group objects")
        try:
            await live.create_objects(*objects)
            await aio.sleep(5)
        finally:
            await tasks.cancel_all()
        group = await live.client.get(RESOURCES[form], "g", namespace="default")
        name = "PodGroupScheduled" if form == "kubernetes" else "moorage.dev/GroupScheduling"
        status, reason, text = conditions(group)[name]
        assert (status, reason) == ("False", "GroupsNotScheduled")
        assert CAUSE[form] in text
        assert [each["message"] for each in await live.events("g", reason=reason)] == [text]

    play(scenario, cluster=NODES, config=LoadedConfiguration())


def test_groups_that_are_scheduled_are_watched_once() -> None:
    async def scenario(live: Cluster) -> None:
        watch = GroupObjects(
            live.transport, clock=live.clock, streams=Streams(1), is_scheduled=lambda _: True
        )
        await watch.run(live.scheduler.parts.disabled_groups.take_object)

    play(scenario, cluster=NODES, config=LoadedConfiguration())
