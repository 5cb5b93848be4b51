"""The program of the process that answers questions next to a running scheduler.

`moorage.service.questions.answering` starts it and sends frames. Each question is answered in a
fork of the process, so it finds the state as the scheduler has it, and leaves it so.
"""

from __future__ import annotations

import gc
import logging
import pickle
from collections.abc import Callable
from typing import BinaryIO, Final

import msgspec

from moorage.base.clock import SystemClock
from moorage.base.errors import MoorageError
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.service.questions.answering import HEAD_BYTES
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import ClusterObjects
from moorage.what_if.answering.answers import capacity, what_if
from moorage.what_if.answering.body_names import names_in
from moorage.what_if.answering.forks import forked, result_of
from moorage.what_if.answering.messages import START, First, QuestionFrame, Reply, Update
from moorage.what_if.answering.mirror import Mirror
from moorage.what_if.change import AddNode, Apply, Drain
from moorage.what_if.course import Step, try_steps
from moorage.what_if.limits import Limits
from moorage.what_if.wire import (
    WHAT_IF,
    CapacityAnswer,
    CapacityBody,
    WhatIfAnswer,
    WhatIfBody,
)

# Made here, since a fork that makes them needs 10 ms for it.
_changes: Final = msgspec.json.Decoder(WhatIfBody).decode
_capacity: Final = msgspec.json.Decoder(CapacityBody).decode
# Of the time of a question, so that an answer that was cut short is still sent. The alarm that
# ends a fork comes after all of the time.
_SHARE: Final = 0.8
_MEMORY_BYTES: Final = 512 * 1024 * 1024
"""Growth of a fork over the process that it was forked from: a guess, for a pod's container."""

Known = Callable[[LoadedConfiguration, tuple[str, ...]], tuple[LoadedConfiguration, Registry]]
"""Adds plugins from outside to a configuration, and returns every known plugin."""


def serve(frames: BinaryIO, replies: BinaryIO, known: Known) -> None:
    """Take frames until they end, and answer each question.

    Parameters
    ----------
    frames, replies
        The two pipes.
    known
        Builds the registry of plugins.
    """
    logging.disable(logging.CRITICAL)
    first = _read(frames)
    if first is None:
        return
    mirror = _mirror(msgspec.msgpack.decode(first, type=First), known)
    update = msgspec.msgpack.Decoder(Update).decode
    decode_frame = msgspec.msgpack.Decoder(QuestionFrame).decode
    while (frame := _read(frames)) is not None:
        if frame:
            if isinstance(mirror, Mirror):
                mirror.take_changes(update(frame))
            continue
        question = _read(frames)
        if question is None:
            return
        reply = mirror if isinstance(mirror, Reply) else _answer(mirror, decode_frame(question))
        text = msgspec.msgpack.encode(reply)
        replies.write(len(text).to_bytes(HEAD_BYTES))
        replies.write(text)
        replies.flush()


def _mirror(first: First, known: Known) -> Mirror | Reply:
    """Return an empty mirror, or the answer to every question if there can be none."""
    try:
        config, registry = known(pickle.loads(first.config), first.plugins)
        _warm_up(config, registry)
        return Mirror(config, registry, now_ns=first.now_ns)
    except MoorageError as error:
        return Reply(400, str(error).encode())


def _warm_up(config: LoadedConfiguration, registry: Registry) -> None:
    """Try a change on one node, so that no fork has to build what the first question needs."""
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    steps: list[Step] = [
        AddNode(node),
        Apply({"apiVersion": "v1", "kind": "Pod", **pod}),
        Drain("n"),
    ]
    try_steps(ClusterInputs(objects=ClusterObjects(), registry=registry, config=config), steps)


def _answer(mirror: Mirror, frame: QuestionFrame) -> Reply:
    """Answer in a fork."""
    if frame.path == START:
        # Imported with the first question of this kind: most schedulers are not asked any.
        from moorage.what_if.answering import starts  # noqa: F401 - for the forks
    gc.freeze()
    return forked(lambda: _answered(mirror, frame), seconds_most=frame.seconds_most)


def _answered(mirror: Mirror, frame: QuestionFrame) -> bytes:
    if frame.only_names:
        whole = _changes(frame.body) if frame.path == WHAT_IF else _capacity(frame.body)
        return msgspec.json.encode(names_in(whole))
    if frame.path == START:
        from moorage.what_if.answering.starts import start_answer

        return start_answer(mirror, frame)
    limits = Limits(SystemClock(), seconds=frame.seconds_most * _SHARE, memory_bytes=_MEMORY_BYTES)

    def branch(work: Callable[[ClusterModel], bytes]) -> bytes:
        """Do a part of the question in a fork, from the scheduler's state on."""
        reply = forked(
            lambda: work(
                mirror.begin_model(
                    frame.moment, body.objects, with_local_data=frame.with_local_data
                )
            ),
            seconds_most=frame.seconds_most,
        )
        return result_of(reply)

    body: WhatIfBody | CapacityBody
    if frame.path == WHAT_IF:
        body = _changes(frame.body)
        course = what_if(body, branch, limits)
        answer: msgspec.Struct = WhatIfAnswer(
            time=frame.time, scheduling=frame.scheduling, course=course, worse=course.worse
        )
    else:
        body = _capacity(frame.body)
        found = capacity(body, branch, limits)
        answer = CapacityAnswer(time=frame.time, scheduling=frame.scheduling, capacity=found)
    return msgspec.json.encode(answer)


def _read(frames: BinaryIO) -> bytes | None:
    """Return the next frame, None at the end."""
    head = frames.read(HEAD_BYTES)
    if len(head) < HEAD_BYTES:
        return None
    size = int.from_bytes(head)
    found = frames.read(size)
    return found if len(found) == size else None
