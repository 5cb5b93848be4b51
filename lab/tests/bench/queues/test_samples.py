"""Which jobs are sampled: the numbers that numpy draws for the published experiments."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from lab.tests.bench.queues.traces import small_trace
from moorage.base.errors import UsageError
from moorage_lab.bench.queues.samples import sample_starts, samples_of


@pytest.mark.parametrize("jobs", [2051, 9000, 10_000, 123_456])
def test_samples_begin_where_numpy_draws_them(jobs: int) -> None:
    words = [int(each) for each in np.frombuffer(hashlib.sha512(b"1").digest()[:8], dtype="<u4")]
    drawn = np.random.RandomState(words)
    assert sample_starts(jobs) == [int(drawn.randint(1024, jobs - 1025)) for _ in range(10)]


def test_samples_of_the_published_traces() -> None:
    assert sample_starts(10_000)[:4] == [1981, 2756, 4299, 8850]


def test_a_trace_that_is_too_short_is_refused_with_the_length_that_is_needed() -> None:
    with pytest.raises(UsageError, match=r"200 jobs are too few .* need 2050"):
        samples_of(small_trace(200)[:200], samples=1)
