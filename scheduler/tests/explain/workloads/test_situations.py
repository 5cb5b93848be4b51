"""Planted causes of workloads, groups, claims and nodes, through the API, with controllers.

The cause is named first, and every suggestion, carried out by its kubectl command, gives as many
pods a node as it says. Every suite runs one situation of each cause; the slow test takes fifteen.
``PLANTED=5000`` takes more. Causes in memory are those of ``test_planted_objects``.
"""

from __future__ import annotations

import os
import sys
from collections import Counter

import pytest

from moorage.explain.workloads.answer import ObjectExplanation
from scheduler.tests.explain.workloads.playing import Situation, explained_live, helps_as_said
from scheduler.tests.explain.workloads.situations import FAMILIES, situation

MANY = int(os.environ.get("PLANTED", str(15 * len(FAMILIES))))
ENOUGH = 0.99


def _is_named(planted: Situation, answer: ObjectExplanation) -> bool:
    sentence = answer.sentence.partition("; on ")[0]
    return sentence.startswith(planted.start) and planted.about in sentence


@pytest.mark.parametrize("plant", range(len(FAMILIES)), ids=[each.__name__ for each in FAMILIES])
def test_the_cause_is_named_and_the_suggestions_help(plant: int) -> None:
    planted = situation(plant)
    answer = explained_live(planted)
    assert _is_named(planted, answer), answer.sentence
    for each in answer.suggestions:
        assert helps_as_said(planted, each) == "", each.text


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_hundred_causes_are_named_and_every_suggestion_helps() -> None:
    named, misses, failed = 0, [], []
    kinds: Counter[str] = Counter()
    for seed in range(MANY):
        planted = situation(seed)
        answer = explained_live(planted)
        named += _is_named(planted, answer)
        if not _is_named(planted, answer):
            misses.append((seed, planted.kind, answer.sentence))
        for each in answer.suggestions:
            kinds[each.kind] += 1
            wrong = helps_as_said(planted, each)
            if wrong:
                failed.append((seed, planted.kind, each.text, wrong))
    told = f"{named} of {MANY} named first; suggestions carried out: {dict(sorted(kinds.items()))}"
    sys.stdout.write(f"\n{told}\n")
    assert failed == []
    assert named >= ENOUGH * MANY, misses
    assert len(FAMILIES) > MANY or sum(kinds.values()) > MANY // 2, kinds
