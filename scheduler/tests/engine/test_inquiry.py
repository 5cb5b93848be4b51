"""An inquiry asks every plugin about every node, where an attempt stops at the first rejection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from moorage.engine.attempt import CycleError
from moorage.engine.inquiry import Inquiry, inquire
from moorage.framework.points import PreFilterResult
from moorage.framework.status import SUCCESS, Status, error, unschedulable
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import pod
from scheduler.tests.engine.builders import filterer, nodes, scorer
from scheduler.tests.framework.builders import Fake, answers, profile

POD = PodInfo(pod("p"))
SMALL, LARGE = unschedulable("too small"), unschedulable("too large")
ONLY = PreFilterResult(frozenset({"a", "b"}))


def inquiry_of(*plugins: Any) -> Inquiry:
    snapshot = nodes("a", "b", "c")
    return inquire(profile(*plugins, snapshot=snapshot), snapshot, POD)


def rejections(inquiry: Inquiry) -> Mapping[str, list[str]]:
    names = inquiry.snapshot.names
    return {
        plugin: [names[row] for row in np.flatnonzero(rejected_n).tolist()]
        for plugin, rejected_n in inquiry.rejects.items()
    }


def first_reasons(inquiry: Inquiry) -> list[str]:
    statuses: list[Status] = [inquiry.status_at(row) for row in range(3)]
    return [f"{each.plugin}: {each.message}" if not each.ok else "" for each in statuses]


@pytest.mark.parametrize(
    ("plugins", "rejects", "first"),
    [
        pytest.param([filterer("A", {})], {}, ["", "", ""], id="no plugin rejects a node"),
        pytest.param(
            [filterer("A", {"a": SMALL}), filterer("B", {"a": LARGE, "b": LARGE})],
            {"A": ["a"], "B": ["a", "b"]},
            ["A: too small", "B: too large", ""],
            id="a later plugin is asked about a node that an earlier one rejects",
        ),
        pytest.param(
            [
                Fake("P", pre_filter=answers((ONLY, SUCCESS))),
                filterer("A", {"b": SMALL, "c": SMALL}),
            ],
            {"A": ["b", "c"], "P": ["c"]},
            ["", "A: too small", "P: node(s) didn't satisfy plugin(s) [P]"],
            id="PreFilter leaves a node out, which counts first",
        ),
        pytest.param(
            [Fake("P", pre_filter=answers((None, SMALL))), filterer("A", {"a": LARGE})],
            {},
            ["P: too small"] * 3,
            id="PreFilter rejects the pod, so that no Filter is asked",
        ),
    ],
)
def test_every_plugin_answers_about_every_node(
    plugins: list[Any], rejects: Mapping[str, list[str]], first: list[str]
) -> None:
    inquiry = inquiry_of(*plugins)
    assert rejections(inquiry) == rejects
    assert first_reasons(inquiry) == first
    expected = [row for row, text in enumerate(first) if not text]
    assert inquiry.feasible.tolist() == expected


def test_the_feasible_nodes_have_scores_in_the_order_of_the_question() -> None:
    inquiry = inquiry_of(filterer("A", {"b": SMALL}), scorer("S", {"a": 10, "c": 30}))
    scores = inquiry.scores(inquiry.feasible[::-1])
    assert scores is not None
    assert scores.total_n.tolist() == [30, 10]


def test_no_feasible_node_has_no_scores() -> None:
    inquiry = inquiry_of(filterer("A", dict.fromkeys("abc", SMALL)), scorer("S", {}))
    assert inquiry.scores(inquiry.feasible) is None


def test_a_plugin_that_breaks_ends_the_inquiry() -> None:
    with pytest.raises(CycleError) as broken:
        inquiry_of(Fake("P", pre_filter=answers((None, error("no idea")))))
    assert "no idea" in broken.value.status.message
