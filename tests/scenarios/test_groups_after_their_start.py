"""Members that succeeded count towards the minimum: what replaces a member needs only its own room.

The three ways to name a group, each with members that are tried together or held at Permit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import POD_GROUPS, PODS
from moorage.base import aio
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from tests.scenarios.gangs import (
    Cluster,
    coscheduling,
    nodes,
    of_labels,
    of_object,
    play,
    pod_group,
)

GATES = feature_gates({"GenericWorkload": True, "GangScheduling": True}, "1.36")
KUBERNETES_GROUP = {
    "apiVersion": POD_GROUPS.api_version,
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}


HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


def _of_kubernetes(name: str, *, least: int, **fields: Any) -> Manifest:
    del least
    return pod_manifest(name, cpu="1", schedulingGroup={"podGroupName": "g"}, **fields)


def _config(form: str, mode: str) -> LoadedConfiguration:
    config = coscheduling(mode)
    return msgspec.structs.replace(config, gates=GATES) if form == "kubernetes" else config


FORMS = {
    "labels": (of_labels, ()),
    "object": (of_object, (pod_group(least=2),)),
    "kubernetes": (_of_kubernetes, (KUBERNETES_GROUP,)),
}


def _objects(form: str, least: int, **spec: Any) -> list[Manifest]:
    """Return the object of a group, if the form has one; `spec` is for coscheduling's."""
    if form == "kubernetes":
        policy = {"gang": {"minCount": least}}
        return [{**KUBERNETES_GROUP, "spec": {"schedulingPolicy": policy}}]
    return [pod_group(least=least, **spec)] if form == "object" else []


async def _end(live: Cluster, name: str, phase: str = "Succeeded") -> None:
    await live.client.patch(
        PODS,
        name,
        patch_body({"status": {"phase": phase}}),
        namespace="default",
        subresource="status",
        content_type=MERGE_PATCH,
    )
    assert live.phase_of(name) == phase


def _play(form: str, mode: str, replaced: Sequence[str], *, succeeded: Sequence[str]) -> None:
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*objects, make("m1", least=2), make("m2", least=2))
        await live.until(lambda: live.bound("m1", "m2") == 2)
        for name in succeeded:
            await _end(live, name)
        await live.delete("m2")
        for name in replaced:
            await live.create_objects(make(name, least=2))
        await live.until(lambda: live.bound(*replaced) == len(replaced), seconds=15)

    play(scenario, cluster=nodes(3), config=_config(form, mode))


@pytest.mark.parametrize("mode", ["trial", "permit"])
@pytest.mark.parametrize("form", FORMS)
def test_a_replacement_starts_next_to_a_member_that_succeeded(form: str, mode: str) -> None:
    _play(form, mode, ["m2b"], succeeded=["m1"])


@pytest.mark.parametrize("form", FORMS)
def test_a_replacement_starts_if_its_partner_succeeds_later(form: str) -> None:
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*objects, make("m1", least=2), make("m2", least=2))
        await live.until(lambda: live.bound("m1", "m2") == 2)
        await live.delete("m1", "m2")
        await aio.sleep(1)  # or m3 replaces one of them, as long as the other is there
        await live.create_objects(make("m3", least=2))
        await live.until(lambda: bool(live.message_of("m3")))
        await live.create_objects(make("m4", least=2))
        await live.until(lambda: live.bound("m3", "m4") == 2)
        await live.delete("m4")
        await live.create_objects(make("m5", least=2))
        await _end(live, "m3")
        await live.until(lambda: live.bound("m5") == 1, seconds=15)

    play(scenario, cluster=nodes(2), config=_config(form, "trial"))


@pytest.mark.parametrize("form", FORMS)
def test_a_member_that_failed_does_not_count(form: str) -> None:
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*objects, make("m1", least=2), make("m2", least=2))
        await live.until(lambda: live.bound("m1", "m2") == 2)
        await _end(live, "m1", "Failed")
        await live.delete("m2")
        await live.create_objects(make("m2b", least=2))
        await live.until(lambda: bool(live.message_of("m2b")))
        assert live.bound("m2b") == 0

    play(scenario, cluster=nodes(2), config=_config(form, "trial"))


# --- elastic groups, and the room that a replacement needs ----------------------------------------


@pytest.mark.parametrize("mode", ["trial", "permit"])
@pytest.mark.parametrize("form", FORMS)
def test_members_beyond_the_minimum_come_and_go(form: str, mode: str) -> None:
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*objects, make("m1", least=2), make("m2", least=2))
        await live.until(lambda: live.bound("m1", "m2") == 2)
        await live.create_objects(make("m3", least=2))
        await live.until(lambda: live.bound("m3") == 1, seconds=3)
        await live.create_objects(make("m4", least=2), make("m5", least=2))
        await live.until(lambda: live.bound("m4") == 1, seconds=3)
        await live.until(lambda: "Insufficient cpu" in live.message_of("m5"), seconds=3)
        await live.delete("m1", "m2")
        await live.until(lambda: live.bound("m5") == 1, seconds=15)
        await live.delete("m3", "m4")
        await live.create_objects(make("m6", least=2))
        await live.until(lambda: live.bound("m6") == 1, seconds=15)
        assert live.bound("m5") == 1

    play(scenario, cluster=nodes(4), config=_config(form, mode))


@pytest.mark.parametrize("mode", ["trial", "permit"])
@pytest.mark.parametrize("form", FORMS)
def test_a_replacement_waits_only_for_its_own_room(form: str, mode: str) -> None:
    """Two members have succeeded, and others have taken their nodes."""
    make = FORMS[form][0]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*_objects(form, 3, minResources={"cpu": "3"}))
        await live.create_objects(*(make(name, least=3) for name in ("m1", "m2", "m3")))
        await live.until(lambda: live.bound("m1", "m2", "m3") == 3)
        others = {name: pod_manifest(name, cpu="1") for name in ("x1", "x2", "x3")}
        await live.create_objects(others["x1"], others["x2"], others["x3"])
        await aio.sleep(100)  # Coscheduling judges minResources anew after a minute
        await _end(live, "m1")
        await _end(live, "m2")
        await live.until(lambda: live.bound(*others) == 2, seconds=15)
        await live.delete("m3")
        await live.until(lambda: live.bound(*others) == 3, seconds=15)
        await live.create_objects(make("m3b", least=3))
        await live.until(lambda: bool(live.message_of("m3b")))
        assert live.bound("m3b") == 0
        await live.delete("x1")
        await live.until(lambda: live.bound("m3b") == 1, seconds=15)

    play(scenario, cluster=nodes(3), config=_config(form, mode))


@pytest.mark.parametrize("mode", ["trial", "permit"])
@pytest.mark.parametrize("form", FORMS)
def test_a_replacement_evicts_for_its_own_room_only(form: str, mode: str) -> None:
    make = FORMS[form][0]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(HIGH, *_objects(form, 3, minResources={"cpu": "3"}))
        members = [make(name, least=3, priorityClassName="high") for name in ("m1", "m2", "m3")]
        await live.create_objects(*members)
        await live.until(lambda: live.bound("m1", "m2", "m3") == 3)
        others = ["x1", "x2", "x3"]
        await aio.sleep(100)
        await _end(live, "m1")
        await live.delete("m2")
        await live.create_objects(*(pod_manifest(name, cpu="1") for name in others))
        await live.until(lambda: live.bound(*others) == 3, seconds=15)
        await live.create_objects(make("m2b", least=3, priorityClassName="high"))
        await live.until(lambda: live.bound("m2b") == 1, seconds=60)
        assert [live.stored_pod(name) is not None for name in others].count(True) == 2

    play(scenario, cluster=nodes(4), config=_config(form, mode))


# --- pods of an earlier group of the same name ----------------------------------------------------


def _job_of(uid: str) -> list[Manifest]:
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": uid, "uid": uid, "controller": True}]


def _owned(pod: Manifest, uid: str) -> Manifest:
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": _job_of(uid)}}


@pytest.mark.parametrize("mode", ["trial", "permit"])
@pytest.mark.parametrize("form", FORMS)
def test_the_next_run_of_a_cron_job_starts_whole(form: str, mode: str) -> None:
    """The pods of the run before exist still, as a CronJob keeps its Jobs."""
    make, objects = FORMS[form]

    async def scenario(live: Cluster) -> None:
        run = [_owned(make(name, least=2), "job-1") for name in ("a1", "a2")]
        await live.create_objects(*objects, *run)
        await live.until(lambda: live.bound("a1", "a2") == 2)
        await _end(live, "a1")
        await _end(live, "a2")
        await live.create_objects(_owned(make("b1", least=2), "job-2"))
        await aio.sleep(20)
        assert live.bound("b1") == 0
        await live.create_objects(_owned(make("b2", least=2), "job-2"))
        await live.until(lambda: live.bound("b1", "b2") == 2, seconds=15)
        await live.delete("b2")
        await _end(live, "b1")
        await live.create_objects(_owned(make("b3", least=2), "job-2"))
        await live.until(lambda: live.bound("b3") == 1, seconds=15)

    play(scenario, cluster=nodes(2), config=_config(form, mode))


@pytest.mark.parametrize("form", ["object", "kubernetes"])
def test_pods_older_than_the_object_of_the_group_do_not_count(form: str) -> None:
    make, objects = FORMS[form]
    resource = POD_GROUPS if form == "kubernetes" else COSCHEDULING_POD_GROUPS

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*objects, make("a1", least=2), make("a2", least=2))
        await live.until(lambda: live.bound("a1", "a2") == 2)
        await _end(live, "a1")
        await _end(live, "a2")
        await live.client.delete(resource, "g", namespace="default")
        await aio.sleep(2)
        await live.create_objects(*objects, make("b1", least=2))
        await aio.sleep(20)
        assert live.bound("b1") == 0
        await live.create_objects(make("b2", least=2))
        await live.until(lambda: live.bound("b1", "b2") == 2, seconds=15)

    play(scenario, cluster=nodes(2), config=_config(form, "trial"))
