"""Jobs of many sizes arriving at random: promises hold after every decision, and all jobs end.

The same as ``moorage bench gang-arrivals``, smaller: its 200 jobs take minutes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.service.core import Core
from moorage.snapshot.pod_groups import GroupKey, GroupTerms, PodGroups
from moorage.snapshot.snapshot import Snapshot
from moorage_lab.bench.gangs.arrival_report import as_lines
from moorage_lab.bench.gangs.arrivals import ArrivalRun, BrokenPromiseError, Job, Promises, plan
from moorage_sandbox.testing.builders import node, pod


@pytest.mark.parametrize(
    ("seed", "number", "largest", "nodes"),
    [
        pytest.param(2, 6, 12, 3, id="few jobs, each of which may fill half of the nodes"),
        pytest.param(3, 20, 16, 6, id="twenty jobs that come faster than they end"),
    ],
)
def test_all_or_none_holds_nothing_in_vain_and_ends_every_job(
    seed: int, number: int, largest: int, nodes: int
):
    jobs = plan(Streams(seed), jobs=number, largest=largest, every_seconds=0.4)
    result = ArrivalRun(jobs, nodes=nodes, mode="trial", watch=ManualClock()).run()
    assert (result.done, result.stuck) == (number, 0)
    assert result.checks > sum(job.size for job in jobs), "at every binding, after every attempt"
    assert result.held_in_vain == 0
    assert result.longest_idle_seconds < 13, "backoff is the longest wait of a job that fits"
    assert 0 < result.mean_wait_seconds < result.makespan_seconds
    assert len(result.digest) == 12


def test_a_job_that_fits_the_empty_cluster_waits_for_no_second():
    (job,) = plan(Streams(1), jobs=1, largest=8, every_seconds=1.0)
    result = ArrivalRun([job], nodes=1, mode="trial", watch=ManualClock()).run()
    assert 0 <= result.mean_wait_seconds < 0.1


def test_the_wait_of_a_stuck_job_lasts_until_the_end_of_the_run():
    jobs = [
        Job(name, 8, arrives=0.0, works=20.0, offsets=tuple(i / 2 + at for i in range(8)))
        for name, at in (("one", 0.0), ("two", 0.25))
    ]
    result = ArrivalRun(jobs, nodes=1, mode="default", watch=ManualClock()).run()
    assert (result.done, result.stuck) == (0, 2)
    # The last pods came after 3.5 and 3.75 seconds, at looks a second apart.
    assert result.mean_wait_seconds == pytest.approx(result.makespan_seconds - 4, abs=1.1)


def test_without_groups_jobs_that_need_the_same_nodes_block_each_other():
    jobs = plan(Streams(1), jobs=12, largest=12, every_seconds=1.0)
    alone = ArrivalRun(jobs, nodes=3, mode="default", watch=ManualClock()).run()
    assert alone.stuck > 0
    assert alone.held_in_vain > 0.5
    first, second, default = as_lines([alone], nodes=3, jobs=12)
    assert first == "12 jobs on 3 nodes with room for 8 pods each, virtual time"
    assert second.strip().startswith("done  stuck  makespan  mean wait  utilisation")
    assert default.split()[:3] == ["default", str(alone.done), str(alone.stuck)]


class OneGroup:
    """Every pod is of one group of three."""

    def key_of(self, each: object) -> GroupKey:
        del each
        return GroupKey("default", "job")

    def terms_of(self, key: GroupKey) -> GroupTerms:
        return GroupTerms(key=key, minimum=3, gang=True)


def promises(placed: int, *, cpu: str = "1", held: tuple[str, ...] = ()) -> Promises:
    """Four members, some of them on one node of 4 cpu; some are held at Permit."""
    snapshot = Snapshot()
    snapshot.groups = PodGroups(OneGroup())
    snapshot.table.add_node(node("n", cpu="4", memory="8Gi"))
    for index in range(4):
        member = pod(f"job-{index}", cpu=cpu, nodeName="n" if index < placed else "")
        snapshot.groups.put_pod(member)
        if index < placed:
            snapshot.table.add_pod(member, "n")
    waiting: Any = SimpleNamespace(
        undecided_pods=lambda: [SimpleNamespace(pod=pod(each)) for each in held]
    )
    promises = Promises()
    promises.start_checking(cast("Core", SimpleNamespace(snapshot=snapshot, waiting=waiting)))
    return promises


@pytest.mark.parametrize("placed", [0, 3, 4])
def test_a_group_with_no_member_or_enough_members_placed_keeps_the_promise(placed: int):
    promises(placed).check_books()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        pytest.param(promises(2), "default/job holds 2 places", id="too few places"),
        pytest.param(
            promises(3, held=("job-0",)),
            r"wait at Permit, on a node: \['default/job-0'\]",
            id="a pod waits at Permit",
        ),
        pytest.param(promises(3, cpu="2"), "a node has more than fits", id="too much on a node"),
    ],
)
def test_a_broken_promise_ends_the_run(broken: Promises, said: str):
    with pytest.raises(BrokenPromiseError, match=said):
        broken.check_books()


def test_a_job_whose_pods_are_being_deleted_may_have_less():
    ending = promises(2)
    ending.ending.add("job")
    ending.check_books()
