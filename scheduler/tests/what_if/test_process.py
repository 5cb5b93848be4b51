"""The process that answers questions beside a scheduler: frames in, answers out, bounds kept."""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.base.errors import ApiError, TooManyRequestsError
from moorage.base.rng import Streams
from moorage.cli.run.answering import CODE
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.service.questions.answering import WAITING_MOST, AnsweringProcess
from moorage.what_if.answering.messages import First, Moment, QuestionFrame, Reply, Update
from moorage.what_if.wire import CAPACITY, WHAT_IF
from moorage_sandbox.testing.builders import node_manifest, pod_manifest

pytestmark = pytest.mark.slow

_EXTENDER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://127.0.0.1:1/", filterVerb: filter}]
"""
_POD = pod_manifest("p", cpu="3")
_ASK: dict[str, Any] = {"changes": [{"change": "apply", "manifest": _POD}]}


def _nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"a": found}
    return found


class State:
    """Two nodes; how often a process was begun, and how many frames of updates it got."""

    def __init__(self, config: LoadedConfiguration | None = None) -> None:
        self.config = LoadedConfiguration() if config is None else config
        self.begun = 0
        self.told = 0

    def first(self) -> bytes:
        self.begun += 1
        self.told = 0
        return msgspec.msgpack.encode(First(pickle.dumps(self.config), (), 10**18))

    def updates(self) -> Iterable[bytes]:
        if self.told == 0:
            self.told += 1
            nodes = [from_dict(Node, node_manifest(f"n{number}")) for number in (1, 2)]
            yield msgspec.msgpack.encode(Update(nodes=nodes))


def _asked(path: str, body: dict[str, Any], seconds_most: int = 60) -> bytes:
    return msgspec.msgpack.encode(
        QuestionFrame(
            path=path,
            body=msgspec.json.encode(body),
            moment=Moment(10**18, pickle.dumps(Streams(1)), []),
            time="now",
            scheduling=True,
            seconds_most=seconds_most,
        )
    )


async def _reply(process: AnsweringProcess, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    found = msgspec.msgpack.decode(await process.ask(lambda: _asked(path, body)), type=Reply)
    return found.code, msgspec.json.decode(found.body) if found.code == 200 else found.body.decode()


async def test_each_question_finds_the_same_state() -> None:
    """A pod of three cores is placed on trial; the next question finds both nodes empty."""
    state = State()
    process = AnsweringProcess(CODE, state)
    try:
        for _ in range(3):
            code, answer = await _reply(process, WHAT_IF, _ASK)
            assert (code, [each["pod"] for each in answer["course"]["starts"]]) == (
                200,
                ["default/p"],
            )
        code, answer = await _reply(process, CAPACITY, {"mix": [_POD], "needs": True})
        assert (code, answer["capacity"]["room"]["fit"]) == (200, 2)
    finally:
        await process.close()
    assert (state.begun, state.told) == (1, 1)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param({"changes": [{"change": "drain", "name": "n9"}]}, "no node n9", id="a change"),
        pytest.param({"changes": [{"change": "fly"}]}, "Invalid value 'fly'", id="no such change"),
        pytest.param({"chances": []}, "unknown field `chances`", id="an unknown field"),
        pytest.param(
            {"changes": [], "objects": [{"kind": "Pod", "metadata": {"name": "p"}}]},
            "an object lacks a readable apiVersion, kind or metadata.name",
            id="an object without apiVersion",
        ),
        pytest.param(
            {"changes": [{"change": "apply", "manifest": _POD | {"spec": _nested(300)}}]},
            "an object is nested deeper than 200 levels",
            id="an object nested deep",
        ),
        pytest.param(
            {"changes": [{"change": "apply", "manifest": _POD | {"metadata": [1]}}]},
            "Pod without a name would be refused: ",
            id="metadata that is a list",
        ),
        pytest.param(
            {"changes": [{"change": "apply", "manifest": _POD | {"spec": {"containers": {}}}}]},
            "Pod p would be refused: ",
            id="containers that are no list",
        ),
        pytest.param(
            {
                "changes": [
                    {
                        "change": "addNode",
                        "manifest": {
                            "metadata": {"name": "n"},
                            "status": {"allocatable": {"cpu": True}},
                        },
                    }
                ]
            },
            "Node n would be refused: ",
            id="an amount of cpu that is true",
        ),
        pytest.param(
            {"changes": [{"change": "addNode", "manifest": {}}]},
            "a node without a name cannot be added",
            id="a node without a name",
        ),
    ],
)
async def test_a_question_that_cannot_be_answered_is_refused_with_400(
    body: dict[str, Any], problem: str
) -> None:
    process = AnsweringProcess(CODE, State())
    try:
        code, text = await _reply(process, WHAT_IF, body)
    finally:
        await process.close()
    assert code == 400
    assert problem in text


async def test_a_negative_number_of_pods_is_not_counted() -> None:
    process = AnsweringProcess(CODE, State())
    try:
        found = await _reply(process, CAPACITY, {"mix": [_POD], "most": -5})
    finally:
        await process.close()
    assert found == (400, "Expected `int` >= 1 - at `$.most`")


async def test_extenders_are_refused() -> None:
    process = AnsweringProcess(CODE, State(parse_config(_EXTENDER)))
    try:
        assert await _reply(process, WHAT_IF, _ASK) == (
            400,
            "the configuration has extenders, and no extender is called for a change that is only "
            "tried; leave them out",
        )
    finally:
        await process.close()


async def test_further_questions_are_refused_while_many_wait() -> None:
    process = AnsweringProcess(CODE, State())
    try:
        asking = [_reply(process, WHAT_IF, _ASK) for _ in range(WAITING_MOST + 3)]
        found = await asyncio.gather(*asking, return_exceptions=True)
    finally:
        await process.close()
    refused = [each for each in found if isinstance(each, TooManyRequestsError)]
    assert (len(refused), len(found) - len(refused)) == (2, WAITING_MOST + 1)
    assert refused[0].retry_after_seconds == 2


async def test_a_process_that_does_not_answer_is_ended_and_another_begun() -> None:
    state = State()
    silent = AnsweringProcess("import sys; sys.stdin.buffer.read()", state, answer_seconds_most=0.5)
    try:
        for _ in range(2):
            with pytest.raises(ApiError, match="longer than") as caught:
                await _reply(silent, WHAT_IF, _ASK)
            assert (caught.value.code, caught.value.retry_after_seconds) == (503, 2)
    finally:
        await silent.close()
    assert state.begun == 2


async def test_a_process_that_ends_is_told_and_replaced() -> None:
    state = State()
    process = AnsweringProcess("raise SystemExit(3)", state)
    try:
        for _ in range(2):
            with pytest.raises(ApiError, match="ask again"):
                await _reply(process, WHAT_IF, _ASK)
    finally:
        await process.close()
    assert state.begun == 2


async def test_the_process_steps_back_behind_the_scheduler() -> None:
    """Ctrl-C does not reach it; it stays in the session, within which Linux heeds niceness."""
    process = AnsweringProcess(CODE, State())
    try:
        await _reply(process, WHAT_IF, _ASK)
        assert process.pid is not None
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
        assert os.getpgid(process.pid) == process.pid
        assert os.getsid(process.pid) == os.getsid(0)
    finally:
        await process.close()
