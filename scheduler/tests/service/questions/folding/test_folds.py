"""Rows of pods that wait alike; pure."""

from __future__ import annotations

import pytest

from moorage.service.questions.folding.folds import By, Fold, Sort, first_folds, fold


def row(owner: str, *, minute: int = 1, **fields: object) -> Fold:
    fields.setdefault("namespace", "team-a")
    fields.setdefault("reason", "InsufficientCPU")
    oldest = f"2026-01-01T00:{minute:02}:00.000000Z"
    return Fold(owner=owner, oldest=oldest, queues={"backoff": 1}, **fields)  # type: ignore[arg-type]


ROWS = [
    row("deployment/api", names=("api-1",), minute=3, message="no cpu"),
    row("job/train", group="team-a/train", names=("train-0",), priority=9, minute=2),
    row("deployment/api", names=("api-2",), minute=1, priority=4, message="no cpu at all"),
    row("deployment/api", names=("api-3",), minute=4, reason="UntoleratedTaint"),
    row("deployment/api", namespace="team-b", names=("api-1",), minute=5),
]


def test_rows_of_equal_owner_group_and_reason_become_one_with_a_count() -> None:
    first, *others = fold(ROWS)
    assert first == Fold(
        pods=2,
        namespace="team-a",
        owner="deployment/api",
        reason="InsufficientCPU",
        names=("api-1", "api-2"),
        queues={"backoff": 2},
        oldest="2026-01-01T00:01:00.000000Z",
        priority=4,
        message="no cpu at all",
    )
    assert [each.pods for each in others] == [1, 1, 1]


@pytest.mark.parametrize(
    ("by", "counts"),
    [("owner", [2, 1, 1, 1]), ("group", [2, 1, 1, 1]), ("reason", [4, 1]), ("namespace", [4, 1])],
)
def test_what_makes_rows_alike_is_a_choice(by: By, counts: list[int]) -> None:
    assert [each.pods for each in fold(ROWS, by=by)] == counts


@pytest.mark.parametrize("by", ["group", "reason", "namespace"])
def test_folding_owners_first_comes_to_the_same(by: By) -> None:
    once, twice = fold(ROWS, by=by), fold(fold(ROWS, within_namespaces=True), by=by)
    assert [(each.pods, each.oldest, each.priority) for each in once] == [
        (each.pods, each.oldest, each.priority) for each in twice
    ]


@pytest.mark.parametrize(
    ("sort", "first"), [("age", "api-2"), ("priority", "train-0"), ("pods", "api-2")]
)
def test_rows_are_sorted(sort: Sort, first: str) -> None:
    by: By = "owner" if sort == "pods" else "none"
    assert first in fold(ROWS, by=by, sort=sort)[0].names


def test_rows_beyond_the_limit_are_counted_with_their_pods() -> None:
    shown = first_folds(fold(ROWS), 1)
    assert (len(shown.folds), shown.rows_left, shown.pods_left) == (1, 3, 3)
