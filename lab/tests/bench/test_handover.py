"""Hand-overs between replicas: the report, what the audit log tells, and a few real processes.

Left out: what a replica does (``scheduler/tests/service/test_replicas.py``).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from moorage.base.errors import MoorageError
from moorage.cli.main import main
from moorage_lab.bench.audit_tail import AuditedCall, AuditTail
from moorage_lab.bench.handover.book import HandoverBook
from moorage_lab.bench.handover.plan import HandoverPlan, HandoverReport, Round
from moorage_lab.bench.handover.replicas import Replicas

FINE = HandoverReport(
    plan=HandoverPlan(nodes=10, rounds=4),
    rounds=(
        Round(act="SIGTERM", leader=True, seconds=0.3, gap_seconds=0.25),
        Round(act="SIGKILL", leader=True, seconds=15.5, gap_seconds=15.6),
        Round(act="SIGSTOP", leader=False, stopped_seconds=20.0),
        Round(act="SIGSTOP", leader=True, stopped_seconds=25.0, seconds=15.1, gap_seconds=15.2),
    ),
    seconds=80.4,
    created=120,
    bound=110,
)


def test_a_report_has_the_times_of_every_act() -> None:
    assert FINE.as_lines() == [
        "4 rounds on 3 replicas in 80 s: 10 nodes, 120 pods created, 110 bound, lease of 15 s",
        "SIGTERM  1 rounds, 1 of the leader, 1 hand-overs",
        "         signal to first binding  0.30 s least,   0.30 s median,   0.30 s greatest (1)",
        "         last to first binding    0.25 s least,   0.25 s median,   0.25 s greatest (1)",
        "SIGKILL  1 rounds, 1 of the leader, 1 hand-overs",
        "         signal to first binding 15.50 s least,  15.50 s median,  15.50 s greatest (1)",
        "         last to first binding   15.60 s least,  15.60 s median,  15.60 s greatest (1)",
        "SIGSTOP  2 rounds, 1 of the leader, 1 hand-overs",
        "         signal to first binding 15.10 s least,  15.10 s median,  15.10 s greatest (1)",
        "         last to first binding   15.20 s least,  15.20 s median,  15.20 s greatest (1)",
        "bound twice 0, nodes too full 0, pods lost 0, refused by kubelets 0, "
        "writes in the name of an old lease 0",
    ]
    assert FINE.faults == FINE.late == FINE.as_json()["faults"] == []


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        pytest.param(
            {"bound_twice": ("p by a, b",)}, "FAULT: bound twice: p by a, b", id="bound twice"
        ),
        pytest.param(
            {"overcommitted": ("n with pod p",)},
            "FAULT: too much on node n with pod p",
            id="a node that was too full",
        ),
        pytest.param({"lost": ("p",)}, "FAULT: lost: pod p", id="a pod without a node"),
        pytest.param(
            {"refused": ("p on n: OutOfcpu",)},
            "FAULT: refused: p on n: OutOfcpu",
            id="refused by a kubelet",
        ),
        pytest.param(
            {"old_writes": ("a: create pods p",)},
            "FAULT: old lease: a: create pods p",
            id="a write in the name of an old lease",
        ),
        pytest.param(
            {"rounds": (Round(act="SIGTERM", leader=True, seconds=0.2, gap_seconds=1.01),)},
            "LATE: round 1, SIGTERM: 1.01 s between two bindings",
            id="more than a second after SIGTERM",
        ),
        pytest.param(
            {"rounds": (Round(act="SIGKILL", leader=True, seconds=20.01, gap_seconds=20.0),)},
            "LATE: round 1, SIGKILL: 20.01 s to the first binding",
            id="more than the lease and five seconds after SIGKILL",
        ),
    ],
)
def test_each_fault_is_reported(changes: dict[str, Any], line: str) -> None:
    assert msgspec.structs.replace(FINE, **changes).as_lines()[-1] == line


def test_a_report_says_how_many_replicas_lost_the_lease_by_themselves() -> None:
    assert msgspec.structs.replace(FINE, ended=2).as_lines()[-1] == (
        "replicas that lost the lease by themselves: 2"
    )


class Process:
    """A replica's process that ends when the test says so."""

    def __init__(self, name: str, flags: list[str], *, log: Path) -> None:
        self.name = name
        self.ended = False
        self.text = ""

    async def start(self) -> None:
        pass

    def raise_if_ended(self) -> None:
        if self.ended:
            raise MoorageError(f"{self.name} ended")

    def output(self) -> str:
        return self.text


async def _replaced(place: Path, *, excused: bool, output: str, later: str = "") -> Any:
    (place / "kubeconfig").write_text('{"users": [{"name": "u", "user": {}}]}')
    replicas = Replicas(HandoverPlan(replicas=3), place, process=Process)  # type: ignore[arg-type]
    await replicas.replace()
    for name in ("replica-1", "replica-2"):
        child: Any = replicas.running[name]
        child.ended, child.text = True, output
        if excused:
            replicas.excused.add(name)
    await replicas.replace(later=later)
    return list(replicas.running), replicas.ended


@pytest.mark.parametrize(
    ("excused", "output", "later", "running", "ended"),
    [
        pytest.param(
            False,
            "error: leader election lost: ...",
            "",
            ["replica-3", "replica-4", "replica-5"],
            2,
            id="replicas that lost the lease by themselves, all but one",
        ),
        pytest.param(
            True, "", "", ["replica-3", "replica-4", "replica-5"], 0, id="replicas told to end"
        ),
        pytest.param(
            True,
            "",
            "replica-2",
            ["replica-2", "replica-3", "replica-4"],
            0,
            id="the one whose hand-over is measured is replaced later",
        ),
    ],
)
def test_a_replica_that_ended_is_replaced(
    tmp_path: Path, excused: bool, output: str, later: str, running: list[str], ended: int
) -> None:
    found = asyncio.run(_replaced(tmp_path, excused=excused, output=output, later=later))
    assert found == (running, ended)


def test_a_replica_that_ended_for_another_reason_ends_the_measurement(tmp_path: Path) -> None:
    with pytest.raises(MoorageError, match="replica-1 ended"):
        asyncio.run(_replaced(tmp_path, excused=False, output="error: no such file"))


def call(
    user: str, what: str, at: float, *, code: int = 200, agent: str = "moorage"
) -> AuditedCall:
    verb, resource = what.split()
    resource, _, subresource = resource.partition("/")
    return AuditedCall(
        user=user,
        agent=agent,
        verb=verb,
        resource=resource,
        subresource=subresource,
        name="p",
        code=code,
        received=at,
        answered=at + 0.1,
    )


RENEWED = [call("a", "update leases", 10), call("a", "create pods/binding", 11, code=201)]
TAKEN = [*RENEWED, call("b", "get leases", 12), call("b", "update leases", 30)]


@pytest.mark.parametrize(
    ("calls", "old", "twice"),
    [
        pytest.param(RENEWED, 0, 0, id="a binding with the lease"),
        pytest.param([*RENEWED, call("a", "get pods", 90)], 0, 0, id="reading is always allowed"),
        pytest.param(
            [*RENEWED, call("a", "patch pods/status", 25.1)], 1, 0, id="a write after the lease"
        ),
        pytest.param(
            [*TAKEN, call("a", "create pods/binding", 30.2, code=409)],
            1,
            0,
            id="a refused write after another replica took the lease",
        ),
        pytest.param(
            [*TAKEN, call("b", "create pods/binding", 31, code=201)],
            0,
            1,
            id="bound by another too",
        ),
        pytest.param([call("c", "create pods/binding", 1, code=201)], 1, 0, id="without any lease"),
        pytest.param(
            [*TAKEN, call("a", "create events", 31, agent="x/leader-election")],
            0,
            0,
            id="the Event about the lease itself",
        ),
    ],
)
def test_the_book_finds_writes_of_old_leases_and_pods_bound_twice(
    calls: list[AuditedCall], old: int, twice: int
) -> None:
    book = HandoverBook(15)
    book.add(calls)
    assert (len(book.old_writes()), len(book.bound_twice())) == (old, twice)


def test_the_book_gives_the_bindings_around_a_handover() -> None:
    book = HandoverBook(15)
    book.add([*TAKEN, call("b", "create pods/binding", 31, code=201)])
    assert book.holder == "b"
    assert book.standing_by == {"a", "b"}
    assert book.last_bind("a", before=20) == 11.1
    assert book.first_bind(after=11.05, not_by="") == book.binds[0]
    assert book.first_bind(after=11.05, not_by="a") == book.binds[1]
    assert book.first_bind(after=31.1, not_by="a") is None


def test_the_tail_of_an_audit_log_yields_each_call_once_when_its_line_is_whole(
    tmp_path: Path,
) -> None:
    event = {
        "verb": "create",
        "user": {"username": "admin"},
        "userAgent": "moorage",
        "impersonatedUser": {"username": "a"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestReceivedTimestamp": "1970-01-01T00:00:11.000000Z",
        "stageTimestamp": "1970-01-01T00:00:11.100000Z",
        "objectRef": {"resource": "pods", "subresource": "binding", "name": "p"},
    }
    line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
    del event["impersonatedUser"]
    own = json.dumps(event).encode() + b"\n"
    tail = AuditTail(tmp_path / "log")
    assert list(tail.fresh()) == []
    with (tmp_path / "log").open("ab", buffering=0) as log:
        log.write(own + line + line[:40])
        assert list(tail.fresh()) == [call("a", "create pods/binding", 11.0, code=201)]
        log.write(line[40:])
        assert list(tail.fresh()) == [call("a", "create pods/binding", 11.0, code=201)]
        assert list(tail.fresh()) == []
    tail.close()


def test_the_times_of_the_election_are_in_proportion_to_the_lease() -> None:
    assert HandoverPlan(lease_seconds=15).lease_flags[1::2] == ("15s", "10000ms", "2000ms")
    assert HandoverPlan(lease_seconds=6).lease_flags[1::2] == ("6s", "4000ms", "800ms")


@pytest.mark.slow
def test_replicas_that_end_or_stop_lose_no_pod_and_overcommit_no_node() -> None:
    """How long a hand-over takes depends on the machine's load, so the times are not asserted."""
    arguments = ["--nodes", "20", "--rounds", "3", "--rate", "5", "--lease", "6", "--stop", "9"]
    done = CliRunner().invoke(main, ["bench", "handover", *arguments, "-o", "json"])
    report = json.loads(done.stdout)
    assert report["faults"] == []
    assert len(report["rounds"]) == 3
    assert report["bound"] > 0
