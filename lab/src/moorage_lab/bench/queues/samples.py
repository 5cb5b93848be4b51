"""Which jobs of a trace are played: ten runs of consecutive jobs, the same for every policy.

Rules: the evaluation of RLScheduler (SC '20), which draws with Gym's seeding of numpy. Python's
generator is the same Mersenne Twister, and an integer seeds it as numpy's words do; only numpy's
way from 32 bits to a number below a bound is written here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from moorage.base.errors import UsageError
from moorage.base.rng import Random
from moorage_lab.traces.jobs.swf import Job

SAMPLES: Final = 10
SAMPLE_JOBS: Final = 1024
_SEED_TEXT: Final = b"1"
_SEED_BYTES: Final = 8


def sample_starts(jobs: int, *, length: int = SAMPLE_JOBS, samples: int = SAMPLES) -> list[int]:
    """Return where the samples of a trace begin.

    Parameters
    ----------
    jobs
        Number of jobs of the trace.
    length
        Jobs of a sample; no sample has jobs of the first or last `length` ones.

    Raises
    ------
    UsageError
        The trace is too short.
    """
    last = jobs - length - 2
    if last < length:
        raise UsageError(
            f"{jobs} jobs are too few for samples of {length}, which need {2 * length + 2}: "
            "give a longer trace or --sample-jobs"
        )
    seed = int.from_bytes(hashlib.sha512(_SEED_TEXT).digest()[:_SEED_BYTES], "little")
    random_words = Random(seed)
    return [length + _below(random_words, last - length) for _ in range(samples)]


def samples_of(
    jobs: Sequence[Job], *, length: int = SAMPLE_JOBS, samples: int = SAMPLES
) -> list[Sequence[Job]]:
    """Return the samples of a trace."""
    starts = sample_starts(len(jobs), length=length, samples=samples)
    return [jobs[start : start + length] for start in starts]


def _below(random_words: Random, most: int) -> int:
    """Return a number from 0 to `most`, as numpy's ``RandomState.randint`` does."""
    mask = (1 << most.bit_length()) - 1
    while True:
        number = random_words.getrandbits(32) & mask
        if number <= most:
            return number
