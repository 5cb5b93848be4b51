"""``bench path``: time counts for the right part, the null server plays its script, both together.

Left out: the figures themselves.
"""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from click.testing import CliRunner

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.cli.main import main
from moorage_lab.bench.path.null_server import NullServer, Report, Script
from moorage_lab.bench.path.parts import BIND, DECODE, OTHER, PARTS, QUEUE, PartTimes
from moorage_lab.bench.path.standing import Standing


class Steps:
    """A clock of processor time that each look moves by one."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1
        return self.now


def test_time_inside_another_part_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.thread_time_ns", Steps())
    times = PartTimes()
    times.enter(QUEUE)  # 1
    times.enter(DECODE)  # 2
    times.leave()  # 3
    times.leave()  # 4
    assert (times.spent_ns[QUEUE], times.spent_ns[DECODE]) == (2, 1)


async def test_steps_of_a_task_count_for_the_part_that_its_name_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.thread_time_ns", Steps())
    times, tasks = PartTimes(), TaskOwner()

    async def work() -> None:
        await aio.sleep(0)
        await aio.sleep(0)

    with times.measured():
        named = tasks.spawn(work(), name="bind default/p")
        other = tasks.spawn(work(), name="something else")
        await asyncio.gather(named, other)
    spent = {part: times.spent_ns[part] for part in PARTS if times.spent_ns[part]}
    assert spent == {BIND: 3, OTHER: 3}


def _lines(sent: list[bytes]) -> list[tuple[str, str, str | None]]:
    """Return type, name and node of each line."""
    found = [json.loads(line) for part in sent for line in part.splitlines()]
    return [
        (each["type"], each["object"]["metadata"]["name"], each["object"]["spec"].get("nodeName"))
        for each in found
    ]


def test_pods_come_in_place_of_those_with_a_node_and_an_event() -> None:
    clock = ManualClock()
    server = NullServer(Standing(nodes=2), clock)
    sent: list[bytes] = []
    watched = b"/api/v1/pods?watch=true&sendInitialEvents=true"
    (bookmark,) = server.watch(watched, sent.append)
    assert b"initial-events-end" in bookmark
    server.answer_call(b"POST", b"/null/start", msgspec.json.encode(Script(3, 2)))
    (_, first, _), (_, second, _) = _lines(sent)
    sent.clear()
    clock.advance(1)
    target = msgspec.json.encode({"target": {"name": "n1"}})
    path = f"/api/v1/namespaces/default/pods/{first}/binding".encode()
    assert server.answer_call(b"POST", path, target)[0] == 201
    assert _lines(sent) == [("MODIFIED", first, "n1")]
    sent.clear()
    assert (
        server.answer_call(b"POST", b"/apis/events.k8s.io/v1/namespaces/default/events", b"{}")[0]
        == 201
    )
    ((kind, third, node),) = _lines(sent)
    assert (kind, node) == ("ADDED", None)
    assert third not in (first, second)
    report = msgspec.json.decode(server.answer_call(b"GET", b"/null/report", b"")[1], type=Report)
    assert (report.bindings, report.events, report.others, report.seconds) == (1, 1, 0, 1.0)


def test_a_lease_is_kept_as_it_was_written_last() -> None:
    server = NullServer(Standing(nodes=1), ManualClock())
    leases = b"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    assert server.answer_call(b"GET", leases + b"/moorage", b"")[0] == 404
    assert server.answer_call(b"POST", leases, b'{"spec":1}') == (201, b'{"spec":1}')
    assert server.answer_call(b"PUT", leases + b"/moorage", b'{"spec":2}') == (200, b'{"spec":2}')
    assert server.answer_call(b"GET", leases + b"/moorage", b"") == (200, b'{"spec":2}')


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "has_parts"),
    [
        pytest.param((), True, id="a full window, by part"),
        pytest.param(("--rate", "200", "--no-parts"), False, id="a steady rate"),
    ],
)
def test_a_small_measurement(options: tuple[str, ...], has_parts: bool) -> None:
    small = ("path", "--nodes", "10", "--init-pods", "20", "--pods", "60", "--window", "8")
    result = CliRunner().invoke(main, ["bench", *small, *options, "-o", "json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    calls = found["calls_per_pod"]
    assert (calls["bindings"], calls["Events"], calls["status patches"]) == (1, 1, 0)
    assert list(found["cpu_us_by_part"]) == (list(PARTS) if has_parts else [])
    if has_parts:
        assert all(us > 0 for part, us in found["cpu_us_by_part"].items() if part != "status patch")
        assert sum(found["cpu_us_by_part"].values()) == pytest.approx(found["cpu_us"])
    assert (
        0 < found["latency_ms"]["p50"] <= found["latency_ms"]["p99"] <= found["latency_ms"]["max"]
    )
