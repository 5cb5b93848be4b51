"""Answers about namespaces, groups, nodes and claims; ``workloads`` plants their causes."""

from __future__ import annotations

import pytest

from moorage.base.errors import NotFoundError
from moorage.explain.workloads.answer import Stage
from moorage_sandbox.testing.builders import node_manifest
from scheduler.tests.explain.clusters import bound, waiting
from scheduler.tests.explain.workloads.owned import (
    about,
    owner,
    pending_pods,
    quota,
    ready_pods,
    reference,
)
from tests.scenarios.gangs import coscheduling, of_labels

NODES = [node_manifest(f"n{index}", cpu="4") for index in range(3)]


def test_a_namespace_has_its_pods_by_cause_those_that_do_not_exist_and_its_quotas() -> None:
    pods = reference("ReplicaSet", "api-1")
    found = about(
        *NODES,
        owner("Deployment", "api", replicas=5),
        owner("ReplicaSet", "api-1", below=reference("Deployment", "api"), replicas=5),
        *ready_pods(pods, 2, nodes=3, cpu="1"),
        *pending_pods(reference("Job", "big"), 1, cpu="9"),
        quota("team", {"requests.cpu": "2"}, requests_cpu="2"),
        type_="ns",
        name="default",
    )
    assert found.sentence == (
        "2 of 6 pods are ready; 3 are not created: Deployment api: quota team is used up: 2 of 2 "
        "requests.cpu are used, and each pod takes 1; 1 more waits for another cause"
    )
    assert [(each.pods, each.stage) for each in found.counts] == [
        (3, Stage.NOT_CREATED),
        (1, Stage.PENDING),
        (2, Stage.READY),
    ]
    assert [(each.of, each.resource, each.note) for each in found.amounts] == [
        ("quota team", "requests.cpu", "full")
    ]
    raised = found.suggestions[0]
    assert (raised.text, raised.helps) == ("raise quota team: requests.cpu from 2 to 5", 3)
    assert raised.command == (
        "kubectl -n default patch resourcequota team --type=merge "
        """-p '{"spec":{"hard":{"requests.cpu":"5"}}}'"""
    )


def test_a_group_says_what_it_lacks() -> None:
    labels = of_labels("p", least=3)["metadata"]["labels"]
    found = about(
        *NODES,
        waiting("p", labels=labels, cpu="1"),
        type_="podgroup",
        name="g",
        config=coscheduling(),
    )
    assert found.wanted == 3
    assert found.counts[0].stage is Stage.NOT_CREATED
    assert "pod group default/g lacks pods: 1 exists, min-available is 3" in found.sentence


def test_a_group_that_no_plugin_schedules_says_what_would_turn_groups_on() -> None:
    labels = of_labels("p", least=3)["metadata"]["labels"]
    pods = [waiting("p", labels=labels, cpu="1"), bound("q", "n1", labels=labels, cpu="1")]
    found = about(*NODES, *pods, type_="podgroup", name="g")
    assert found.notes[0].startswith(
        "pod group default/g (labels) is not scheduled as a group, each of its pods is placed on "
        "its own: profile default-scheduler has no plugin Coscheduling. To schedule groups: "
    )
    assert sum(each.pods for each in found.counts) == 2


def test_a_group_without_pods_that_no_plugin_would_schedule_says_so() -> None:
    with pytest.raises(
        NotFoundError, match=r"no pod names it.*the feature gate GenericWorkload is off"
    ):
        about(*NODES, type_="podgroup", name="g")


def test_a_full_node_says_what_is_stranded_on_it() -> None:
    pods = [bound("w", "n0", cpu="4"), waiting("p", cpu="1")]
    found = about(*NODES, *pods, type_="node", name="n0")
    assert found.sentence == (
        "has no cpu left; 1 of 1 pending pods do not fit on it: rejected here by "
        "NodeResourcesFit: Insufficient cpu"
    )
    assert [(each.resource, each.used, each.most, each.note) for each in found.amounts] == [
        ("cpu", "4", "4", "full"),
        ("memory", "0", "8Gi", "stranded: cpu is full"),
        ("pods", "1", "110", ""),
    ]


@pytest.mark.parametrize("type_", ["node", "pvc", "resourceclaim", "podgroup", "workload", "ns"])
def test_an_object_that_is_not_there_is_named(type_: str) -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        about(*NODES, type_=type_, name="nobody")
