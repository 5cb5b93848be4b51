"""Answers about workloads: how many pods are ready, what keeps the rest, what would help.

Not covered: each cause of a pending pod (``test_planted``), the command line, HTTP.
"""

from __future__ import annotations

import pytest

from moorage.base.errors import NotFoundError, UsageError
from moorage.explain.workloads.answer import Stage
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, waiting
from scheduler.tests.explain.workloads.owned import (
    about,
    failed_create,
    of,
    owner,
    pending_pods,
    quota,
    ready_pods,
    reference,
)
from tests.scenarios.gangs import coscheduling, of_labels

NODES = [node_manifest(f"n{index}", cpu="4") for index in range(10)]
OF_SET = reference("ReplicaSet", "api-1")
EXCEEDED = (
    'pods "api-1-x" is forbidden: exceeded quota: team, requested: requests.cpu=1, '
    "used: requests.cpu=26, limited: requests.cpu=26"
)


def deployment(replicas: int, **status: object) -> list[Manifest]:
    """Return a Deployment and its ReplicaSet."""
    below = reference("Deployment", "api")
    return [
        owner("Deployment", "api", replicas=replicas),
        owner("ReplicaSet", "api-1", below=below, status=dict(status), replicas=replicas),
    ]


def test_a_quota_that_refuses_pods_is_the_cause_and_raising_it_is_tried() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "message": EXCEEDED}
    found = about(
        *NODES,
        *deployment(40, conditions=[failure]),
        quota("team", {"requests.cpu": "26"}, requests_cpu="26"),
        *ready_pods(OF_SET, 26, nodes=10, cpu="1"),
        type_="deploy",
        name="api",
    )
    assert found.sentence == (
        "26 of 40 pods are ready; 14 are not created: quota team is used up: "
        "26 of 26 requests.cpu are used, and each pod takes 1"
    )
    (way,) = found.suggestions
    assert (way.helps, way.of, way.text) == (
        14,
        14,
        "raise quota team: requests.cpu from 26 to 40",
    )
    assert way.command == (
        "kubectl -n default patch resourcequota team --type=merge -p "
        """'{"spec":{"hard":{"requests.cpu":"40"}}}'"""
    )


def test_a_raised_quota_helps_only_the_pods_that_get_a_node() -> None:
    found = about(
        *NODES[:7],
        *deployment(40),
        quota("team", {"requests.cpu": "26"}, requests_cpu="26"),
        failed_create("ReplicaSet", "api-1", EXCEEDED),
        *ready_pods(OF_SET, 26, nodes=7, cpu="1"),
        type_="deployment",
        name="api",
    )
    (way,) = found.suggestions
    assert (way.helps, way.of) == (2, 14)
    assert way.text.endswith("14 more pods are created, and only 2 of them get a node")


def test_pods_larger_than_every_node_get_nodes_of_a_larger_type() -> None:
    """An e2-standard-4 has 4 cpu; of the 8 of the next type, pods may request 7.6."""
    label = {"node.kubernetes.io/instance-type": "e2-standard-4"}
    found = about(
        *(node_manifest(f"n{index}", cpu="4", labels=label) for index in range(3)),
        *deployment(3),
        *pending_pods(OF_SET, 3, cpu="7"),
        type_="deployment",
        name="api",
    )
    ways = [(way.kind, way.text, way.helps, way.copies) for way in found.suggestions]
    text = "3 more nodes of a larger type, such as n2-standard-8 (8 cpu, 32Gi memory)"
    assert ("node", text, 3, 3) in ways


def test_a_report_about_a_quota_that_has_room_again_is_said_to_be_old() -> None:
    found = about(
        *NODES,
        *deployment(2),
        quota("team", {"requests.cpu": "0"}, requests_cpu="26"),
        failed_create("ReplicaSet", "api-1", EXCEEDED),
        type_="deployment",
        name="api",
    )
    assert "it has room now, and the controller tries again" in found.sentence
    assert found.suggestions == ()


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        pytest.param(
            'Error creating: pods "api-1-x" is forbidden: violates PodSecurity "restricted:latest":'
            " runAsNonRoot != true",
            'pod security refuses them: violates PodSecurity "restricted:latest": runAsNonRoot != '
            "true",
            id="pod security",
        ),
        pytest.param(
            'Error creating: admission webhook "no.example.com" denied the request: no',
            'an admission webhook refuses them: admission webhook "no.example.com" denied the '
            "request: no",
            id="a webhook",
        ),
        pytest.param(
            'Error creating: pods "api-1-x" is forbidden: maximum cpu usage per Container is 500m, '
            "but limit is 1",
            "a limit range refuses them: maximum cpu usage per Container is 500m, but limit is 1",
            id="a limit range",
        ),
        pytest.param(
            'Error creating: pods "api-1-x" is forbidden: error looking up service account '
            'default/robot: serviceaccount "robot" not found',
            "their service account is missing: error looking up service account default/robot: "
            'serviceaccount "robot" not found',
            id="a service account",
        ),
    ],
)
def test_the_controller_says_who_refuses_pods(message: str, cause: str) -> None:
    event = failed_create("ReplicaSet", "api-1", message)
    found = about(*NODES, *deployment(3), event, type_="deployment", name="api")
    assert found.counts[0].cause == cause
    assert found.sentence == f"0 of 3 pods are ready; 3 are not created: {cause}"


def test_pending_pods_are_folded_and_a_change_is_tried_for_all_of_them() -> None:
    full = [bound(f"x{index}", f"n{index}", cpu="2") for index in range(10)]
    found = about(
        *NODES,
        *deployment(14),
        *full,
        *pending_pods(OF_SET, 14, cpu="3"),
        type_="deployment",
        name="api",
    )
    assert found.sentence == (
        "0 of 14 pods are ready; 14 are pending: each would fit on 10 nodes of 10 but for cpu (it "
        "requests 3, the most that is free on one of them is 2)"
    )
    assert [(each.kind, each.helps, each.of) for each in found.suggestions[:2]] == [
        ("request", 10, 14),
        ("node", 14, 14),
    ]
    assert found.suggestions[1].copies == 14


def test_pods_that_fit_now_are_told_apart_from_those_that_find_no_room() -> None:
    found = about(
        *NODES[:2], *deployment(5), *pending_pods(OF_SET, 5, cpu="3"), type_="deploy", name="api"
    )
    pending = [(each.pods, each.cause) for each in found.counts if each.stage is Stage.PENDING]
    assert pending[0][0] == 3
    assert pending[0][1].startswith("would fit on 2 nodes of 2 but for cpu")
    assert pending[1][0] == 2
    assert pending[1][1].startswith("fits now on 2 nodes")


def test_a_bound_pod_that_is_not_ready_says_why() -> None:
    pod = of(OF_SET, bound("api-1-a", "n0"))
    pod["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
        "containerStatuses": [
            {"name": "c0", "state": {"waiting": {"reason": "ImagePullBackOff"}}, "ready": False}
        ],
    }
    found = about(*NODES, *deployment(1), pod, type_="rs", name="api-1")
    assert found.sentence == (
        "0 of 1 pods are ready; 1 is bound and not ready: container c0 waits: ImagePullBackOff"
    )


def test_a_custom_owner_is_known_by_the_references_of_its_pods() -> None:
    rollout = reference("Rollout", "api", "argoproj.io/v1alpha1")
    set_ = owner("ReplicaSet", "api-1", below=rollout, replicas=3)
    pods = ready_pods(OF_SET, 2, nodes=2, cpu="1")
    for word in ("rollout", "rollouts", "rollout.argoproj.io", "rollouts.v1alpha1.argoproj.io"):
        found = about(*NODES, set_, *pods, type_=word, name="api")
        assert found.sentence.startswith("2 of 3 pods are ready; 1 is not created: ")


def test_a_cron_job_is_answered_through_its_jobs() -> None:
    job = owner("Job", "night-1", below=reference("CronJob", "night"), parallelism=2)
    cron = owner("CronJob", "night", schedule="0 3 * * *")
    pods = pending_pods(reference("Job", "night-1"), 2, cpu="9")
    found = about(*NODES, cron, job, *pods, type_="cj", name="night")
    assert found.wanted == 2
    assert found.sentence.startswith("0 of 2 pods are ready; 2 are pending: each never fits here")


def test_a_stateful_set_waits_for_the_pod_before() -> None:
    set_ = owner("StatefulSet", "db", replicas=3)
    pods = pending_pods(reference("StatefulSet", "db"), 1, cpu="9")
    found = about(*NODES, set_, *pods, type_="sts", name="db")
    created = next(each for each in found.counts if each.stage is Stage.NOT_CREATED)
    assert created.cause == (
        "the StatefulSet creates one after another, and waits for pod db-p0 to be ready"
    )


def test_a_daemon_set_wants_a_pod_on_each_node_that_its_rules_allow() -> None:
    tainted = node_manifest("t", cpu="4", taints=[{"key": "x", "effect": "NoSchedule"}])
    set_ = owner("DaemonSet", "agent")
    pods = ready_pods(reference("DaemonSet", "agent"), 3, nodes=3)
    found = about(*NODES[:3], tainted, set_, *pods, type_="ds", name="agent")
    assert found.sentence == "all 3 pods are ready"


def test_a_suspended_job_wants_no_pods() -> None:
    found = about(*NODES, owner("Job", "train", suspend=True), type_="job", name="train")
    assert (found.wanted, found.sentence) == (0, "wants no pods")
    assert found.notes == ("The Job is suspended (spec.suspend): it creates no pods.",)


def test_a_toleration_becomes_a_change_of_the_template() -> None:
    tainted = [
        node_manifest(f"n{index}", taints=[{"key": "gpu", "effect": "NoSchedule"}])
        for index in range(3)
    ]
    found = about(
        *tainted, *deployment(2), *pending_pods(OF_SET, 2, cpu="1"), type_="deploy", name="api"
    )
    way = found.suggestions[0]
    assert (way.kind, way.helps) == ("toleration", 2)
    assert way.command.startswith(
        "kubectl -n default patch deployment api --type=merge -p "
        """'{"spec":{"template":{"spec":{"tolerations":[{"""
    )


def test_a_new_priority_class_is_created_before_the_template_names_it() -> None:
    one = node_manifest("n1", cpu="2")
    low = bound("low", "n1", cpu="2")
    found = about(
        one, low, *deployment(1), *pending_pods(OF_SET, 1, cpu="2"), type_="deploy", name="api"
    )
    way = next(each for each in found.suggestions if each.kind == "priority")
    assert way.command == (
        "kubectl create priorityclass priority-1 --value=1 && "
        "kubectl -n default patch deployment api --type=merge -p "
        """'{"spec":{"template":{"spec":{"priorityClassName":"priority-1"}}}}'"""
    )


@pytest.mark.parametrize(
    "word",
    [
        "podgroup",
        "PodGroups",
        "pg",
        "pgs",
        "podgroups.scheduling.x-k8s.io",
        "pg.scheduling.x-k8s.io",
    ],
)
def test_a_pod_group_has_the_names_that_kubectl_knows(word: str) -> None:
    pods = [of_labels(f"m{index}", least=2) for index in range(2)]
    found = about(*pods, type_=word, name="g", config=coscheduling())
    assert (found.type_, found.wanted) == ("podgroup", 2)


def test_a_selection_of_pods_is_answered_by_state() -> None:
    pods = [waiting(f"p{index}", cpu="9", labels={"app": "web"}) for index in range(3)]
    found = about(*NODES, *pods, waiting("other", cpu="9"), selector="app=web")
    assert found.sentence.startswith("0 of 3 pods are ready; 3 are pending: each never fits here")


@pytest.mark.parametrize(
    ("query", "error", "says"),
    [
        ({"type_": "deploy", "name": "no"}, NotFoundError, 'deployments.apps "no" not found'),
        ({"type_": "robot", "name": "r"}, NotFoundError, '"robot" is no type that is known'),
        ({"type_": "svc", "name": "web"}, UsageError, "explain answers about pods, deployment"),
        ({"selector": "a in"}, UsageError, "selector a in: "),
        ({"selector": "a=b"}, NotFoundError, "there are no pods with labels a=b"),
        ({"type_": "deploy"}, UsageError, "name the object"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    query: dict[str, str], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        about(*NODES, **query)  # type: ignore[arg-type]


def test_a_pod_that_would_get_no_node_either_is_said_so() -> None:
    found = about(
        *NODES[:2],
        *deployment(3),
        quota("team", {"requests.cpu": "26"}, requests_cpu="26"),
        *ready_pods(OF_SET, 2, nodes=2, cpu="4"),
        type_="deployment",
        name="api",
    )
    assert found.suggestions == ()
    assert found.notes[0].startswith(
        "If it were created, the next pod would get no node: it would fit on 2 nodes of 2 but for"
    )
