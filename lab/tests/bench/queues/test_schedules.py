"""Both ways to play a sample, job by job, and what holds of every schedule.

Not covered: the published values, as the traces are not part of this repository; see
docs/how-to/job-queues.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.tests.bench.queues.traces import small_trace
from moorage_lab.bench.queues.fresh_head import play_fresh
from moorage_lab.bench.queues.policies import POLICIES, Policy, headroom_policy
from moorage_lab.bench.queues.schedule import Start, mean_slowdown, utilisation
from moorage_lab.bench.queues.sticky_head import play_sticky
from moorage_lab.traces.jobs.swf import Job

Play = Callable[..., list[Start]]
FCFS, SJF, SAF = POLICIES["FCFS"], POLICIES["SJF"], POLICIES["SAF"]


def job(number: int, submit: int, run: int, processors: int, requested: int = 0) -> Job:
    return Job(number, submit, run, processors, requested or run)


def starts_of(play: Play, jobs: Sequence[Job], policy: Policy, *, easy: bool) -> dict[int, float]:
    starts = play(jobs, policy, processors=4, easy=easy)
    return {start.job.number: start.at for start in starts}


BEHIND = [job(1, 0, 100, 3), job(2, 10, 50, 4), job(3, 20, 30, 1), job(4, 21, 300, 1)]


@pytest.mark.parametrize("play", [play_sticky, play_fresh])
def test_without_backfill_nothing_passes_the_head(play: Play) -> None:
    assert starts_of(play, BEHIND, FCFS, easy=False) == {1: 0, 2: 100, 3: 150, 4: 150}


@pytest.mark.parametrize("play", [play_sticky, play_fresh])
def test_a_job_that_ends_before_the_heads_start_is_started_behind_it(play: Play) -> None:
    assert starts_of(play, BEHIND, FCFS, easy=True) == {1: 0, 2: 100, 3: 20, 4: 150}


def test_a_job_that_ends_when_the_head_starts_is_in_time_for_a_fresh_head_only() -> None:
    jobs = [job(1, 0, 100, 3), job(2, 10, 50, 4), job(3, 20, 80, 1)]
    assert starts_of(play_fresh, jobs, FCFS, easy=True)[3] == 20
    assert starts_of(play_sticky, jobs, FCFS, easy=True)[3] == 150


def test_what_the_head_leaves_free_is_for_longer_jobs_of_a_fresh_head_only() -> None:
    jobs = [job(1, 0, 100, 3), job(2, 10, 50, 3), job(3, 20, 900, 1)]
    assert starts_of(play_fresh, jobs, FCFS, easy=True)[3] == 20
    assert starts_of(play_sticky, jobs, FCFS, easy=True)[3] == 100


def test_a_sticky_head_stays_when_a_better_job_comes() -> None:
    jobs = [job(1, 0, 100, 3), job(2, 10, 50, 2), job(3, 20, 5, 2)]
    assert starts_of(play_sticky, jobs, SJF, easy=False) == {1: 0, 2: 100, 3: 100}
    jobs = [job(1, 0, 100, 3), job(2, 10, 50, 3), job(3, 20, 5, 3)]
    assert starts_of(play_sticky, jobs, SJF, easy=False) == {1: 0, 2: 100, 3: 150}
    assert starts_of(play_fresh, jobs, SJF, easy=False) == {1: 0, 2: 105, 3: 100}


def test_the_estimate_of_a_sticky_head_is_made_once_from_requested_times() -> None:
    # Job 1 asks for 200 s and ends after 100: job 3 is in time for the estimate, and delays job 2.
    jobs = [job(1, 0, 100, 3, requested=200), job(2, 10, 50, 4), job(3, 20, 150, 1)]
    assert starts_of(play_sticky, jobs, FCFS, easy=True) == {1: 0, 2: 170, 3: 20}


def test_a_long_job_leaves_the_headroom_free() -> None:
    day = 86_400
    jobs = [job(1, 0, day, 2), job(2, 1, day, 1), job(3, 2, 30, 2)]
    policy = headroom_policy(0.5)
    assert starts_of(play_fresh, jobs, policy, easy=False) == {1: 0, 3: 2, 2: day}
    assert starts_of(play_fresh, jobs, SAF, easy=False) == {1: 0, 2: 1, 3: day}


def test_a_job_wider_than_the_headroom_allows_gets_the_machine_alone() -> None:
    jobs = [job(1, 0, 30, 1), job(2, 1, 86_400, 4)]
    assert starts_of(play_fresh, jobs, headroom_policy(0.75), easy=False) == {1: 0, 2: 30}


def test_short_run_times_count_as_ten_seconds_in_a_slowdown() -> None:
    starts = [Start(job(1, 0, 1, 1), 99.0), Start(job(2, 0, 100, 4), 0.0)]
    assert [each.slowdown for each in starts] == [10.0, 1.0]
    assert mean_slowdown(starts) == 5.5
    assert utilisation(starts, 4) == pytest.approx(401 / (99 * 4))


@pytest.mark.parametrize("easy", [False, True])
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_starts_every_job_of_a_busy_trace_once(name: str, easy: bool) -> None:
    jobs = small_trace()
    for play in (play_sticky, play_fresh):
        starts = play(jobs, POLICIES[name], processors=16, easy=easy)
        assert sorted(start.job.number for start in starts) == [each.number for each in jobs]


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 90), st.integers(1, 8), st.integers(1, 3)),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from(list(POLICIES)),
    st.booleans(),
)
@settings(max_examples=100)
def test_no_schedule_uses_more_processors_than_there_are(
    rows: list[tuple[int, int, int, int]], name: str, easy: bool
) -> None:
    submit, jobs = 1, []
    for number, (gap, run, processors, more) in enumerate(rows, start=1):
        submit += gap
        jobs.append(Job(number, submit, run, processors, run * more))
    for play in (play_sticky, play_fresh):
        starts = play(jobs, POLICIES[name], processors=8, easy=easy)
        assert len(starts) == len(jobs)
        for start in starts:
            assert start.wait >= 0
            running = [s for s in starts if s.at <= start.at < s.at + s.job.run]
            assert sum(s.job.processors for s in running) <= 8


@given(st.integers(0, 1000))
@settings(max_examples=50)
def test_with_exact_run_times_easy_never_delays_the_first_head(seed: int) -> None:
    """Under FCFS the head with backfill starts no later than without, for the first head."""
    jobs = small_trace(40 + seed % 20)[seed % 20 :]
    plain = play_fresh(jobs, FCFS, processors=16, easy=False)
    at = {start.job.number: start.at for start in play_fresh(jobs, FCFS, processors=16, easy=True)}
    first = next((start for start in plain if start.wait), None)
    assert first is None or at[first.job.number] <= first.at
