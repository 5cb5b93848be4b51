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
from scheduler.tests.explain import planted_pods as pods
from scheduler.tests.explain import planted_rules as rules
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
    pods.local_storage,
    pods.huge_pages,
    pods.init_container,
    pods.sidecar,
    pods.overhead,
    pods.devices_of_others,
    pods.pods_of_sets,
    pods.terminating,
    pods.nominated,
    pods.spread_of_nominated,
    pods.only_a_class_that_never_preempts,
    pods.port_of_another_protocol,
    pods.requests_of_the_pod,
    pods.port_of_one_address,
    pods.enemies_of_other_namespaces,
    pods.one_of_two_terms,
    pods.partner_in_another_namespace,
    pods.one_of_two_enemies,
    pods.too_few_domains,
    pods.domains_without_label,
    pods.one_of_two_constraints,
    rules.one_of_two_labels,
    rules.labels_of_a_number,
    rules.a_label_too_many,
    rules.one_of_two_taints,
    rules.taint_of_another_value,
    rules.not_ready,
    rules.unreachable,
    rules.under_pressure,
    rules.without_network,
    rules.claims_that_exclude_each_other,
    rules.unlike_devices,
    rules.requests_that_exclude_each_other,
    rules.one_class_without_devices,
    rules.counters_used_up,
    rules.resource_without_devices,
    rules.resource_of_too_few_devices,
    rules.resource_of_others,
    rules.incomplete_at_permit,
    rules.too_large_at_permit,
    rules.too_large_in_a_complete_group,
    rules.missing_group,
    rules.resources_of_the_group,
    rules.gated_member,
    rules.zone_without_label,
    rules.other_zone_only,
)


INNOCENT: Final = {
    "port_of_another_protocol": ("/TCP",),
    "one_of_two_terms": ("app=db",),
    "one_of_two_enemies": ("app=absent",),
    "one_of_two_constraints": ("hostname",),
    "one_of_two_labels": ("disk",),
    "labels_of_a_number": ("Exists",),
    "one_of_two_taints": (" known=on",),
}
"""Parts of the pod or of its nodes that are not at fault, by planted cause."""


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
    innocent = any(text in first for text in INNOCENT.get(case.kind, ()))
    return alone and not innocent and first.startswith(start) and about in first.removeprefix(start)
