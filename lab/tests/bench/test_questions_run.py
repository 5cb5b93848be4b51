"""A tiny measurement of questions beside a scheduler, in processes over HTTPS."""

from __future__ import annotations

import msgspec
import pytest

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage.what_if.wire import WhatIfBody
from moorage_lab.bench.questions_run import GANG, ONE_POD, measure_questions
from moorage_lab.bench.workload import basic


def test_the_questions_are_about_one_pod_and_about_a_gang() -> None:
    """A gang is a group and its pods."""
    read = msgspec.json.Decoder(WhatIfBody).decode
    assert len(read(ONE_POD).changes) == 1
    assert len(read(GANG).changes) == 1 + 500


@pytest.mark.slow
async def test_questions_are_answered_with_and_without_pods_that_come() -> None:
    """Throughput, times and processor times are told for each."""
    found = await measure_questions(
        basic(nodes=5, init_pods=5, pods=20),
        nodes=5,
        pods=20,
        rounds=1,
        clock=SystemClock(),
        streams=Streams(1),
        progress=lambda line: None,
    )
    assert (found.nodes, found.pods) == (5, 20)
    assert (len(found.without), len(found.with_questions)) == (1, 1)
    assert (len(found.cpu_without), len(found.cpu_with_questions)) == (1, 1)
    assert min(found.first_ms, found.quiet_ms, found.gang_ms) > 0
