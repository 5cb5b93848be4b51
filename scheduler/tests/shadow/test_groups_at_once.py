"""Gangs, elastic quotas and preemptors among 500 pods created at once, next to the same profile.

A group is decided about as a whole, and a preemptor after its victims are gone. Next to itself a
profile never differs about them, and next to another one the differences are found.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import ELASTIC_QUOTAS, POD_GROUPS, ResourceType
from moorage.base import aio
from moorage.base.rng import Streams
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from scheduler.tests.service.test_group_attempt import group, member
from scheduler.tests.shadow.clusters import Acts, Seen, at_once, config_of, shadowed
from scheduler.tests.shadow.test_differences import PACKING
from scheduler.tests.what_if.agreement import CLASSES
from tests.scenarios.gangs import coscheduling, of_labels, of_object, pod_group

MEMBERS = (2, 3, 5, 8)
SIZES = ("500m", "1", "2")
COSCHEDULING = coscheduling()
PERMIT = coscheduling("permit")
QUOTAS = coscheduling(extra="CapacityScheduling", without="DefaultPreemption")
GANGS = LoadedConfiguration(
    gates=feature_gates({"GenericWorkload": True, "GangScheduling": True}, "1.36")
)

Member = Callable[..., Manifest]
Object = tuple[ResourceType, Manifest]
Group = Callable[[str, int], Object]


def objects_at_once(seed: int, form: Member, make_group: Group | None, *, most: int) -> Acts:
    """Return acts: pods of five priorities, four in ten of them in gangs, in a random order."""
    rng = Streams(seed).stream("pods")
    priorities = (None, None, *sorted(CLASSES))
    groups: list[Object] = []
    pods: list[Manifest] = []
    while len(pods) < most:
        fields: Manifest = {"cpu": rng.choice(SIZES), "priorityClassName": rng.choice(priorities)}
        if rng.random() < 0.6:
            pods.append(pod_manifest(f"p{len(pods):03}", memory="64Mi", **fields))
            continue
        name, size = f"g{len(pods):03}", rng.choice(MEMBERS)
        if make_group is not None:
            groups.append(make_group(name, size))
        pods += [form(f"{name}-{each}", name, size, fields) for each in range(size)]
    rng.shuffle(pods)
    return at_once(pods, first=groups)


def in_labels(name: str, of: str, size: int, fields: Manifest) -> Manifest:
    return of_labels(name, of=of, least=size, **fields)


def in_object(name: str, of: str, size: int, fields: Manifest) -> Manifest:
    del size
    return of_object(name, of=of, **fields)


def in_workload(name: str, of: str, size: int, fields: Manifest) -> Manifest:
    del size
    return member(name, of=of, **fields)


def object_of(name: str, size: int) -> Object:
    return COSCHEDULING_POD_GROUPS, pod_group(name, least=size)


def workload_of(name: str, size: int) -> Object:
    return POD_GROUPS, group(name, least=size)


FORMS = [
    pytest.param(COSCHEDULING, in_labels, None, id="groups of labels"),
    pytest.param(COSCHEDULING, in_object, object_of, id="PodGroups"),
    pytest.param(PERMIT, in_object, object_of, id="waits at Permit"),
    pytest.param(GANGS, in_workload, workload_of, id="groups of Kubernetes"),
]


def play(config: LoadedConfiguration, form: Member, make: Group | None, *, most: int) -> Seen:
    nodes = [node_manifest(f"n{number}", cpu="16", memory="64Gi") for number in range(most // 25)]
    acts = objects_at_once(1, form, make, most=most)
    return shadowed(acts, nodes=nodes, config=config, real=config, slowest_write=0.3)


@pytest.mark.parametrize("most", [100, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("config", "form", "make"), FORMS)
def test_a_profile_next_to_itself_never_differs_about_gangs_and_preemptors(
    config: LoadedConfiguration, form: Member, make: Group | None, most: int
) -> None:
    seen = play(config, form, make, most=most)

    assert seen.report.differences == ()
    assert seen.report.agree > most // 20


def test_elastic_quotas_next_to_themselves_never_differ() -> None:
    rng = Streams(1).stream("pods")
    quota = {
        "apiVersion": ELASTIC_QUOTAS.api_version,
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": "default"},
        "spec": {"min": {"cpu": "20"}, "max": {"cpu": "40"}},
    }
    pods = [
        pod_manifest(
            f"p{each:03}",
            cpu=rng.choice(SIZES),
            memory="64Mi",
            priorityClassName=rng.choice(sorted(CLASSES)),
        )
        for each in range(150)
    ]
    seen = shadowed(
        at_once(pods, first=[(ELASTIC_QUOTAS, quota)]),
        nodes=[node_manifest(f"n{number}", cpu="16", memory="64Gi") for number in range(5)],
        config=QUOTAS,
        real=QUOTAS,
        slowest_write=0.3,
    )

    assert seen.report.differences == ()
    assert seen.report.courses is not None
    assert seen.report.courses.real.pods < 150, "the quota is used up"


def one_after_another(form: Member, make: Group | None) -> Acts:
    """Return acts that create ten groups of three members, each after the one before runs."""

    async def acts(cluster: VirtualCluster) -> None:
        for number in range(10):
            name = f"g{number}"
            if make is not None:
                resource, obj = make(name, 3)
                await cluster.client.create(resource, obj, namespace="default")
            for each in range(3):
                await cluster.create_objects(form(f"{name}-{each}", name, 3, {"cpu": "1"}))
            await aio.sleep(5.0)

    return acts


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize(("config", "form", "make"), FORMS)
def test_groups_one_after_another_are_comparable(
    config: LoadedConfiguration, form: Member, make: Group | None, packs: bool
) -> None:
    seen = shadowed(
        one_after_another(form, make),
        nodes=[node_manifest(f"n{number}", cpu="16", memory="64Gi") for number in range(10)],
        config=packing(config) if packs else config,
        real=config,
        slowest_write=0.05,
    )

    assert seen.report.not_comparable == 0
    assert seen.report.compared == 30
    # Of the first group, and of no other, one member may be the first on an empty node.
    assert seen.report.differ > 20 if packs else seen.report.differ == 0
    assert seen.report.plugins == ({"NodeResourcesFit": seen.report.differ} if packs else {})


def packing(config: LoadedConfiguration) -> LoadedConfiguration:
    """Return a configuration that differs from another in how NodeResourcesFit scores."""
    more = config_of(PACKING).scheduler.profiles[0].plugin_config
    profiles = [
        msgspec.structs.replace(each, plugin_config=[*each.plugin_config, *more])
        for each in config.scheduler.profiles
    ]
    return msgspec.structs.replace(
        config, scheduler=msgspec.structs.replace(config.scheduler, profiles=profiles)
    )
