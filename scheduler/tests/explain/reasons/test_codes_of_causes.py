"""Every planted cause has one code, and every code has a text and a page.

The clusters are those of ``test_planted``. Codes of messages: ``scheduler/tests/api/reasons``.
"""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from moorage.api.reasons.codes import ReasonCode
from moorage.base.errors import UsageError
from moorage.cli.main import main
from moorage.cli.reason.text import code_of, list_text, text_of
from moorage.explain.reasons.texts import TEXTS
from scheduler.tests.explain.clusters import explained
from scheduler.tests.explain.planted import PLANTED, planted
from tools.pages.reasons_page import reason_pages

CODES = {
    "too_large": "InsufficientCPU",
    "no_such_resource": "InsufficientGPU",
    "no_room": "InsufficientCPU",
    "too_many_pods": "TooManyPods",
    "taint": "UntoleratedTaint",
    "cordon": "NodeCordoned",
    "selector": "NoMatchingNode",
    "node_affinity": "NoMatchingNode",
    "node_that_is_named": "NoMatchingNode",
    "declared_features": "MissingNodeFeature",
    "host_port": "HostPortConflict",
    "spread": "TopologySpreadConflict",
    "pod_affinity": "PodAffinityUnmet",
    "anti_affinity": "PodAntiAffinityConflict",
    "anti_affinity_of_others": "ExistingAntiAffinity",
    "gates": "SchedulingGated",
    "quota": "QuotaExceeded",
    "unserved": "UnknownScheduler",
    "missing_claim": "VolumeClaimMissing",
    "volume_elsewhere": "VolumeNodeConflict",
    "volume_in_another_zone": "VolumeNodeConflict",
    "volume_that_is_gone": "VolumeMissing",
    "claim_without_a_class": "VolumeClaimPending",
    "claim_that_waits_for_its_volume": "VolumeClaimPending",
    "no_volume_to_bind": "NoMatchingVolume",
    "volumes_made_elsewhere": "NoMatchingVolume",
    "too_little_storage": "InsufficientStorage",
    "claim_of_one_pod": "VolumeInUse",
    "disk_in_use": "VolumeInUse",
    "too_many_volumes": "VolumeLimitReached",
    "no_device": "InsufficientDevices",
    "too_few_devices": "InsufficientDevices",
    "all_devices_taken": "InsufficientDevices",
    "no_device_selected": "InsufficientDevices",
    "devices_with_taints": "InsufficientDevices",
    "devices_elsewhere": "ResourceClaimNodeConflict",
    "missing_device_class": "InvalidResourceClaim",
    "missing_resource_claim": "ResourceClaimMissing",
    "missing_member": "GroupIncomplete",
    "group_without_room": "GroupUnschedulable",
    "member_too_large": "InsufficientCPU",
    "local_storage": "InsufficientEphemeralStorage",
    "huge_pages": "InsufficientResource",
    "init_container": "InsufficientCPU",
    "sidecar": "InsufficientCPU",
    "overhead": "InsufficientCPU",
    "devices_of_others": "InsufficientGPU",
    "pods_of_sets": "InsufficientCPU",
    "terminating": "InsufficientCPU",
    "nominated": "InsufficientCPU",
    "spread_of_nominated": "NominatedPodSpread",
    "only_a_class_that_never_preempts": "InsufficientCPU",
    "port_of_another_protocol": "HostPortConflict",
    "requests_of_the_pod": "InsufficientCPU",
    "port_of_one_address": "HostPortConflict",
    "enemies_of_other_namespaces": "PodAntiAffinityConflict",
    "one_of_two_terms": "PodAffinityUnmet",
    "partner_in_another_namespace": "PodAffinityUnmet",
    "one_of_two_enemies": "PodAntiAffinityConflict",
    "too_few_domains": "TopologySpreadConflict",
    "domains_without_label": "TopologyLabelMissing",
    "one_of_two_constraints": "TopologySpreadConflict",
    "one_of_two_labels": "NoMatchingNode",
    "labels_of_a_number": "NoMatchingNode",
    "a_label_too_many": "NoMatchingNode",
    "one_of_two_taints": "UntoleratedTaint",
    "taint_of_another_value": "UntoleratedTaint",
    "not_ready": "UntoleratedTaint",
    "unreachable": "UntoleratedTaint",
    "under_pressure": "UntoleratedTaint",
    "without_network": "UntoleratedTaint",
    "claims_that_exclude_each_other": "InsufficientDevices",
    "unlike_devices": "InsufficientDevices",
    "requests_that_exclude_each_other": "InsufficientDevices",
    "one_class_without_devices": "InsufficientDevices",
    "counters_used_up": "InsufficientDevices",
    "resource_without_devices": "InsufficientDevices",
    "resource_of_too_few_devices": "InsufficientDevices",
    "resource_of_others": "InsufficientDevices",
    "incomplete_at_permit": "GroupIncomplete",
    "too_large_at_permit": "InsufficientCPU",
    "too_large_in_a_complete_group": "InsufficientCPU",
    "missing_group": "GroupMissing",
    "resources_of_the_group": "GroupUnschedulable",
    "gated_member": "GroupIncomplete",
    "zone_without_label": "PodAffinityUnmet",
    "other_zone_only": "NoMatchingNode",
}


@pytest.mark.parametrize("plant", range(len(PLANTED)), ids=[each.__name__ for each in PLANTED])
def test_a_planted_cause_has_its_code(plant: int) -> None:
    case = planted(plant)
    found = explained(*case.manifests, config=case.config)
    assert found.reason == CODES[case.kind], found.sentence
    assert all(each.code in set(ReasonCode) for each in found.causes)


def test_every_code_has_a_text_and_a_page() -> None:
    assert list(TEXTS) == list(ReasonCode)
    assert set(reason_pages()) == {"index.md", *(f"{code}.md" for code in ReasonCode)}


@pytest.mark.parametrize("code", ReasonCode)
def test_a_command_that_shows_a_reason_is_one_of_kubectl_or_ours(code: ReasonCode) -> None:
    program, command, *_ = TEXTS[code].see.split()
    own = main.get_command(main.make_context("moorage", [], resilient_parsing=True), command)
    assert program == "kubectl" or (program == "moorage" and own is not None)


def test_a_code_is_read_in_any_case_and_a_near_miss_is_named() -> None:
    assert code_of("insufficientCPU") is ReasonCode.CPU
    with pytest.raises(UsageError, match="did you mean UntoleratedTaint"):
        code_of("untoleratdtaint")


def test_the_texts_do_not_wrap_at_80_columns() -> None:
    lines = list_text().splitlines()
    for code in ReasonCode:
        lines += [line for line in text_of(code).splitlines() if "kubectl" not in line]
    assert max(map(len, lines)) <= 80


def test_the_command_prints_one_code_and_all() -> None:
    one = CliRunner().invoke(main, ["reason", "GroupIncomplete", "-o", "name"])
    assert (one.exit_code, one.stdout) == (0, "reason/GroupIncomplete\n")
    every = CliRunner().invoke(main, ["reason", "-o", "name"])
    assert every.stdout.splitlines() == [f"reason/{code}" for code in ReasonCode]
