"""Scope: what kube-apiserver says of odd workloads, rule by rule (apis/apps and apis/batch).

A row has the beginnings of the messages. Changes of jobs are the scope of `test_suspended_jobs`.
"""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.tests.kinds.builders import KINDS, create_errors, created, named, template, workload

Rows = list[Any]


def judged(plural: str, obj: dict[str, Any], messages: list[str]) -> None:
    found = create_errors(plural, obj)
    assert len(found) == len(messages), found
    for text, message in zip(found, messages, strict=True):
        assert text.startswith(message), found


def shown(value: object) -> str:
    return str(value)[:120]


STATEFUL_SETS: Rows = [
    ({"updateStrategy": {"type": "OnDelete"}}, []),
    ({"updateStrategy": {"type": "Odd"}}, ["spec.updateStrategy: Invalid value"]),
    (
        {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
        ["spec.updateStrategy.rollingUpdate: Invalid value"],
    ),
    ({"updateStrategy": {"rollingUpdate": {"partition": 3}}}, []),
    (
        {"updateStrategy": {"rollingUpdate": {"partition": -1}}},
        ["spec.updateStrategy.rollingUpdate.partition: Invalid value: -1"],
    ),
    ({"updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}}}, []),
    (
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
        ["spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0"],
    ),
    (
        {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "101%"}}},
        ["spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value"],
    ),
    ({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}, []),
    (
        {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Keep", "whenScaled": "delete"}},
        [
            "spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value",
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value",
        ],
    ),
    ({"ordinals": {"start": 5}}, []),
    ({"ordinals": {"start": -1}}, ["spec.ordinals.start: Invalid value: -1"]),
    ({"revisionHistoryLimit": -1}, []),  # a warning only
    ({"minReadySeconds": -1}, ["spec.minReadySeconds: Invalid value: -1"]),
]


@pytest.mark.parametrize(("spec", "messages"), STATEFUL_SETS, ids=shown)
def test_stateful_sets(spec: dict[str, Any], messages: list[str]) -> None:
    judged("statefulsets", workload("statefulsets", **spec), messages)


def test_the_name_of_a_stateful_set_is_a_label_because_its_pods_have_hostnames() -> None:
    obj = workload("statefulsets")
    obj["metadata"]["name"] = "a.b"
    judged("statefulsets", obj, ['metadata.name: Invalid value: "a.b": a lowercase RFC 1123 label'])


DEPLOYMENTS: Rows = [
    ({"progressDeadlineSeconds": 11, "minReadySeconds": 10}, []),
    (
        {"progressDeadlineSeconds": 10, "minReadySeconds": 10},
        ["spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds"],
    ),
    ({"minReadySeconds": 600}, ["spec.progressDeadlineSeconds: Invalid value: 600"]),
    ({"strategy": {"type": "Recreate"}}, []),
    (
        {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}},
        ["spec.strategy.rollingUpdate: Forbidden"],
    ),
    ({"strategy": {"rollingUpdate": {"maxSurge": "150%"}}}, []),
    (
        {"strategy": {"rollingUpdate": {"maxUnavailable": "150%"}}},
        ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value"],
    ),
    (
        {"strategy": {"rollingUpdate": {"maxUnavailable": "00%", "maxSurge": 0}}},
        ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value"],
    ),
    ({"revisionHistoryLimit": -1}, ["spec.revisionHistoryLimit: Invalid value: -1"]),
]


@pytest.mark.parametrize(("spec", "messages"), DEPLOYMENTS, ids=shown)
def test_deployments(spec: dict[str, Any], messages: list[str]) -> None:
    judged("deployments", workload("deployments", **spec), messages)


MAIN: dict[str, Any] = {"operator": "In", "values": [1]}
FAILURE = "spec.podFailurePolicy.rules[0]"
SUCCESS = "spec.successPolicy.rules[0]"


def failing(*rules: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(rules)}, **spec}


def on_exit(**codes: Any) -> dict[str, Any]:
    return failing({"action": "FailJob", "onExitCodes": MAIN | codes})


def on_condition(**pattern: Any) -> dict[str, Any]:
    condition = {"type": "DisruptionTarget", "status": "True"} | pattern
    return failing({"action": "Ignore", "onPodConditions": [condition]})


def succeeding(**rule: Any) -> dict[str, Any]:
    return {"completions": 5, "successPolicy": {"rules": [rule]}}


JOBS: Rows = [
    # Counts.
    ({"ttlSecondsAfterFinished": -1}, ["spec.ttlSecondsAfterFinished: Invalid value: -1"]),
    ({"parallelism": 100_000}, []),
    ({"parallelism": 100_001}, ["spec.parallelism: Invalid value: 100001"]),
    ({"completionMode": "NonIndexed", "parallelism": 100_001}, []),
    ({"completions": 200_000, "parallelism": 20_000}, []),
    (
        {"completions": 200_000, "parallelism": 20_000, "backoffLimitPerIndex": 1},
        ["spec.maxFailedIndexes: Required value", "spec.parallelism: Invalid value: 20000"],
    ),
    (
        {"completions": 200_000, "maxFailedIndexes": 20_000, "backoffLimitPerIndex": 1},
        ["spec.maxFailedIndexes: Invalid value: 20000"],
    ),
    ({"backoffLimitPerIndex": 1, "restartPolicy": "OnFailure"}, []),
    ({"completionMode": "Odd"}, ["spec.completionMode: Unsupported value"]),
    # The name of the last pod is its hostname.
    ({"name": "a" * 61}, []),
    ({"name": "a" * 61, "completions": 11}, ["metadata.name: Invalid value"]),
    ({"name": "a.b"}, ["metadata.name: Invalid value"]),
    ({"name": "a.b", "completionMode": "NonIndexed"}, []),
    # The controller that manages the job.
    ({"managedBy": "example.com/queue"}, []),
    ({"managedBy": "queue"}, ["spec.managedBy: Invalid value"]),
    ({"managedBy": ""}, ["spec.managedBy: Required value"]),
    ({"managedBy": "Example/x"}, ["spec.managedBy: Invalid value"]),
    ({"managedBy": "example.com/ä"}, ["spec.managedBy: Invalid value"]),
    ({"managedBy": "example.com/" + "x" * 60}, ["spec.managedBy: Too long"]),
    # Replacing pods.
    ({"podReplacementPolicy": "TerminatingOrFailed"}, []),
    ({"podReplacementPolicy": "Odd"}, ["spec.podReplacementPolicy: Unsupported value"]),
    (
        failing(podReplacementPolicy="TerminatingOrFailed"),
        ["spec.podReplacementPolicy: Unsupported value"],
    ),
    # Failing pods.
    (on_exit(), []),
    (on_exit(containerName="main"), []),
    (on_exit(containerName="other"), [f"{FAILURE}.onExitCodes.containerName: Invalid value"]),
    (on_exit(operator="Odd"), [f"{FAILURE}.onExitCodes.operator: Unsupported value"]),
    (on_exit(values=[]), [f"{FAILURE}.onExitCodes.values: Invalid value"]),
    (on_exit(values=[0, 1]), [f"{FAILURE}.onExitCodes.values[0]: Invalid value: 0"]),
    (on_exit(operator="NotIn", values=[0, 1]), []),
    (on_exit(values=[2, 2]), [f"{FAILURE}.onExitCodes.values[1]: Duplicate value"]),
    (on_exit(values=[2, 1]), [f"{FAILURE}.onExitCodes.values: Invalid value"]),
    (on_exit(values=[*range(1, 256)]), []),
    (on_exit(values=[*range(1, 257)]), [f"{FAILURE}.onExitCodes.values: Too many"]),
    (on_condition(), []),
    (on_condition(status=""), []),  # it is True then
    (on_condition(type="Bad Type"), [f"{FAILURE}.onPodConditions[0].type: Invalid value"]),
    (on_condition(status="Maybe"), [f"{FAILURE}.onPodConditions[0].status: Unsupported value"]),
    (failing({"action": "FailJob"}), [f"{FAILURE}: Invalid value"]),
    (
        failing(
            {
                "action": "FailJob",
                "onExitCodes": MAIN,
                "onPodConditions": [{"type": "Ready", "status": "False"}],
            }
        ),
        [f"{FAILURE}: Invalid value"],
    ),
    (failing({"action": "Odd", "onExitCodes": MAIN}), [f"{FAILURE}.action: Unsupported value"]),
    (failing({"action": "FailIndex", "onExitCodes": MAIN}), [f"{FAILURE}.action: Invalid value"]),
    (failing({"action": "FailIndex", "onExitCodes": MAIN}, backoffLimitPerIndex=1), []),
    (
        failing(*[{"action": "Count", "onExitCodes": MAIN}] * 21),
        ["spec.podFailurePolicy.rules: Too many"],
    ),
    (failing(restartPolicy="OnFailure"), ["spec.template.spec.restartPolicy: Invalid value"]),
    # Succeeding early.
    (succeeding(succeededCount=0), []),
    (succeeding(succeededCount=5), []),
    (succeeding(succeededCount=6), [f"{SUCCESS}.succeededCount: Invalid value: 6"]),
    (succeeding(succeededCount=-1), [f"{SUCCESS}.succeededCount: Invalid value: -1"]),
    (succeeding(succeededIndexes="0-2,4"), []),
    (succeeding(succeededIndexes=""), []),
    (succeeding(succeededIndexes="3-3"), [f"{SUCCESS}.succeededIndexes: Invalid value"]),
    (succeeding(succeededIndexes="0-5"), [f"{SUCCESS}.succeededIndexes: Invalid value"]),
    (succeeding(succeededIndexes="0-1-2"), [f"{SUCCESS}.succeededIndexes: Invalid value"]),
    (succeeding(succeededIndexes="2,2"), [f"{SUCCESS}.succeededIndexes: Invalid value"]),
    (succeeding(succeededIndexes="0-1", succeededCount=3), [f"{SUCCESS}.succeededCount: Invalid"]),
    (
        succeeding(succeededCount=1) | {"completionMode": "NonIndexed"},
        ["spec.successPolicy: Invalid value"],
    ),
]


def job_spec(spec: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in spec.items() if key not in ("name", "restartPolicy")}
    body = template(restartPolicy=spec.get("restartPolicy", "Never"))
    return {"completionMode": "Indexed", "completions": 3, "template": body, **rest}


@pytest.mark.parametrize(("spec", "messages"), JOBS, ids=shown)
def test_jobs(spec: dict[str, Any], messages: list[str]) -> None:
    job = named("jobs", spec.get("name", "x"), spec=job_spec(spec))
    job["metadata"]["uid"] = "u"
    judged("jobs", job, messages)


@pytest.mark.parametrize(
    ("spec", "messages"), [row for row in JOBS if "name" not in row[0]], ids=shown
)
def test_the_jobs_of_a_cron_job_have_the_same_rules(
    spec: dict[str, Any], messages: list[str]
) -> None:
    cron = {"schedule": "@daily", "jobTemplate": {"spec": job_spec(spec)}}
    placed = [message.replace("spec.", "spec.jobTemplate.spec.", 1) for message in messages]
    judged("cronjobs", named("cronjobs", spec=cron), placed)


CRON_JOBS: Rows = [
    ({"selector": {"matchLabels": {"a": "b"}}}, {}, ["spec.jobTemplate.spec.selector: Invalid"]),
    ({"manualSelector": True}, {}, ["spec.jobTemplate.spec.manualSelector: Unsupported value"]),
    ({"manualSelector": False}, {}, []),
    ({}, {"schedule": "@every 1h30m"}, []),
    ({}, {"schedule": "@every soon"}, ["spec.schedule: Invalid value"]),
    ({}, {"schedule": "@every"}, ["spec.schedule: Invalid value"]),
    ({}, {"schedule": "0,,30 * * * *"}, []),
    ({}, {"schedule": "+5 * * * *"}, []),
    ({}, {"schedule": "*-5 * * * *"}, []),
    ({}, {"schedule": "5- * * * *"}, ["spec.schedule: Invalid value"]),
    ({}, {"timeZone": ""}, ["spec.timeZone: Invalid value"]),
    ({}, {"timeZone": "LOCAL"}, ["spec.timeZone: Invalid value"]),
    ({}, {"timeZone": "Europe//Berlin"}, ["spec.timeZone: Invalid value"]),
    ({}, {"timeZone": "Europe/-Berlin"}, ["spec.timeZone: Invalid value"]),
    ({}, {"timeZone": "Etc/GMT+5"}, []),
    ({}, {"startingDeadlineSeconds": -1}, ["spec.startingDeadlineSeconds: Invalid value"]),
]


@pytest.mark.parametrize(("of_job", "of_cron_job", "messages"), CRON_JOBS, ids=shown)
def test_cron_jobs(
    of_job: dict[str, Any], of_cron_job: dict[str, Any], messages: list[str]
) -> None:
    job = {"template": template(restartPolicy="Never"), **of_job}
    cron = {"schedule": "@daily", "jobTemplate": {"spec": job}, **of_cron_job}
    judged("cronjobs", named("cronjobs", spec=cron), messages)


COUNTS: Rows = [
    ("deployments", {"replicas": 3, "readyReplicas": 2, "availableReplicas": 2}, []),
    ("deployments", {"unavailableReplicas": -1}, ["status.unavailableReplicas: Invalid value: -1"]),
    (
        "deployments",
        {"replicas": 1, "updatedReplicas": 2},
        ["status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas"],
    ),
    (
        "replicasets",
        {"replicas": 3, "readyReplicas": 1, "availableReplicas": 2},
        ["status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"],
    ),
    ("statefulsets", {"replicas": 1, "currentReplicas": 2}, ["status.currentReplicas: Invalid"]),
    ("daemonsets", {"numberUnavailable": -1}, ["status.numberUnavailable: Invalid value: -1"]),
    ("replicationcontrollers", {"replicas": 1, "readyReplicas": 2}, ["status.readyReplicas: Inv"]),
    ("jobs", {"active": -1}, ["status.active: Invalid value: -1"]),
]


@pytest.mark.parametrize(("plural", "status", "messages"), COUNTS, ids=shown)
def test_counts_of_a_status(plural: str, status: dict[str, Any], messages: list[str]) -> None:
    found = [each.message for each in KINDS[plural].check_status({"status": status}, {})]
    assert len(found) == len(messages), found
    assert all(text.startswith(each) for text, each in zip(found, messages, strict=True)), found


def test_the_count_of_collisions_never_falls() -> None:
    old, new = ({"status": {"collisionCount": count}} for count in (2, 1))
    (error,) = KINDS["deployments"].check_status(new, old)
    assert error.message == "status.collisionCount: Invalid value: 1: cannot be decremented"
    assert not KINDS["deployments"].check_status(old, new)


def test_the_status_of_a_condition_in_a_failure_policy_is_true_by_default() -> None:
    spec = on_condition() | {"template": template(restartPolicy="Never")}
    del spec["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"]
    cron = {"schedule": "@daily", "jobTemplate": {"spec": spec}}
    job = created("jobs", named("jobs", spec=spec))["spec"]
    of_cron_job = created("cronjobs", named("cronjobs", spec=cron))["spec"]["jobTemplate"]["spec"]
    for made in (job, of_cron_job):
        (rule,) = made["podFailurePolicy"]["rules"]
        assert rule["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
