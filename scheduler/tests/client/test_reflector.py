"""The reflector against a scripted server: what its handler hears, and which calls it makes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.node import Node
from moorage.api.resources import NODES
from moorage.base.aio import Hold, TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.errors import AnswerTooLargeError, DecodeError, RefusedError, TransportError
from moorage.base.rng import Streams
from moorage.client.objects import Key
from moorage.client.reflector import Reflector
from moorage.client.transport import Answer, Call
from scheduler.tests.client.fakes import ScriptedTransport, Stream, answer, failure, instant_sleep


def node(name: str, version: int, *, uid: str | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)},
        "spec": spec,
    }


def added(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"type": "ADDED", "object": node(name, version, **more)}


def modified(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"type": "MODIFIED", "object": node(name, version, **more)}


def deleted(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"type": "DELETED", "object": node(name, version, **more)}


def bookmark(version: int, *, end: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    obj = {"kind": "Node", "apiVersion": "v1", "metadata": metadata}
    return {"type": "BOOKMARK", "object": obj}


def error(code: int, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": "ERROR", "object": failure(code, reason, message)}


def node_list(version: int, *items: dict[str, Any], token: str = "") -> dict[str, Any]:
    metadata = {"resourceVersion": str(version)} | ({"continue": token} if token else {})
    return {"kind": "NodeList", "apiVersion": "v1", "metadata": metadata, "items": list(items)}


NO_STREAMING_LIST = Stream(failure(422, "Invalid", "sendInitialEvents is forbidden"), status=422)


class Heard:
    """A handler that writes down what it hears."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def on_add(self, obj: Node) -> None:
        self.log.append(f"add {obj.name}@{obj.metadata.resource_version}")

    def on_update(self, old: Node, new: Node) -> None:
        versions = f"{old.metadata.resource_version}->{new.metadata.resource_version}"
        self.log.append(f"update {new.name}@{versions}")

    def on_delete(self, obj: Node, *, missed: bool) -> None:
        how = "missed" if missed else "delete"
        self.log.append(f"{how} {obj.name}@{obj.metadata.resource_version}")

    def on_synced(self) -> None:
        self.log.append("synced")

    def on_undecodable(self, key: Key, error: DecodeError) -> None:
        self.log.append(f"undecodable {key[1]}: {error}")


async def play(
    *script: Any,
    optional: bool = False,
    heard: Heard | None = None,
    each_turn: Callable[[], None] = lambda: None,
    trim: Callable[[Node], None] | None = None,
) -> tuple[Heard, list[str], Reflector[Node], list[float]]:
    """Run a reflector until the script is used up; return what was heard and asked."""
    transport = ScriptedTransport(*script)
    clock, heard = ManualClock(), heard or Heard()
    reflector = Reflector(
        transport,
        NODES,
        Node,
        handler=heard,
        clock=clock,
        rng=Streams(1).stream("reflector"),
        field_selector="metadata.name!=x",
        optional=optional,
        trim=trim,
    )
    tasks = TaskOwner()
    with instant_sleep(clock) as slept:
        task = tasks.spawn(reflector.run(), name="reflector")
        waiting = tasks.spawn(transport.exhausted.wait(), name="exhausted")
        while not waiting.done():
            assert not task.done(), task.exception()
            each_turn()
            await _turn()
        await tasks.cancel_all()
    return heard, [_short(call.target) for call in transport.calls], reflector, slept


async def _turn() -> None:
    from scheduler.tests.client.fakes import _real_sleep

    await _real_sleep(0)


def _short(target: str) -> str:
    """Name a call: watch-list, list or watch, and where it starts."""
    assert "fieldSelector=metadata.name%21%3Dx" in target, "selector on every call"
    version = re.search(r"resourceVersion=([^&]*)", target)
    at = f"@{version[1]}" if version else ""
    if "watch=true" in target:
        seconds = re.search(r"timeoutSeconds=(\d+)", target)
        assert seconds
        assert 300 <= int(seconds[1]) < 600
        assert "allowWatchBookmarks=true" in target
        return f"{'watch-list' if 'sendInitialEvents' in target else 'watch'}{at}"
    limit = re.search(r"limit=(\d+)", target)
    token = re.search(r"continue=([^&]*)", target)
    return f"list{at}{f' limit {limit[1]}' if limit else ''}{f' after {token[1]}' if token else ''}"


BEGIN = (added("a", 1), added("b", 2), bookmark(5, end=True))
BEGIN_HEARD = ["add a@1", "add b@2", "synced"]

CASES = [
    pytest.param(
        [Stream(*BEGIN, modified("a", 6), deleted("b", 7), added("c", 8))],
        ["watch-list@", "watch@8"],
        [*BEGIN_HEARD, "update a@1->6", "delete b@7", "add c@8"],
        id="a streaming list goes on as a watch and the next watch starts where it ended",
    ),
    pytest.param(
        [Stream(added("a", 1), modified("a", 3), added("b", 2), deleted("b", 4), *BEGIN[2:])],
        ["watch-list@", "watch-list@5"],
        ["add a@3", "synced"],
        id="changes during the list are folded into it, and a watch without events relists",
    ),
    pytest.param(
        [Stream(*BEGIN, bookmark(40)), Stream(added("c", 41))],
        ["watch-list@", "watch@40", "watch@41"],
        [*BEGIN_HEARD, "add c@41"],
        id="a bookmark moves the version the next watch starts from",
    ),
    pytest.param(
        [NO_STREAMING_LIST, answer(node_list(9, node("a", 1))), Stream(added("b", 10))],
        ["watch-list@", "list@0 limit 500", "watch@9", "watch@10"],
        ["add a@1", "synced", "add b@10"],
        id="a server without streaming lists is listed plainly",
    ),
    pytest.param(
        [
            NO_STREAMING_LIST,
            answer(node_list(9, node("a", 1), token="t1")),
            answer(node_list(9, node("b", 2), token="t2")),
            answer(node_list(9, node("c", 3))),
        ],
        [
            "watch-list@",
            "list@0 limit 500",
            "list limit 500 after t1",
            "list limit 500 after t2",
            "watch@9",
        ],
        ["add a@1", "add b@2", "add c@3", "synced"],
        id="a long list is read page by page",
    ),
    pytest.param(
        [
            NO_STREAMING_LIST,
            answer(node_list(9, node("a", 1), token="t1")),
            answer(failure(410, "Expired"), status=410),
            answer(node_list(12, node("b", 2))),
        ],
        ["watch-list@", "list@0 limit 500", "list limit 500 after t1", "list", "watch@12"],
        ["add b@2", "synced"],
        id="a continue token that expired is followed by one list in one piece",
    ),
    pytest.param(
        [
            Stream(*BEGIN, modified("a", 6), error(410, "Expired")),
            Stream(added("a", 6), added("c", 9), bookmark(20, end=True)),
        ],
        ["watch-list@", "watch-list@6", "watch-list@20"],
        [*BEGIN_HEARD, "update a@1->6", "missed b@2", "update a@6->6", "add c@9"],
        id="410 inside a watch relists, and what vanished unseen is a missed deletion",
    ),
    pytest.param(
        [
            Stream(*BEGIN, bookmark(6)),
            Stream(failure(410, "Expired"), status=410),
            Stream(failure(410, "Expired"), status=410),
            Stream(*BEGIN),
        ],
        ["watch-list@", "watch@6", "watch-list@6", "watch-list@", "watch-list@5"],
        [*BEGIN_HEARD, "update a@1->1", "update b@2->2"],
        id="410 on opening a watch relists, and again from nothing if that version is gone too",
    ),
    pytest.param(
        [
            Stream(*BEGIN, bookmark(6)),
            Stream(failure(410, "Expired"), status=410),
            Stream(failure(504, "Timeout", "Too large resource version: 6"), status=504),
            Stream(added("a", 1), bookmark(3, end=True)),
        ],
        ["watch-list@", "watch@6", "watch-list@6", "watch-list@", "watch-list@3"],
        [*BEGIN_HEARD, "missed b@2", "update a@1->1"],
        id="a server that lost its memory is listed from nothing",
    ),
    pytest.param(
        [
            Stream(*BEGIN, added("c", 6), TransportError("reset")),
            RefusedError("refused"),
            Stream(failure(429, "TooManyRequests"), status=429),
            Stream(added("d", 7)),
        ],
        ["watch-list@", "watch@6", "watch@6", "watch@6", "watch@7"],
        [*BEGIN_HEARD, "add c@6", "add d@7"],
        id="a broken stream, a refused connection and 429 all continue without a relist",
    ),
    pytest.param(
        [
            RefusedError("refused"),
            Stream(failure(429, "TooManyRequests"), status=429),
            Stream(*BEGIN, bookmark(6)),
        ],
        ["watch-list@", "watch-list@", "watch-list@", "watch@6"],
        BEGIN_HEARD,
        id="a server that is not up yet is asked again",
    ),
    pytest.param(
        [Stream(added("a", 1)), answer(node_list(4, node("a", 1)))],
        ["watch-list@", "list@0 limit 500", "watch@4"],
        ["add a@1", "synced"],
        id="a streaming list cut short tells nothing and is replaced by a plain one",
    ),
    pytest.param(
        [Stream(*BEGIN, modified("a", 6, unschedulable="maybe"), modified("b", 7))],
        ["watch-list@", "watch@7"],
        [
            *BEGIN_HEARD,
            "undecodable a: Node a: Expected `bool`, got `str` - at `$.spec.unschedulable`",
            "update b@2->7",
        ],
        id="an object that cannot be decoded is reported and the stream goes on",
    ),
    pytest.param(
        [
            Stream(
                *BEGIN,
                b'{"type":"MODIFIED","object":{"metadata":{"name":"a","labels":{"x":"\xff"}}}}',
                modified("b", 7),
            )
        ],
        ["watch-list@", "watch@7"],
        [
            *BEGIN_HEARD,
            "undecodable a: not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid "
            "start byte",
            "update b@2->7",
        ],
        id="so is an object with a text that is not UTF-8",
    ),
    pytest.param(
        [Stream(*BEGIN, {"type": "ADDED", "object": {"kind": "x" * 200}}, modified("b", 7))],
        ["watch-list@", "watch@7"],
        [*BEGIN_HEARD, f"undecodable : kind '{'x' * 74} where a Node should be", "update b@2->7"],
        id="an object of another kind is reported, and its kind shown in part",
    ),
    pytest.param(
        [
            Stream(*BEGIN, b'{"type":"ADDED","object":{"x":' + b"[" * 9999 + b"]" * 9999 + b"}}"),
            Stream(*BEGIN, bookmark(6)),
        ],
        ["watch-list@", "watch-list@5", "watch@6"],
        [*BEGIN_HEARD, "update a@1->1", "update b@2->2"],
        id="a line nested deeper than any object breaks the stream",
    ),
    pytest.param(
        [
            NO_STREAMING_LIST,
            AnswerTooLargeError("the answer is longer than 268435456 bytes"),
            answer(node_list(4, node("a", 1))),
        ],
        ["watch-list@", "list@0 limit 500", "list limit 500", "watch@4"],
        ["add a@1", "synced"],
        id="a list too long to be read whole is read in pages",
    ),
    pytest.param(
        [Stream(*BEGIN, deleted("a", 6, unschedulable="maybe"), {"type": "ADDED", "object": 3})],
        ["watch-list@", "watch@6"],
        [*BEGIN_HEARD, "delete a@1", "undecodable : nothing where a Node should be"],
        id="a deletion that cannot be decoded is still a deletion of what was known",
    ),
    pytest.param(
        [
            Stream(*BEGIN, modified("a", 6), error(410)),
            Stream(added("a", 7, taints="no"), added("b", 2), bookmark(8, end=True)),
            Stream(failure(422), status=422),
            answer(node_list(9, node("a", 7, taints="no"), node("b", 2))),
        ],
        ["watch-list@", "watch-list@6", "watch-list@8", "list@8", "watch@9"],
        [
            *BEGIN_HEARD,
            "update a@1->6",
            "update b@2->2",
            "undecodable a: Node a: Expected `array`, got `str` - at `$.spec.taints`",
            "update b@2->2",
            "undecodable a: Node a: Expected `array`, got `str` - at `$.spec.taints`",
        ],
        id="an object undecodable in a relist is not taken for deleted",
    ),
    pytest.param(
        [Stream(*BEGIN, modified("a", 6, uid="other"))],
        ["watch-list@", "watch@6"],
        [*BEGIN_HEARD, "missed a@1", "add a@6"],
        id="another uid under the same name is a missed deletion and an addition",
    ),
    pytest.param(
        [Stream(*BEGIN, deleted("a", 6), deleted("a", 6), deleted("c", 7))],
        ["watch-list@", "watch@7"],
        [*BEGIN_HEARD, "delete a@6"],
        id="a deletion told twice, and one of something never seen, are not told on",
    ),
    pytest.param(
        [Stream(*BEGIN, added("a", 1), modified("b", 6), modified("b", 6))],
        ["watch-list@", "watch@6"],
        [*BEGIN_HEARD, "update a@1->1", "update b@2->6", "update b@6->6"],
        id="a change told twice is an update to the same version",
    ),
    pytest.param(
        [Stream(*BEGIN, deleted("a", 9, uid="other"))],
        ["watch-list@", "watch@9"],
        [*BEGIN_HEARD, "missed a@1"],
        id="the deletion of a later object of that name takes the one known with it",
    ),
    pytest.param(
        [Stream(*BEGIN, b"<html>", added("c", 9)), Stream(*BEGIN, bookmark(11))],
        ["watch-list@", "watch-list@5", "watch@11"],
        [*BEGIN_HEARD, "update a@1->1", "update b@2->2"],
        id="a line that is no watch event makes the stream worthless",
    ),
    pytest.param(
        [Stream(*BEGIN, error(500, "InternalError", "boom")), Stream(*BEGIN, bookmark(6))],
        ["watch-list@", "watch-list@5", "watch@6"],
        [*BEGIN_HEARD, "update a@1->1", "update b@2->2"],
        id="an ERROR 500 relists",
    ),
    pytest.param(
        [
            Stream(*BEGIN, added("c", 12)),
            Stream(bookmark(9)),
            Stream(added("a", 1), bookmark(9, end=True), bookmark(10)),
        ],
        ["watch-list@", "watch@12", "watch-list@", "watch@10"],
        [*BEGIN_HEARD, "add c@12", "missed b@2", "missed c@12", "update a@1->1"],
        id="a version that goes back relists at any version",
    ),
    pytest.param(
        [Stream(*BEGIN, error(429, "TooManyRequests")), Stream(added("c", 6))],
        ["watch-list@", "watch@5", "watch@6"],
        [*BEGIN_HEARD, "add c@6"],
        id="an ERROR 429 waits and continues",
    ),
    pytest.param(
        [NO_STREAMING_LIST, answer({"items": None, "metadata": {"resourceVersion": "3"}})],
        ["watch-list@", "list@0 limit 500", "watch@3"],
        ["synced"],
        id="an empty list may be null",
    ),
]


@pytest.mark.parametrize(("script", "calls", "heard"), CASES)
async def test_reflector(script, calls, heard):
    log, asked, reflector, _ = await play(*script)
    assert (asked, log.log) == (calls, heard)
    assert reflector.synced.is_set()


UNSERVED = [
    Stream(failure(404, "NotFound"), status=404),
    answer(failure(404, "NotFound"), status=404),
]


async def test_a_kind_the_server_does_not_serve_is_empty_until_it_does(caplog):
    log, asked, reflector, slept = await play(
        *UNSERVED, *UNSERVED, Stream(*BEGIN, bookmark(6)), optional=True
    )
    assert asked == ["watch-list@", "list@0 limit 500"] * 2 + ["watch-list@", "watch@6"]
    assert log.log == ["synced", "add a@1", "add b@2"]
    assert slept[:2] == [60, 60]
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warning == (
        "the API server does not serve nodes of v1: going on without, and asking again every "
        "60 seconds"
    )
    assert reflector.synced.is_set()


async def test_a_kind_that_is_no_longer_served_stays_as_it_was():
    log, *_ = await play(Stream(*BEGIN, error(410)), *UNSERVED, Stream(*BEGIN), optional=True)
    assert log.log == [*BEGIN_HEARD, "update a@1->1", "update b@2->2"]


async def test_a_required_kind_is_waited_for_until_it_is_served():
    log, _, reflector, slept = await play(*UNSERVED, *UNSERVED)
    assert (log.log, reflector.synced.is_set()) == ([], False)
    assert [0.8 <= slept[0] <= 1.6, 1.6 <= slept[1] <= 3.2] == [True, True]


async def test_failing_lists_back_off_up_to_thirty_seconds_and_jitter_at_most_doubles():
    refused = [RefusedError("no") for _ in range(9)]
    *_, slept = await play(*refused)
    base = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]
    assert len(slept) == 9
    assert all(low <= seconds <= 2 * low for low, seconds in zip(base, slept, strict=True))


async def test_the_store_holds_what_the_handler_was_told():
    *_, reflector, _ = await play(Stream(*BEGIN, deleted("a", 6), added("c", 7)))
    assert sorted(reflector.known_objects) == [("", "b"), ("", "c")]
    assert reflector.last_resource_version == "7"


async def test_a_page_is_asked_for_while_the_one_before_it_is_decoded():
    told: list[str] = []

    def second_page(call: Call) -> Answer:
        told.append(_short(call.target))
        return answer(node_list(5, node("b", 200)))

    first_page = answer(node_list(5, *LONG, token="t1"))
    heard, *_ = await play(
        NO_STREAMING_LIST, first_page, second_page, trim=lambda node: told.append(node.name)
    )
    assert told[0] == "n0000"
    assert told[-2:] == ["n0999", "b"]
    assert "list limit 500 after t1" in told[1:-2]
    assert heard.log[-2:] == ["add b@200", "synced"]


async def test_changes_wait_while_they_are_held_back():
    hold, heard = Hold(), Heard()
    transport = ScriptedTransport(Stream(*BEGIN, added("c", 7)))
    reflector = Reflector(
        transport,
        NODES,
        Node,
        handler=heard,
        clock=ManualClock(),
        rng=Streams(1).stream("reflector"),
        hold=hold,
    )
    tasks = TaskOwner()
    with hold.keeping_back():
        tasks.spawn(reflector.run(), name="reflector")
        for _ in range(50):
            await _turn()
        assert heard.log == []
    await transport.exhausted.wait()
    await tasks.cancel_all()
    assert heard.log[-1] == "add c@7"


LONG = [node(f"n{number:04}", number + 1) for number in range(1000)]


class Turns(Heard):
    """A handler that counts what it hears between two turns of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.most = 0, 0

    def on_add(self, obj: Node) -> None:
        self.now += 1
        self.most = max(self.most, self.now)

    def on_delete(self, obj: Node, *, missed: bool) -> None:
        self.on_add(obj)

    def turn(self) -> None:
        self.now = 0


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            [
                Stream(*({"type": "ADDED", "object": obj} for obj in LONG), bookmark(5, end=True)),
                Stream(bookmark(6, end=True)),
            ],
            id="listed as a stream",
        ),
        pytest.param(
            [
                NO_STREAMING_LIST,
                answer(node_list(5, *LONG)),
                Stream(error(410, "Expired")),
                NO_STREAMING_LIST,
                answer(node_list(6)),
            ],
            id="listed in one page",
        ),
    ],
)
async def test_the_loop_has_turns_while_a_long_list_comes_and_while_it_goes(script):
    heard = Turns()
    _, _, reflector, _ = await play(*script, heard=heard, each_turn=heard.turn)
    assert 0 < heard.most <= 64
    assert not reflector.known_objects
