"""The seed of a commit: each commit has one, and another one can be chosen in its place."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.tests.fault_sim import commit_seed as module
from lab.tests.fault_sim.commit_seed import VARIABLE, commit_seed

USER = ("-c", "user.name=a", "-c", "user.email=a@example.com")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield an empty directory in place of the checkout of these tests."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    yield tmp_path
    commit_seed.cache_clear()


def seed() -> int:
    commit_seed.cache_clear()
    return commit_seed()


def test_each_commit_has_a_seed_that_stays(checkout: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    seeds = []
    for number in range(2):
        commit = ["git", *USER, "commit", "-q", "--allow-empty", "-m", f"number {number}"]
        subprocess.run(commit, cwd=checkout, check=True)
        seeds += [seed(), seed()]
    assert (seeds[0], seeds[2]) == (seeds[1], seeds[3])
    assert seeds[0] != seeds[2]


@pytest.mark.usefixtures("checkout")
def test_without_a_repository_the_usual_seed_is_played() -> None:
    assert seed() == 1


@pytest.mark.usefixtures("checkout")
def test_the_runs_of_another_commit_can_be_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "77")
    assert seed() == 77
