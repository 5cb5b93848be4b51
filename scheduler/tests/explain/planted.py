"""Generated pending pods, each with one planted cause among distractors, from a seed.

A few nodes are *open*: without the planted cause they take the pod. Every other node is closed by
two faults that have nothing to do with the planted cause, so the planted cause is the smallest set
that stands between the pod and a node. Some nodes are outside the zone that the pod chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.base.rng import Streams
from moorage.explain.answer import Explanation
from scheduler.tests.explain import planted_devices as devices
from scheduler.tests.explain import planted_groups as groups
from scheduler.tests.explain import planted_nodes as nodes
from scheduler.tests.explain import planted_volumes as volumes
from scheduler.tests.explain.plan import Case, Plan

PLANTED: Final[tuple[Callable[[Plan], tuple[str, str]], ...]] = (
    nodes.too_large,
    nodes.no_such_resource,
    nodes.no_room,
    nodes.too_many_pods,
    nodes.taint,
    nodes.cordon,
    nodes.selector,
    nodes.node_affinity,
    nodes.node_that_is_named,
    nodes.declared_features,
    nodes.host_port,
    nodes.spread,
    nodes.pod_affinity,
    nodes.anti_affinity,
    nodes.anti_affinity_of_others,
    nodes.gates,
    nodes.quota,
    nodes.unserved,
    volumes.missing_claim,
    volumes.volume_elsewhere,
    volumes.volume_in_another_zone,
    volumes.volume_that_is_gone,
    volumes.claim_without_a_class,
    volumes.claim_that_waits_for_its_volume,
    volumes.no_volume_to_bind,
    volumes.volumes_made_elsewhere,
    volumes.too_little_storage,
    volumes.claim_of_one_pod,
    volumes.disk_in_use,
    volumes.too_many_volumes,
    devices.no_device,
    devices.too_few_devices,
    devices.all_devices_taken,
    devices.no_device_selected,
    devices.devices_with_taints,
    devices.devices_elsewhere,
    devices.missing_device_class,
    devices.missing_resource_claim,
    groups.missing_member,
    groups.group_without_room,
    groups.member_too_large,
)


def planted(seed: int) -> Case:
    """Return the case of a seed; successive seeds go through the causes."""
    draw = Streams(seed).stream("planted")
    plant = PLANTED[seed % len(PLANTED)]
    plan = Plan(draw)
    start, about = plant(plan)
    return plan.finish(plant.__name__, f"{start}|{about}")


def names_first(case: Case, found: Explanation) -> bool:
    """Whether an explanation names the planted cause first, and alone."""
    start, about = case.expected.split("|")
    alone = not found.causes or len(found.causes[0].plugins) == 1
    first = found.sentence.split("; on ")[0]
    return alone and first.startswith(start) and about in first.removeprefix(start)
