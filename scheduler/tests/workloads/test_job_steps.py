"""Single rules of jobs: indexes as text, and pods counted once whenever the controller stops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.workloads.jobs.job_pods import TRACKED, read_indexes, write_indexes
from moorage.workloads.jobs.job_steps import tally
from moorage.workloads.objects import Whole


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param([3], "3", id="one"),
        pytest.param([1, 2], "1,2", id="two in a row are no run"),
        pytest.param([0, 1, 2, 5, 7, 8], "0-2,5,7,8", id="runs and single ones"),
    ],
)
def test_indexes_as_text(indexes, text):
    assert write_indexes(indexes) == text
    assert read_indexes(text, 100) == set(indexes)


@given(st.sets(st.integers(0, 60)))
def test_completed_indexes_are_read_back_as_written(indexes):
    assert read_indexes(write_indexes(indexes), 61) == indexes


def test_indexes_beyond_the_completions_are_left_out():
    assert read_indexes("0,3-9", 5) == {0, 3, 4}


def work(**status: Any) -> Whole:
    return from_dict(Whole, {"metadata": {"name": "w", "uid": "u"}, "status": status})


def ended(uid: str, *, phase: str = "Succeeded", tracked: bool = True) -> Pod:
    metadata = {"name": uid, "uid": uid, "finalizers": [TRACKED] if tracked else []}
    return from_dict(Pod, {"metadata": metadata, "status": {"phase": phase}})


@pytest.mark.parametrize(
    ("status", "pods", "counted", "noted", "total"),
    [
        pytest.param({}, [ended("a")], 0, ["a"], 1, id="one that ended is noted before it counts"),
        pytest.param(
            {"uncountedTerminatedPods": {"succeeded": ["a"]}},
            [ended("a")],
            0,
            ["a"],
            1,
            id="noted, its finalizer still there: nothing changes",
        ),
        pytest.param(
            {"uncountedTerminatedPods": {"succeeded": ["a"]}},
            [ended("a", tracked=False)],
            1,
            [],
            1,
            id="noted and let go: it counts",
        ),
        pytest.param(
            {"uncountedTerminatedPods": {"succeeded": ["a"]}, "succeeded": 4},
            [],
            5,
            [],
            5,
            id="noted and deleted meanwhile: it counts",
        ),
        pytest.param(
            {"succeeded": 1},
            [ended("a", tracked=False)],
            1,
            [],
            1,
            id="counted already: never again",
        ),
    ],
)
def test_a_pod_is_counted_once(status, pods, counted, noted, total):
    found = tally(work(**status), pods)
    assert (found.counted_succeeded, found.noted_succeeded, found.succeeded) == (
        counted,
        noted,
        total,
    )
