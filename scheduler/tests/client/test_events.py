"""Events: bodies, series under a manual clock, and the recorder's buffer and retries."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from moorage.api.meta import ObjectReference
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.errors import TransportError
from moorage.base.rng import Streams
from moorage.client.event_series import EventNote, SeriesBook, shorten
from moorage.client.events import EventRecorder
from moorage.client.writes import Client
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.client.fakes import ScriptedTransport, answer, failure, instant_sleep

POD = ObjectReference(
    api_version="v1", kind="Pod", namespace="ns", name="web", uid="u1", resource_version="7"
)
START = ManualClock().now_ns()


def note(**more: Any) -> EventNote:
    fields: dict[str, Any] = {
        "regarding": POD,
        "controller": "default-scheduler",
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": "0/1 nodes are available",
    }
    return EventNote(**{**fields, **more})


def test_the_first_event_of_a_series_is_created():
    write = SeriesBook(host="h").observe(note(), now_ns=START + 1_000)
    assert write is not None
    assert write.changes is None
    assert write.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"web.{START + 1000:x}", "namespace": "ns"},
        "eventTime": "2026-01-01T00:00:00.000001Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-h",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ns",
            "name": "web",
            "uid": "u1",
            "resourceVersion": "7",
        },
        "note": "0/1 nodes are available",
        "type": "Warning",
    }


def test_core_events_for_servers_without_the_events_group():
    book = SeriesBook(host="h", core=True)
    write = book.observe(note(), now_ns=START)
    again = book.observe(note(), now_ns=START + 60_000_000_000)
    assert write is not None
    assert again is not None
    body = {key: write.body[key] for key in ("apiVersion", "message", "source", "count")}
    assert body == {
        "apiVersion": "v1",
        "message": "0/1 nodes are available",
        "source": {"component": "default-scheduler", "host": "h"},
        "count": 1,
    }
    assert again.changes == {"count": 2, "lastTimestamp": "2026-01-01T00:01:00Z"}


@pytest.mark.parametrize(
    ("second", "same"),
    [
        pytest.param(note(note="another text"), True, id="another text is the same kind"),
        pytest.param(note(reason="Other"), False, id="another reason is not"),
        pytest.param(note(action="Other"), False, id="another action is not"),
        pytest.param(note(type="Normal"), False, id="another type is not"),
        pytest.param(note(controller="other"), False, id="another reporter is not"),
        pytest.param(note(related=POD), False, id="a related object is not"),
        pytest.param(
            note(regarding=msgspec.structs.replace(POD, resource_version="8")),
            False,
            id="another version of the object is not",
        ),
    ],
)
def test_the_notes_that_count_as_repeats(second, same):
    book = SeriesBook(host="h")
    book.observe(note(), now_ns=START)
    write = book.observe(second, now_ns=START + 1)
    assert write is not None
    assert (write.changes is not None) == same


def test_a_series_is_patched_once_then_counted_and_closed_when_quiet():
    clock, book = ManualClock(), SeriesBook(host="h")
    said = []
    for _ in range(4):
        write = book.observe(note(), now_ns=clock.now_ns())
        said.append(write.changes if write else "counted")
        clock.advance(60)
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}
    assert said == [None, {"series": series}, "counted", "counted"]
    assert [w.changes for w in book.refresh()] == [
        {"series": {"count": 4, "lastObservedTime": "2026-01-01T00:03:00.000000Z"}}
    ]
    clock.advance(299)
    assert book.finish(now_ns=clock.now_ns()) == []
    clock.advance(2)
    (last,) = book.finish(now_ns=clock.now_ns())
    assert last.changes == {
        "series": {"count": 4, "lastObservedTime": "2026-01-01T00:03:00.000000Z"}
    }
    assert len(book) == 0


def test_a_single_event_leaves_the_book_without_a_write():
    clock, book = ManualClock(), SeriesBook(host="h")
    book.observe(note(), now_ns=clock.now_ns())
    clock.advance(361)
    assert (book.finish(now_ns=clock.now_ns()), len(book)) == ([], 0)


def test_the_record_of_series_forgets_the_least_recently_repeated():
    book = SeriesBook(host="h", known_max=2)
    for reason in ("first", "second", "first", "third"):
        book.observe(note(reason=reason), now_ns=START)
    repeats = {
        reason: book.observe(note(reason=reason), now_ns=START)
        for reason in ("first", "third", "second")
    }
    assert len(book) == 2
    assert repeats["first"] is None, "its series goes on: the third time is only counted"
    assert {name: write.changes is None for name, write in repeats.items() if write} == {
        "third": False,
        "second": True,
    }


def test_two_events_in_one_nanosecond_get_two_names():
    book = SeriesBook(host="h")
    writes = [book.observe(note(reason=reason), now_ns=START) for reason in ("A", "B")]
    assert [w.name for w in writes if w] == [f"web.{START:x}", f"web.{START + 1:x}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="1024 bytes are kept"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="more is cut"),
        pytest.param("é" * 600, "é" * 510 + " ...", id="never inside a character"),
        pytest.param("a" + "é" * 600, "a" + "é" * 509 + " ...", id="not even at an odd place"),
    ],
)
def test_a_long_note_is_shortened(text, expected):
    assert shorten(text) == expected


# --- the recorder --------------------------------------------------------------------------------

FOUND = answer({"kind": "APIResourceList"})
CREATED = answer({"kind": "Event"}, status=201)


async def record(
    script: list[Any], notes: list[EventNote]
) -> tuple[list[str], list[float], dict[str, int]]:
    """Record notes until they are written; return the calls, the pauses, and what was lost."""
    transport, clock = ScriptedTransport(*script), ManualClock()
    client = Client(transport, rng=Streams(1).stream("client"))
    recorder = EventRecorder(client, host="h", clock=clock, rng=Streams(1).stream("events"))
    tasks = TaskOwner()
    with instant_sleep(clock) as slept:
        # The six-minute rounds would spin under an instant sleep: none is due in these tests.
        recorder._maintain = _never  # type: ignore[method-assign]
        tasks.spawn(recorder.run(), name="recorder")
        for each in notes:
            recorder.record_event(each)
        await recorder.flush()
        await tasks.cancel_all()
    targets = [target.replace(f"{START:x}", "T") for target in transport.targets]
    return targets, slept, {reason: count for reason, count in recorder.lost.items() if count}


async def _never() -> None:
    await asyncio.Event().wait()


DISCOVERY = "GET /apis/events.k8s.io/v1"
POST = "POST /apis/events.k8s.io/v1/namespaces/ns/events"
PATCH = "PATCH /apis/events.k8s.io/v1/namespaces/ns/events/web.T"


@pytest.mark.parametrize(
    ("script", "notes", "calls"),
    [
        pytest.param([FOUND, CREATED], [note()], [DISCOVERY, POST], id="one event"),
        pytest.param(
            [FOUND, CREATED, CREATED],
            [note(), note(), note()],
            [DISCOVERY, POST, PATCH],
            id="repeats are one patch",
        ),
        pytest.param(
            [FOUND, CREATED, answer(failure(404), status=404), CREATED],
            [note(), note()],
            [DISCOVERY, POST, PATCH, POST],
            id="a series whose event is gone starts anew",
        ),
        pytest.param(
            [answer(failure(404), status=404), CREATED],
            [note()],
            [DISCOVERY, "POST /api/v1/namespaces/ns/events"],
            id="a server without the group gets core events",
        ),
        pytest.param(
            [TransportError("down"), FOUND, CREATED],
            [note()],
            [DISCOVERY, DISCOVERY, POST],
            id="discovery waits for the server",
        ),
        pytest.param(
            [FOUND, answer(failure(403), status=403)],
            [note()],
            [DISCOVERY, POST],
            id="a refused event is dropped",
        ),
        pytest.param(
            [FOUND, TransportError("lost"), answer(failure(409), status=409)],
            [note()],
            [DISCOVERY, POST, POST],
            id="an event whose answer was lost is there already",
        ),
        pytest.param(
            [FOUND, *[TransportError("down")] * 12],
            [note()],
            [DISCOVERY, *[POST] * 12],
            id="twelve tries are the limit",
        ),
        pytest.param(
            [FOUND, CREATED],
            [note(regarding=ObjectReference(kind="Node", name="web"))],
            [DISCOVERY, "POST /apis/events.k8s.io/v1/namespaces/default/events"],
            id="an event about a node goes to the default namespace",
        ),
    ],
)
async def test_recorder(script, notes, calls):
    asked, slept, _ = await record(script, notes)
    assert asked == calls
    assert all(10 <= seconds <= 12.5 for seconds in slept[1 if "down" in str(script[0]) else 0 :])


@pytest.mark.parametrize(
    ("script", "lost"),
    [
        pytest.param([FOUND, CREATED], {}, id="written"),
        pytest.param(
            [FOUND, TransportError("lost"), answer(failure(409), status=409)],
            {},
            id="written, though its answer was lost",
        ),
        pytest.param([FOUND, answer(failure(403), status=403)], {"refused": 1}, id="refused"),
        pytest.param([FOUND, *[TransportError("down")] * 12], {"no_answer": 1}, id="no answer"),
    ],
)
async def test_events_that_are_lost_are_counted_by_the_reason(script, lost):
    assert (await record(script, [note()]))[2] == lost


async def test_a_full_buffer_drops_and_counts(caplog):
    clock = ManualClock()
    client = Client(ScriptedTransport(), rng=Streams(1).stream("client"))
    recorder = EventRecorder(client, host="h", clock=clock, rng=Streams(1).stream("events"))
    for _ in range(1005):
        recorder.record_event(note())
    clock.advance(60)
    recorder.record_event(note())
    assert recorder.lost == {"buffer_full": 6, "refused": 0, "no_answer": 0, "error": 0}
    assert [each.getMessage() for each in caplog.records] == [
        "1000 Events wait to be written, the most; 1 are lost",
        "1000 Events wait to be written, the most; 6 are lost",
    ]


UNSENDABLE = note(reason="Bad\ud800")


async def test_an_event_that_cannot_be_sent_does_not_cost_those_that_follow(caplog):
    calls, _, lost = await record(
        [FOUND, CREATED, CREATED], [note(), UNSENDABLE, note(reason="Other")]
    )
    assert calls == [DISCOVERY, POST, POST]
    assert lost == {"error": 1}
    assert "was not written" in caplog.text


def test_a_series_that_cannot_be_closed_does_not_end_the_rounds(caplog):
    clock = ManualClock()
    calls: list[str] = []

    async def main() -> None:
        client = Client(ScriptedTransport(FOUND), rng=Streams(1).stream("client"))
        recorder = EventRecorder(client, host="h", clock=clock, rng=Streams(1).stream("events"))

        def finish(*, now_ns: int) -> list[Any]:
            calls.append(f"{(now_ns - START) // 60_000_000_000} min")
            raise RuntimeError("a bug")

        recorder._book.finish = finish  # type: ignore[method-assign]
        tasks = TaskOwner()
        tasks.spawn(recorder.run(), name="recorder")
        await aio.sleep(20 * 60)
        await tasks.cancel_all()

    run_virtual(main(), clock)
    assert calls == ["6 min", "12 min", "18 min"]
    assert "was not closed" in caplog.text
