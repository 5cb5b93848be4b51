"""The rules about totals: a world that is right breaks none, and each planted excess breaks one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from moorage.sim.company import totals
from moorage.sim.company.cluster import WriteCall
from moorage.sim.company.play import CompanyRun, play
from moorage.sim.company.totals import Excess, excesses
from moorage.sim.company.world import GroupSize
from tests.sim.company.storm import COMES_AT, gang_before_backlog


@pytest.mark.parametrize(
    ("members", "grace"),
    [
        pytest.param(6, 0, id="a gang of six, victims that stop at once"),
        pytest.param(8, 0, id="a gang of the whole node"),
        pytest.param(6, 10, id="victims that stop slowly"),
    ],
)
def test_a_gang_before_a_backlog_evicts_what_it_needs(members: int, grace: int) -> None:
    run = play(gang_before_backlog(members, grace=grace))
    assert excesses(run) == []
    assert len(totals.evicted_uids(run)) == members


@pytest.fixture(scope="module")
def right() -> CompanyRun:
    return play(gang_before_backlog(6))


def test_the_same_seed_is_the_same_run(right: CompanyRun) -> None:
    assert play(gang_before_backlog(6)).writes == right.writes


def test_more_evictions_than_planned_are_an_excess(
    right: CompanyRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "planned_evictions", lambda *_args, **_more: 4)
    text = "wave 1 evicts 6 pods, the plain plan 4"
    assert excesses(right) == [Excess(rule="evictions", amount=6, allowed=4, text=text)]


def test_deletions_sent_again_are_an_excess(right: CompanyRun) -> None:
    again = [write for write in right.writes if write.method == "DELETE"]
    again = [replace(write, status=404) for write in again if write.program == "scheduler"]
    text = "12 deletions are sent for 6 pods, 6 of them for pods that are gone"
    assert excesses(replace(right, writes=[*right.writes, *again])) == [
        Excess(rule="deleted-twice", amount=12, allowed=6, text=text)
    ]


def test_writes_when_nothing_changes_are_an_excess(right: CompanyRun) -> None:
    late = WriteCall(
        at=right.seconds - 1,
        version=right.quiet_version + 1,
        program="controllers",
        method="PATCH",
        path="/api/v1/namespaces/default/pods/p",
        status=200,
    )
    text = "1 writes when nothing changes: 1 x controllers PATCH /api/v1/namespaces/default/pods/p"
    assert excesses(replace(right, writes=[*right.writes, late])) == [
        Excess(rule="writes-at-rest", amount=1, allowed=0, text=text)
    ]


def test_a_group_that_is_placed_in_part_is_an_excess(right: CompanyRun) -> None:
    world = replace(right.world, groups=(GroupSize(name="gang", least=7),))
    text = "group gang has 6 of 7 members on nodes"
    assert excesses(replace(right, world=world)) == [
        Excess(rule="half-groups", amount=6, allowed=0, text=text)
    ]


def test_a_preemptor_that_nobody_tried_is_an_excess() -> None:
    """End the world in the moment in which its last member comes."""
    world = replace(gang_before_backlog(6), end_seconds=COMES_AT)
    run = play(world)
    short = totals.waiting_in_vain(run)
    assert list(short) == []  # the quiet time was enough
    assert [each.rule for each in excesses(run)] == ["writes-at-rest"]
