"""Scope: what the API server says of the schedule of a CronJob.

Which texts are schedules is in scheduler/tests/api/test_cron_schedule.
"""

from __future__ import annotations

import pytest

from scheduler.tests.kinds.builders import create_errors, named, template


@pytest.mark.parametrize(
    ("schedule", "errors"),
    [
        pytest.param("*/5 * * * *", [], id="five fields"),
        pytest.param("@daily", [], id="a word"),
        pytest.param("@every 5m", [], id="an interval, which upstream accepts"),
        pytest.param("", ["spec.schedule: Required value"], id="none"),
        pytest.param(
            "* * * *",
            [
                'spec.schedule: Invalid value: "* * * *": '
                "expected exactly 5 fields, found 4: [* * * *]"
            ],
            id="four fields",
        ),
        pytest.param(
            "61 * * * *",
            [
                'spec.schedule: Invalid value: "61 * * * *": '
                "end of range (61) above maximum (59): 61"
            ],
            id="a minute that never comes",
        ),
        pytest.param(
            "TZ=UTC 0 3 * * *",
            [
                'spec.schedule: Invalid value: "TZ=UTC 0 3 * * *": '
                "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            ],
            id="a zone in the schedule",
        ),
    ],
)
def test_the_schedule_of_a_cron_job_is_checked(schedule: str, errors: list[str]) -> None:
    job = {"spec": {"template": template(restartPolicy="Never")}}
    sent = named("cronjobs", spec={"schedule": schedule, "jobTemplate": job})
    assert create_errors("cronjobs", sent) == errors


@pytest.mark.parametrize(
    ("zone", "fault"),
    [
        pytest.param("Europe/Berlin", "", id="a zone"),
        pytest.param("Moon/Base", "unknown time zone Moon/Base", id="no zone"),
        pytest.param("../etc/passwd", "unknown time zone ../etc/passwd", id="a path"),
        pytest.param(
            "Local",
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
            id="local",
        ),
        pytest.param("", "timeZone must be nil or non-empty string", id="empty"),
    ],
)
def test_the_time_zone_of_a_cron_job_is_checked(zone: str, fault: str) -> None:
    job = {"spec": {"template": template(restartPolicy="Never")}}
    spec = {"schedule": "@daily", "timeZone": zone, "jobTemplate": job}
    found = create_errors("cronjobs", named("cronjobs", spec=spec))
    assert found == ([f'spec.timeZone: Invalid value: "{zone}": {fault}'] if fault else [])
