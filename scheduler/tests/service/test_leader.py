"""Leader election: who holds the lease when, and that nobody else writes.

Everything runs in virtual time against a real API server in the process. Left out: the whole
scheduler under election (``test_replicas``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from moorage.api.resources import CORE_EVENTS, LEASES
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.errors import ApiError, LeaseLostError, NotLeadingError, TransportError
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call, LineStream
from moorage.client.writes import Client
from moorage.config.types import LeaderElection
from moorage.service.process.leader import Elector, LeaseRule, lease_rule
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.testing.virtual_loop import run_virtual

RULE = lease_rule(LeaderElection())


class SteppedClock:
    """The machine's clock, whose wall reading can be put forward."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.ahead_ns = 0

    def now_ns(self) -> int:
        return self._clock.now_ns() + self.ahead_ns

    def monotonic_ns(self) -> int:
        return self._clock.monotonic_ns()


class Line(InProcessTransport):
    """A connection that can be cut, slowed, or lose answers."""

    cut = False
    silent = False
    watching = True
    writing = True
    lost_answers = 0
    write_seconds = 0.0
    """Time from the server's taking of a write until its answer."""

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        if not self.watching:
            raise ApiError(403, "Forbidden", "leases is forbidden")
        return super().stream(call)

    async def request(self, call: Call) -> Answer:
        if self.cut:
            raise TransportError("cut off")
        if self.silent:
            await aio.sleep(3600)
        if call.method != "GET" and not self.writing:
            raise TransportError("the write was lost")
        answer = await super().request(call)
        if call.method != "GET":
            await aio.sleep(self.write_seconds)
            if self.lost_answers:
                self.lost_answers -= 1
                raise TransportError("the answer was lost")
        return answer


class Replica:
    """One candidate, and what it went through by the second."""

    task: asyncio.Task[None]

    def __init__(self, name: str, election: Election) -> None:
        self.line = Line(election.server)
        self.clock = SteppedClock(election.clock)
        self.client = Client(self.line, rng=election.streams.stream(name))
        self.log: list[tuple[int, str]] = []
        self._election = election
        self.elector = Elector(
            self.client,
            election.rule,
            identity=name,
            component="default-scheduler",
            clock=self.clock,
            rng=election.streams.stream(f"{name}/jitter"),
            on_leading=lambda leading: self.note("leads" if leading else "stops"),
            annotations=lambda: {"example.com/leader": name},
        )

    def note(self, what: str) -> None:
        self.log.append((round(self._election.seconds), what))

    async def end(self) -> None:
        """Stop as the scheduler does: first its tasks, then the lease."""
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.elector.release()

    async def run(self) -> None:
        await self.elector.acquire()
        await self.elector.tell("became leader")
        try:
            await self.elector.keep()
        except LeaseLostError:
            self.note("lost")


class Election:
    """A server, and replicas that want one lease."""

    def __init__(self, clock: ManualClock, rule: LeaseRule = RULE) -> None:
        self.clock = clock
        self.rule = rule
        self.streams = Streams(1)
        self.server = ApiServer(served_kinds(), clock=clock, streams=self.streams)
        bootstrap(self.server)
        self.tasks = TaskOwner()
        self.admin = Client(InProcessTransport(self.server), rng=self.streams.stream("admin"))

    @property
    def seconds(self) -> float:
        return self.clock.monotonic_ns() / NS_PER_SECOND

    def join(self, name: str) -> Replica:
        replica = Replica(name, self)
        replica.task = self.tasks.spawn(replica.run(), name=name)
        return replica

    async def lease(self) -> dict[str, Any]:
        found = await self.admin.get(LEASES, "kube-scheduler", namespace="kube-system")
        spec = found["spec"]
        assert isinstance(spec, dict)
        return spec

    async def edit(self, **changes: object) -> None:
        found = await self.admin.get(LEASES, "kube-scheduler", namespace="kube-system")
        spec = {**(await self.lease()), **changes}
        await self.admin.replace(
            LEASES, {**found, "spec": spec}, name="kube-scheduler", namespace="kube-system"
        )


def play(scenario: Callable[[Election], Coroutine[Any, Any, None]], rule: LeaseRule = RULE) -> None:
    clock = ManualClock()

    async def main() -> None:
        election = Election(clock, rule)
        try:
            await scenario(election)
        finally:
            await election.tasks.cancel_all()
            election.server.close()

    run_virtual(main(), clock)


def test_the_default_lease_times_are_those_of_kube_scheduler() -> None:
    assert (
        LeaseRule(
            namespace="kube-system",
            name="kube-scheduler",
            lease_ns=15 * NS_PER_SECOND,
            renew_ns=10 * NS_PER_SECOND,
            retry_ns=2 * NS_PER_SECOND,
        )
        == RULE
    )


def test_the_lease_is_annotated_by_its_holder_and_keeps_other_annotations() -> None:
    async def annotations(election: Election) -> dict[str, str]:
        found: Any = await election.admin.get(LEASES, "kube-scheduler", namespace="kube-system")
        annotations: dict[str, str] = found["metadata"]["annotations"]
        return annotations

    async def scenario(election: Election) -> None:
        first = election.join("a")
        await aio.sleep(1)
        assert await annotations(election) == {"example.com/leader": "a"}
        found: Any = await election.admin.get(LEASES, "kube-scheduler", namespace="kube-system")
        found["metadata"]["annotations"]["other"] = "kept"
        await election.admin.replace(LEASES, found, name="kube-scheduler", namespace="kube-system")
        await first.end()
        election.join("b")
        await aio.sleep(20)
        assert await annotations(election) == {"example.com/leader": "b", "other": "kept"}

    play(scenario)


@pytest.mark.parametrize(
    ("times", "recorded_seconds", "writing_seconds"),
    [
        pytest.param(("15s", "10s", "2s"), 15, 12, id="until the holder gives up"),
        pytest.param(("11s", "10s", "2s"), 11, 11, id="never longer than the lease"),
        pytest.param(("2900ms", "2500ms", "1s"), 2, 2, id="the record counts whole seconds"),
    ],
)
def test_a_renewal_allows_writing_for_less_than_the_lease_duration(
    times: tuple[str, str, str], recorded_seconds: int, writing_seconds: int
) -> None:
    lease, renew, retry = times
    rule = lease_rule(
        LeaderElection(lease_duration=lease, renew_deadline=renew, retry_period=retry)
    )
    assert (rule.lease_seconds, rule.writing_ns / NS_PER_SECOND) == (
        recorded_seconds,
        writing_seconds,
    )


def test_the_first_candidate_creates_the_lease_and_records_an_event() -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        await aio.sleep(1)
        spec = await election.lease()
        assert one.log == [(0, "leads")]
        assert spec == {
            "holderIdentity": "one",
            "leaseDurationSeconds": 15,
            "acquireTime": spec["renewTime"],
            "renewTime": "2026-01-01T00:00:00.002000Z",
            "leaseTransitions": 0,
        }
        events: Any = await election.admin.list(CORE_EVENTS)
        told = [
            (e["reason"], e["message"], e["source"]["component"], e["involvedObject"]["kind"])
            for e in events["items"]
        ]
        assert told == [("LeaderElection", "one became leader", "default-scheduler", "Lease")]

    play(scenario)


def test_the_holder_renews_every_retry_period_and_keeps_the_time_of_its_acquisition() -> None:
    async def scenario(election: Election) -> None:
        election.join("one")
        await aio.sleep(60.5)
        spec = await election.lease()
        assert spec["acquireTime"] == "2026-01-01T00:00:00.002000Z"
        assert spec["renewTime"].startswith("2026-01-01T00:01:00")
        assert spec["leaseTransitions"] == 0

    play(scenario)


def test_a_second_candidate_waits_as_long_as_the_first_renews() -> None:
    async def scenario(election: Election) -> None:
        one, two = election.join("one"), election.join("two")
        await aio.sleep(300)
        assert (one.log, two.log) == ([(0, "leads")], [])
        assert (one.elector.leading, two.elector.leading) == (True, False)

    play(scenario)


def test_a_holder_that_is_cut_off_stops_before_another_starts() -> None:
    async def scenario(election: Election) -> None:
        one, two = election.join("one"), election.join("two")
        await aio.sleep(31)  # the last renewal was sent just after 30 s
        one.line.cut = True
        writing: list[tuple[bool, bool]] = []
        for _ in range(600):
            await aio.sleep(0.05)
            writing.append((one.elector.leading, two.elector.leading))
        assert (True, True) not in writing
        assert one.log == [(0, "leads"), (42, "stops"), (42, "lost")]
        # Its record was last seen to change at 30 s, so nobody may take it before 45 s; and
        # looking again takes up to 2.2 retry periods.
        [(when, what)] = two.log
        assert what == "leads"
        assert 45 <= when <= 50
        assert (await election.lease())["leaseTransitions"] == 1

    play(scenario)


def test_a_suspended_holder_writes_nothing_when_it_resumes() -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        await aio.sleep(5)
        one.elector.check_lease()
        # Stopped, as by SIGSTOP: its tasks do not run while time passes.
        election.clock.advance(12)
        with pytest.raises(NotLeadingError, match="does not hold lease"):
            one.elector.check_lease()

    play(scenario)


def test_a_suspended_machine_is_noticed_by_the_wall_clock() -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        await aio.sleep(5)
        one.clock.ahead_ns = 60 * NS_PER_SECOND  # while the monotonic clock stood still
        assert not one.elector.leading
        await aio.sleep(2.1)  # the next renewal tells that nobody has taken the lease
        assert one.elector.leading
        assert one.log == [(0, "leads")]

    play(scenario)


def test_a_stolen_lease_stops_writing_at_once_and_ends_the_holder() -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        await aio.sleep(5)
        await election.edit(holderIdentity="thief", leaseDurationSeconds=3600)
        await aio.sleep(1.5)  # it renews at 6 s and finds a version it did not write
        assert not one.elector.leading
        await aio.sleep(20)
        assert one.log == [(0, "leads"), (16, "stops"), (16, "lost")]
        assert (await election.lease())["holderIdentity"] == "thief"

    play(scenario)


def test_a_holder_whose_lease_is_touched_by_others_renews_on_the_new_version() -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        for edited in range(10):  # one renewal after each finds a version it did not write
            await aio.sleep(5)
            assert one.elector.slow_paths == edited
            await election.edit(preferredHolder="somebody")
        assert one.log == [(0, "leads")]
        assert (await election.lease())["leaseTransitions"] == 0

    play(scenario)


def test_a_holder_whose_lease_is_deleted_creates_the_lease_again() -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        await aio.sleep(5)
        await election.admin.delete(LEASES, "kube-scheduler", namespace="kube-system")
        await aio.sleep(5)
        assert one.log == [(0, "leads")]
        assert (await election.lease())["holderIdentity"] == "one"

    play(scenario)


def test_a_lost_answer_does_not_lose_the_lease() -> None:
    async def scenario(election: Election) -> None:
        one, two = election.join("one"), election.join("two")
        for _ in range(10):
            await aio.sleep(7)
            one.line.lost_answers = 1
        assert (one.log, two.log) == ([(0, "leads")], [])

    play(scenario)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(4, [(0, "leads")], id="silent for one call: the next call renews"),
        pytest.param(
            11,
            [(0, "leads"), (16, "stops"), (16, "lost")],
            id="silent until the renew deadline: the holder gives up",
        ),
    ],
)
def test_a_holder_stops_leading_when_the_server_is_silent_too_long(
    seconds: float, expected: list[tuple[int, str]]
) -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        await aio.sleep(5)
        one.line.silent = True
        await aio.sleep(seconds)
        one.line.silent = False
        await aio.sleep(30)
        assert one.log == expected

    play(scenario)


@pytest.mark.parametrize(
    ("watched", "seconds_least", "seconds_most"),
    [
        pytest.param(True, 0.0, 0.1, id="at once where the lease is watched"),
        pytest.param(False, 0.1, 4.5, id="at the next look where watching is not allowed"),
    ],
)
def test_a_released_lease_is_taken(
    watched: bool, seconds_least: float, seconds_most: float
) -> None:
    async def scenario(election: Election) -> None:
        one, two = election.join("one"), election.join("two")
        two.line.watching = watched
        await aio.sleep(10)
        await one.end()
        assert not one.elector.leading
        released = election.seconds
        while not two.log:
            await aio.sleep(0.01)
        assert seconds_least <= election.seconds - released <= seconds_most
        spec = await election.lease()
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("two", 1)

    play(scenario)


def test_a_deleted_lease_is_taken_at_once() -> None:
    async def scenario(election: Election) -> None:
        one, two = election.join("one"), election.join("two")
        await aio.sleep(9)
        one.line.cut = True
        await election.admin.delete(LEASES, "kube-scheduler", namespace="kube-system")
        await aio.sleep(0.1)
        assert two.log == [(9, "leads")]

    play(scenario)


def test_an_expired_lease_is_taken_when_it_expires() -> None:
    async def scenario(election: Election) -> None:
        one, two = election.join("one"), election.join("two")
        await aio.sleep(31)
        one.line.cut = True  # the last renewal was sent just after 30 s, and watched
        while not two.log:
            await aio.sleep(0.01)
        assert 45 <= election.seconds <= 45.1

    play(scenario)


def test_a_released_lease_leaves_a_record_without_a_holder() -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        await aio.sleep(10)
        await one.end()
        spec = await election.lease()
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)

    play(scenario)


def test_of_several_that_wait_one_takes_a_released_lease_and_nobody_warns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        await aio.sleep(5)
        others = [election.join(name) for name in ("two", "three", "four")]
        await aio.sleep(5)
        caplog.clear()
        await one.end()
        await aio.sleep(0.2)
        assert sorted(each.log for each in others) == [[], [], [(10, "leads")]]
        warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        assert [line for line in warned if "is held by" not in line] == []

    play(scenario)


def test_release_without_the_lease_writes_nothing() -> None:
    async def scenario(election: Election) -> None:
        election.join("one")
        two = election.join("two")
        await aio.sleep(10)
        before = (await election.lease())["holderIdentity"]
        await two.end()
        assert before == (await election.lease())["holderIdentity"] == "one"

    play(scenario)


@pytest.mark.parametrize(
    ("lost_answers", "write_seconds"),
    [
        pytest.param(0, 60.0, id="while the answer is awaited"),
        pytest.param(1, 0.0, id="after its answer was lost"),
    ],
)
def test_a_lease_that_the_server_gave_unheard_is_released(
    lost_answers: int, write_seconds: float
) -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        one.line.lost_answers, one.line.write_seconds = lost_answers, write_seconds
        await aio.sleep(1)
        assert (await election.lease())["holderIdentity"] == "one"
        one.line.write_seconds = 0.0
        await one.end()
        assert (await election.lease())["holderIdentity"] == ""
        assert one.log == []

    play(scenario)


def test_a_lease_changed_meanwhile_is_not_released() -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        await aio.sleep(5)
        await election.edit(holderIdentity="thief")
        await one.end()
        assert (await election.lease())["holderIdentity"] == "thief"

    play(scenario)


@pytest.mark.parametrize(
    "written", [pytest.param(True, id="deleted"), pytest.param(False, id="never written")]
)
def test_a_lease_that_is_not_there_is_released_without_a_warning(
    caplog: pytest.LogCaptureFixture, written: bool
) -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        one.line.writing = written
        await aio.sleep(1)
        if written:
            await election.admin.delete(LEASES, "kube-scheduler", namespace="kube-system")
        caplog.clear()
        await one.end()
        assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == []

    play(scenario)


def test_releasing_gives_up_on_a_silent_server() -> None:
    async def scenario(election: Election) -> None:
        one = election.join("one")
        await aio.sleep(5)
        one.line.silent = True
        await one.end()
        assert election.seconds == pytest.approx(6)

    play(scenario)


@pytest.mark.parametrize("seed", range(10))
def test_at_most_one_holder_may_write_at_any_moment(seed: int) -> None:
    """Lines are cut, silenced and fixed, the lease is touched; leading never overlaps."""

    async def scenario(election: Election) -> None:
        rng = Streams(seed).stream("faults")
        replicas = [election.join(f"r{n}") for n in range(3)]
        led = set[str]()
        for step in range(3000):
            await aio.sleep(0.1)
            if step % 50 == 0:
                victim = rng.choice(replicas).line
                victim.cut, victim.silent = rng.random() < 0.4, rng.random() < 0.2
                victim.lost_answers = rng.randrange(3)
                if rng.random() < 0.2:
                    replicas.append(election.join(f"r{len(replicas)}"))
            leading = [each.elector.identity for each in replicas if each.elector.leading]
            assert len(leading) <= 1, (election.seconds, leading)
            led.update(leading)
        assert len(led) > 1  # the faults were bad enough to matter

    play(scenario)
