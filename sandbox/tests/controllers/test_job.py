"""Jobs in a whole cluster under the virtual clock: from creation to their end.

Single rules are in test_job_steps.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import JOBS, PODS
from moorage.base import aio
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, pods, running, stored, template

RUN = "moorage.dev/run-seconds"
EXIT = "moorage.dev/exit-code"
INDEX = "batch.kubernetes.io/job-completion-index"


def job(*, seconds: int = 5, exit_code: int = 0, **spec: Any) -> dict[str, Any]:
    body = template("job", restartPolicy="Never")
    body["metadata"]["annotations"] = {RUN: str(seconds), EXIT: str(exit_code)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {"template": body, **spec},
    }


def status(cluster: VirtualCluster) -> dict[str, Any]:
    found: dict[str, Any] = stored(cluster, JOBS, "work").get("status", {})
    return found


def conditions(cluster: VirtualCluster) -> dict[str, str]:
    """Return the true conditions and their reasons."""
    return {
        each["type"]: each["reason"]
        for each in status(cluster).get("conditions") or []
        if each["status"] == "True"
    }


@pytest.mark.slow
def test_a_job_of_a_hundred_completions_runs_to_its_end():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(completions=100, parallelism=20))
        most = 0

        def done() -> bool:
            nonlocal most
            most = max(most, len(running(cluster)))
            return "Complete" in conditions(cluster)

        await cluster.until(done, seconds=120)
        assert most == 20
        found = status(cluster)
        assert found["succeeded"] == 100
        assert "failed" not in found
        assert "active" not in found
        assert found["completionTime"] >= found["startTime"]
        assert conditions(cluster) == {
            "SuccessCriteriaMet": "CompletionsReached",
            "Complete": "CompletionsReached",
        }
        ended = every(cluster, PODS)
        assert len(ended) == 100
        assert not any(each["metadata"].get("finalizers") for each in ended)

    play(scenario)


def test_an_indexed_job_runs_every_index_once():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(completions=7, parallelism=3, completionMode="Indexed"))
        await cluster.until(lambda: "Complete" in conditions(cluster), seconds=60)
        index = "batch.kubernetes.io/job-completion-index"
        found = every(cluster, PODS)
        assert sorted(each["metadata"]["annotations"][index] for each in found) == list("0123456")
        for each in found:
            number = each["metadata"]["labels"][index]
            assert each["spec"]["hostname"] == f"work-{number}"
            assert each["metadata"]["name"].startswith(f"work-{number}-")
            (variable,) = each["spec"]["containers"][0]["env"]
            assert variable["name"] == "JOB_COMPLETION_INDEX"
        assert status(cluster)["completedIndexes"] == "0-6"
        assert status(cluster)["succeeded"] == 7

    play(scenario)


def test_a_job_without_completions_ends_when_its_pods_have():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(parallelism=3))
        await cluster.until(lambda: "Complete" in conditions(cluster), seconds=60)
        assert status(cluster)["succeeded"] == 3

    play(scenario)


def test_failures_are_retried_ever_later_until_the_limit():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(exit_code=1, backoffLimit=3))
        await cluster.until(lambda: "Failed" in conditions(cluster), seconds=300)
        assert conditions(cluster)["Failed"] == "BackoffLimitExceeded"
        assert status(cluster)["failed"] == 4
        # Four attempts of about 6 s, and pauses of 10, 20 and 40 s after the first three.
        assert 90 < cluster.seconds < 110
        assert len(every(cluster, PODS)) == 4

    play(scenario)


def test_a_job_that_takes_too_long_is_stopped():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(seconds=1000, parallelism=2, activeDeadlineSeconds=30))
        await cluster.until(lambda: "Failed" in conditions(cluster), seconds=40)
        assert conditions(cluster)["Failed"] == "DeadlineExceeded"
        assert cluster.seconds >= 30
        assert status(cluster)["failed"] == 2
        await cluster.until(lambda: not every(cluster, PODS))

    play(scenario)


def test_a_finished_job_is_deleted_with_its_pods_after_its_time_to_live():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(ttlSecondsAfterFinished=20))
        await cluster.until(lambda: "Complete" in conditions(cluster))
        assert every(cluster, PODS)
        began = cluster.seconds
        await cluster.until(lambda: not stored(cluster, JOBS, "work"), seconds=30)
        assert 18 < cluster.seconds - began < 22
        assert not every(cluster, PODS)

    play(scenario)


def test_a_suspended_job_has_no_pods_until_it_is_resumed():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(seconds=100, completions=2, parallelism=2, suspend=True))
        await cluster.until(lambda: conditions(cluster) == {"Suspended": "JobSuspended"})
        assert not every(cluster, PODS)
        assert "startTime" not in status(cluster)
        await cluster.patch_object(JOBS, "work", {"spec": {"suspend": False}}, namespace="default")
        await cluster.until(lambda: len(running(cluster)) == 2)
        assert conditions(cluster) == {}
        await cluster.patch_object(JOBS, "work", {"spec": {"suspend": True}}, namespace="default")
        await cluster.until(lambda: not every(cluster, PODS))
        await cluster.patch_object(JOBS, "work", {"spec": {"suspend": False}}, namespace="default")
        await cluster.until(lambda: "Complete" in conditions(cluster), seconds=300)
        assert status(cluster)["succeeded"] == 2

    play(scenario)


@pytest.mark.parametrize("change", [{"suspend": True}, {"parallelism": 0}])
def test_pods_that_the_controller_takes_back_are_no_failures(change: dict[str, Any]):
    async def scenario(cluster: VirtualCluster) -> None:
        fields = {"completions": 2, "parallelism": 2, "backoffLimit": 0}
        await cluster.create_objects(job(seconds=20, **fields))
        await cluster.until(lambda: len(running(cluster)) == 2)
        await cluster.patch_object(JOBS, "work", {"spec": change}, namespace="default")
        await cluster.until(lambda: not every(cluster, PODS))
        back = {"suspend": False, "parallelism": 2}
        await cluster.patch_object(JOBS, "work", {"spec": back}, namespace="default")
        began = cluster.seconds
        await cluster.until(lambda: "Complete" in conditions(cluster), seconds=60)
        # No pause as after a failure.
        assert cluster.seconds - began < 25
        assert (status(cluster)["succeeded"], status(cluster).get("failed", 0)) == (2, 0)

    play(scenario)


@pytest.mark.parametrize(
    ("rule", "outcome", "failed"),
    [
        pytest.param(
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            "PodFailurePolicy",
            1,
            id="a code that means there is no point in trying again ends the job",
        ),
        pytest.param(
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}},
            "BackoffLimitExceeded",
            2,
            id="another code is counted",
        ),
    ],
)
def test_a_policy_of_pod_failures_decides_what_a_failure_means(rule, outcome, failed):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            job(exit_code=42, backoffLimit=1, podFailurePolicy={"rules": [rule]})
        )
        await cluster.until(lambda: "Failed" in conditions(cluster), seconds=100)
        assert conditions(cluster)["Failed"] == outcome
        assert status(cluster)["failed"] == failed

    play(scenario)


def test_the_pods_of_a_deleted_job_are_deleted_in_spite_of_their_finalizer():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(seconds=100, parallelism=3))
        await cluster.until(lambda: len(running(cluster)) == 3)
        await cluster.client.delete(JOBS, "work", namespace="default", propagation="Background")
        await cluster.until(lambda: not every(cluster, PODS))

    play(scenario)


def indexes(cluster: VirtualCluster) -> list[str]:
    return sorted(each["metadata"]["labels"][INDEX] for each in pods(cluster))


def test_an_indexed_job_grows_and_shrinks_by_its_largest_indexes():
    async def scenario(cluster: VirtualCluster) -> None:
        async def resize(size: int) -> None:
            spec = {"completions": size, "parallelism": size}
            await cluster.patch_object(JOBS, "work", {"spec": spec}, namespace="default")

        await cluster.create_objects(
            job(seconds=1000, completionMode="Indexed", completions=3, parallelism=3)
        )
        await cluster.until(lambda: len(running(cluster)) == 3)
        await resize(1)
        await cluster.until(lambda: indexes(cluster) == ["0"])
        await resize(2)
        await cluster.until(lambda: len(running(cluster)) == 2)
        assert indexes(cluster) == ["0", "1"]

    play(scenario)


TRACKED = "batch.kubernetes.io/job-tracking"


def finalizers(cluster: VirtualCluster, name: str) -> list[str]:
    return list(stored(cluster, PODS, name)["metadata"].get("finalizers", []))


def owners(cluster: VirtualCluster, name: str) -> list[str]:
    references = stored(cluster, PODS, name)["metadata"].get("ownerReferences") or []
    return [each["name"] for each in references]


def test_a_pod_that_leaves_its_job_loses_the_finalizer_and_gets_it_again():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(seconds=1000, parallelism=2))
        await cluster.until(lambda: len(running(cluster)) == 2)
        first, _ = running(cluster)
        labels = stored(cluster, PODS, first)["metadata"]["labels"]
        without = {"metadata": {"labels": dict.fromkeys(labels)}}
        await cluster.patch_object(PODS, first, without, namespace="default")
        await cluster.until(lambda: not owners(cluster, first))
        assert finalizers(cluster, first) == []
        await cluster.client.delete(PODS, running(cluster)[-1], namespace="default")
        await cluster.patch_object(
            PODS, first, {"metadata": {"labels": labels}}, namespace="default"
        )
        await cluster.until(lambda: owners(cluster, first) == ["work"])
        assert finalizers(cluster, first) == [TRACKED]

    play(scenario)


def test_the_pods_that_a_job_leaves_behind_lose_their_finalizer():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(seconds=1000, parallelism=2))
        await cluster.until(lambda: len(running(cluster)) == 2)
        left = running(cluster)
        await cluster.client.delete(JOBS, "work", namespace="default", propagation="Orphan")
        await cluster.until(lambda: not every(cluster, JOBS))
        await cluster.until(lambda: not any(finalizers(cluster, each) for each in left))
        assert running(cluster) == left
        assert not any(owners(cluster, each) for each in left)

    play(scenario)


def test_fewer_at_a_time_means_that_some_pods_go():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(seconds=100, parallelism=4, completions=8))
        await cluster.until(lambda: len(running(cluster)) == 4)
        await cluster.patch_object(JOBS, "work", {"spec": {"parallelism": 1}}, namespace="default")
        await cluster.until(lambda: len(pods(cluster)) == 1)

    play(scenario)


FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEXED: dict[str, Any] = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}


def test_each_index_has_a_limit_of_failures_of_its_own():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(exit_code=1, backoffLimitPerIndex=1, **INDEXED))
        await cluster.until(lambda: "Failed" in conditions(cluster), seconds=120)
        assert conditions(cluster)["Failed"] == "FailedIndexes"
        found = status(cluster)
        assert (found["failedIndexes"], found["failed"]) == ("0-2", 6)
        annotations = [each["metadata"]["annotations"] for each in every(cluster, PODS)]
        assert sorted(each[FAILURES] for each in annotations) == ["0"] * 3 + ["1"] * 3
        assert not any(each["metadata"].get("finalizers") for each in every(cluster, PODS))

    play(scenario)


def test_the_replacement_of_an_index_waits_and_the_others_do_not():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(job(exit_code=1, backoffLimitPerIndex=1, **INDEXED))
        await cluster.until(lambda: len(every(cluster, PODS)) == 3)
        for pod in every(cluster, PODS)[1:]:
            change = {"metadata": {"annotations": {EXIT: "0"}}}
            await cluster.patch_object(PODS, pod["metadata"]["name"], change, namespace="default")
        await cluster.until(lambda: status(cluster).get("succeeded") == 2)
        began = cluster.seconds
        await cluster.until(lambda: len(every(cluster, PODS)) == 4)
        assert 8 < cluster.seconds - began < 12
        await cluster.until(lambda: "Failed" in conditions(cluster), seconds=60)
        found = status(cluster)
        assert (found["completedIndexes"], found["failedIndexes"]) == ("1,2", "0")

    play(scenario)


def test_too_many_failed_indexes_end_the_job():
    async def scenario(cluster: VirtualCluster) -> None:
        limits = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 0, "parallelism": 1}
        await cluster.create_objects(job(exit_code=1, **INDEXED | limits))
        await cluster.until(lambda: "Failed" in conditions(cluster), seconds=60)
        assert conditions(cluster)["Failed"] == "MaxFailedIndexesExceeded"
        assert status(cluster)["failedIndexes"] == "0"

    play(scenario)


@pytest.mark.parametrize(
    ("rule", "completed"),
    [
        pytest.param({"succeededCount": 1}, "0", id="any one index"),
        pytest.param({"succeededIndexes": "0,1"}, "0,1", id="all of some indexes"),
        pytest.param(
            {"succeededIndexes": "1,2", "succeededCount": 1}, "0,1", id="one of some indexes"
        ),
    ],
)
def test_a_success_policy_ends_the_job_early(rule, completed):
    async def scenario(cluster: VirtualCluster) -> None:
        policy = {"rules": [{"succeededCount": 3}, rule]}
        spec = INDEXED | {"parallelism": 1}
        await cluster.create_objects(job(successPolicy=policy, **spec))
        await cluster.until(lambda: "Complete" in conditions(cluster), seconds=60)
        assert conditions(cluster) == {
            "SuccessCriteriaMet": "SuccessPolicy",
            "Complete": "SuccessPolicy",
        }
        assert status(cluster)["completedIndexes"] == completed

    play(scenario)


def test_pods_that_are_not_needed_any_more_are_deleted():
    async def scenario(cluster: VirtualCluster) -> None:
        policy = {"rules": [{"succeededIndexes": "0"}]}
        await cluster.create_objects(job(seconds=1000, successPolicy=policy, **INDEXED))
        await cluster.until(lambda: len(running(cluster)) == 3)
        done = {"metadata": {"annotations": {RUN: "1"}}}
        [first] = [name for name in running(cluster) if name.startswith("work-0")]
        await cluster.patch_object(PODS, first, done, namespace="default")
        await cluster.until(lambda: "Complete" in conditions(cluster), seconds=90)
        assert status(cluster)["completedIndexes"] == "0"
        assert not running(cluster)

    play(scenario)


@pytest.mark.parametrize("policy", ["Failed", "TerminatingOrFailed"])
@pytest.mark.parametrize("grace_seconds", [0, 2])
@pytest.mark.parametrize(
    "starts",
    [
        pytest.param("bound", id="deleted as soon as it is bound"),
        pytest.param("starting", id="deleted while it starts"),
        pytest.param("init", id="deleted while its init container runs"),
        pytest.param("nowhere", id="deleted before it is bound"),
    ],
)
def test_a_job_replaces_a_pod_that_is_deleted_before_its_container_started(
    policy, grace_seconds, starts
):
    async def scenario(cluster: VirtualCluster) -> None:
        work = job(podReplacementPolicy=policy, backoffLimit=5)
        template = work["spec"]["template"]
        template["metadata"]["annotations"]["moorage.dev/start-seconds"] = "3"
        if starts == "init":
            template["spec"]["initContainers"] = [{"name": "i", "image": "x"}]
            template["metadata"]["annotations"]["init.moorage.dev/run-seconds"] = "5"
        if starts == "nowhere":
            template["spec"]["nodeSelector"] = {"no": "node"}
        await cluster.create_objects(work)
        await cluster.until(lambda: len(pods(cluster)) == 1)
        (first,) = pods(cluster)
        name = first["metadata"]["name"]
        if starts != "nowhere":
            await cluster.until(lambda: "nodeName" in stored(cluster, PODS, name)["spec"])
        if starts in ("starting", "init"):
            await aio.sleep(1.0 if starts == "starting" else 4.0)
        await cluster.client.delete(PODS, name, namespace="default", grace_seconds=grace_seconds)
        if starts == "nowhere":
            await cluster.until(lambda: len(pods(cluster)) == 1 and pods(cluster)[0] != first)
            await cluster.until(lambda: status(cluster).get("terminating", 0) == 0)
            assert status(cluster)["failed"] == 1
        else:
            await cluster.until(lambda: "Complete" in conditions(cluster), seconds=60)
            assert (status(cluster)["failed"], status(cluster)["succeeded"]) == (1, 1)

    play(scenario)
