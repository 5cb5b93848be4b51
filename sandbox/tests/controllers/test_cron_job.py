"""CronJobs in a whole cluster under the virtual clock, which begins at 2026-01-01T00:00:00Z.

Which moments a schedule has is in test_cron_schedule.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import CORE_EVENTS, CRON_JOBS, JOBS
from moorage.base import aio
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, stored, template

BEGIN_MINUTES = 1_767_225_600 // 60


def cron_job(schedule: str, *, seconds: int = 5, exit_code: int = 0, **spec: Any) -> dict[str, Any]:
    pod = template("tick", restartPolicy="Never")
    pod["metadata"]["annotations"] = {
        "moorage.dev/run-seconds": str(seconds),
        "moorage.dev/exit-code": str(exit_code),
    }
    job = {
        "metadata": {"labels": {"made": "regularly"}},
        "spec": {"template": pod, "backoffLimit": 0},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": job, **spec},
    }


def jobs(cluster: VirtualCluster) -> list[int]:
    """Return the minutes, after the beginning, of the jobs there are."""
    names = [job["metadata"]["name"] for job in every(cluster, JOBS)]
    return sorted(int(name.removeprefix("tick-")) - BEGIN_MINUTES for name in names)


def reasons(cluster: VirtualCluster) -> set[str]:
    """Return the reasons of the Events about the cron job."""
    return {
        event["reason"]
        for event in every(cluster, CORE_EVENTS)
        if event["involvedObject"]["kind"] == "CronJob"
    }


def test_a_job_is_made_at_each_moment_and_only_the_newest_are_kept():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(cron_job("*/2 * * * *"))
        await aio.sleep(119)
        assert jobs(cluster) == []
        await aio.sleep(2)
        assert jobs(cluster) == [2]
        (job,) = every(cluster, JOBS)
        assert job["metadata"]["labels"] == {"made": "regularly"}
        assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
        at = "batch.kubernetes.io/cronjob-scheduled-timestamp"
        assert job["metadata"]["annotations"][at] == "2026-01-01T00:02:00Z"
        status = stored(cluster, CRON_JOBS, "tick")["status"]
        assert status["lastScheduleTime"] == "2026-01-01T00:02:00Z"
        assert [each["name"] for each in status["active"]] == [job["metadata"]["name"]]
        await aio.sleep(30)
        status = stored(cluster, CRON_JOBS, "tick")["status"]
        assert not status.get("active")
        assert status["lastSuccessfulTime"] > "2026-01-01T00:02:00Z"
        await aio.sleep(4 * 120)
        assert jobs(cluster) == [6, 8, 10]

    play(scenario)


@pytest.mark.parametrize(
    ("spec", "expected", "reason"),
    [
        pytest.param({}, [1, 2, 3], "SuccessfulCreate", id="jobs may overlap"),
        pytest.param(
            {"concurrencyPolicy": "Forbid"}, [1], "JobAlreadyActive", id="jobs may not overlap"
        ),
        pytest.param(
            {"concurrencyPolicy": "Replace"}, [3], "SuccessfulDelete", id="the newest stays"
        ),
    ],
)
def test_jobs_that_take_longer_than_their_schedule(spec, expected, reason):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(cron_job("* * * * *", seconds=1000, **spec))
        await aio.sleep(200)
        assert jobs(cluster) == expected
        assert reason in reasons(cluster)

    play(scenario)


def test_failed_jobs_are_kept_apart():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(cron_job("* * * * *", exit_code=1, failedJobsHistoryLimit=2))
        await aio.sleep(290)
        assert jobs(cluster) == [3, 4]
        assert "lastSuccessfulTime" not in stored(cluster, CRON_JOBS, "tick")["status"]

    play(scenario)


def test_a_resumed_cron_job_makes_up_for_the_last_moment_only():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(cron_job("* * * * *", suspend=True))
        await aio.sleep(330)
        assert jobs(cluster) == []
        await cluster.client.patch(
            CRON_JOBS, "tick", b'{"spec": {"suspend": false}}', namespace="default"
        )
        await aio.sleep(10)
        assert jobs(cluster) == [5]

    play(scenario)


def test_a_moment_missed_by_more_than_the_deadline_is_left_out():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            cron_job("*/5 * * * *", suspend=True, startingDeadlineSeconds=20)
        )
        await aio.sleep(330)
        await cluster.client.patch(
            CRON_JOBS, "tick", b'{"spec": {"suspend": false}}', namespace="default"
        )
        await aio.sleep(60)
        assert jobs(cluster) == []
        assert "MissSchedule" in reasons(cluster)
        await aio.sleep(240)
        assert jobs(cluster) == [10]

    play(scenario)


def test_a_schedule_that_only_the_server_reads_is_reported():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(cron_job("@every 5m"))
        await aio.sleep(120)
        assert (jobs(cluster), reasons(cluster)) == ([], {"UnparseableSchedule"})

    play(scenario)
