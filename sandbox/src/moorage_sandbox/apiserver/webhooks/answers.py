"""The answers of webhooks to one call, and the exception by which a call waits for more of them.

Place in the flow: `admission` looks for answers here, and `gathering` puts them in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

import msgspec

from moorage.base.clock import Clock
from moorage.base.rng import Random, Streams
from moorage.kinds.kind import Obj
from moorage_sandbox.apiserver.wire.requests import Request
from moorage_sandbox.storage.reads import TRIES_MAX
from moorage_sandbox.storage.record import Record

_encode: Final = msgspec.json.Encoder(order="sorted").encode


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The place where a webhook listens.

    Parameters
    ----------
    host, port
        The address to connect to.
    path
        Path of the URL.
    authority
        Host and port of the URL, as they are shown.
    server_name
        The name that the certificate has to have.
    ca_bundle
        PEM of the authorities that may have signed the certificate; empty for the machine's.
    """

    host: str
    port: int
    path: str
    authority: str
    server_name: str
    ca_bundle: str = ""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One review to send to a webhook.

    Parameters
    ----------
    about
        The webhook and the object. A call asks a few times at most about the same.
    endpoint
        The place where the webhook listens.
    timeout_seconds
        Most time of the answer.
    review
        The review, without the uid of its request.
    """

    about: str
    endpoint: Endpoint
    timeout_seconds: int
    review: Obj

    @property
    def key(self) -> tuple[str, bytes]:
        """The webhook and the review, on which the answer depends."""
        return self.about, _encode(self.review)


class Answer(msgspec.Struct, frozen=True):
    """The answer to a question.

    Parameters
    ----------
    uid
        The uid that the request was sent with.
    body
        The whole body; empty where there is a failure.
    failure
        Why there is no answer; empty where there is one.
    """

    uid: str
    body: bytes = b""
    failure: str = ""


Ask: TypeAlias = Callable[[Sequence[Question], float], Awaitable[Sequence[tuple[Question, Answer]]]]
"""Asks webhooks, for so many seconds at most."""


class HookError(Exception):
    """A webhook gave no answer that can be used; the text says why."""


class AnswersNeeded(Exception):  # noqa: N818
    """Webhooks have to answer first; nothing has been changed."""

    def __init__(self, questions: Sequence[Question]) -> None:
        super().__init__(f"{len(questions)} answers of webhooks are missing")
        self.questions = questions


class _Moment:
    """The time of a call, the same each time that the call is answered once more."""

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.now_ns()
        self.monotonic_ns = clock.monotonic_ns

    def now_ns(self) -> int:
        """Wall-clock time, nanoseconds since the Unix epoch."""
        return self._now_ns


class Answers:
    """The answers to one call so far, and what has to be the same when it is answered once more.

    Parameters
    ----------
    request
        The call.
    clock
        The server's clock.
    seed
        Decides about uids and generated names.
    ask
        Asks webhooks at once, for so many seconds at most, and returns their answers.

    Attributes
    ----------
    clock
        The time of the call.
    rng
        Uids, generated names, addresses.
    deleted
        The objects that the call has deleted so far, where it deletes many.
    size_bytes
        Length of all answers.
    conversions
        Objects that a webhook has converted for the call, by their content and the wanted version.
    reviewed
        Whether the body of the call has been reviewed: the objects that it changes are not.
    """

    def __init__(self, request: Request, clock: Clock, seed: int, ask: Ask) -> None:
        self.request = request
        self.ask = ask
        self.clock: Clock = _Moment(clock)
        self.deleted: list[Record] = []
        self.conversions: dict[bytes, Obj] = {}
        self.size_bytes = 0
        self._seed = seed
        self._answers: dict[tuple[str, bytes], Answer] = {}
        self._times: Counter[str] = Counter()
        self.restart()

    def successor(self) -> Answers:
        """Return the answers to the next part of the call, of which there are none yet."""
        return Answers(self.request, self.clock, self._seed, self.ask)

    def restart(self) -> None:
        """Begin to answer the call once more: it draws what it drew before."""
        self.rng: Random = Streams(self._seed).stream("call")
        self.reviewed = False

    def answer_to(self, question: Question) -> Answer | None:
        """Return the answer to a question; None for a question that has not been asked."""
        return self._answers.get(question.key)

    def add_answers(self, answers: Iterable[tuple[Question, Answer]]) -> bool:
        """Take in answers; False where a webhook was asked too often about one object.

        The object changes each time before its webhooks have answered.
        """
        for question, answer in answers:
            self._answers[question.key] = answer
            self.size_bytes += len(answer.body)
            self._times[question.about] += 1
        return max(self._times.values()) <= TRIES_MAX


_answers: ContextVar[Answers | None] = ContextVar("answers", default=None)
current_answers = _answers.get
"""Return the answers to the current call; None for a call that asks no webhook."""


@contextmanager
def answering_with(answers: Answers | None) -> Iterator[None]:
    """Answer calls inside the context with these answers."""
    token = _answers.set(answers)
    try:
        yield
    finally:
        _answers.reset(token)
