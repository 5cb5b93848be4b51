"""Speaks with one HTTP extender: verb by verb over a transport of its own.

``service`` makes one for each extender of the configuration and hands it to the engine, which
knows it by the Protocol of ``framework.extender``. Every fault of an extender becomes an
`ExtenderError`: no answer, an unexpected code or body, a node that was not in the question.

Mirrors kubernetes v1.36 ``pkg/scheduler/extender.go``, with one difference: nodes an extender
returns as objects are taken by name, so that scoring sees them as they are, with their pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar
from urllib.parse import urlsplit

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Container, Pod
from moorage.base.authorities import read_when_used
from moorage.base.errors import (
    ExtenderError,
    ExtenderSilentError,
    KubeconfigError,
    NotLeadingError,
    RefusedError,
    TransportError,
)
from moorage.client import extender_wire as wire
from moorage.client.auth import without_user
from moorage.client.extender_wire import Listed, NodeList, Victims, Whole
from moorage.client.guard import WriteGuard
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Answer, Call, Transport

with read_when_used():
    import aiohttp

T = TypeVar("T")

_OK = 200
_KEPT_BYTES_MORE = 1 << 20  # a guess: reasons of 20,000 nodes that an extender fails


class ExtenderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The verbs of an extender, and the rules for its calls.

    Parameters
    ----------
    url
        The URL prefix, as configured.
    filter_verb, prioritize_verb, preempt_verb, bind_verb
        Last part of the URL of each verb; "" for a verb that the extender does not have.
    weight
        Multiplier of the extender's scores.
    timeout_seconds
        Limit of one call.
    names_only
        Whether nodes are sent by name and victims by uid, because the extender knows the cluster.
    resources
        The extender is asked about pods that request one of these; empty: about every pod.
    ignorable
        Attempts go on without the extender when it fails.
    """

    url: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    timeout_seconds: float = 5.0
    names_only: bool = False
    resources: frozenset[str] = frozenset()
    ignorable: bool = False


class OneTryTransport(HttpTransport):
    """Carries a call once: an extender that asks to come back later has failed this attempt.

    An answer equal to the last one of its path is returned as the same object, unless it is long.
    """

    _last: Mapping[str, bytes] = {}

    async def request(self, call: Call) -> Answer:
        """Send a call and read the whole answer."""
        return await self._request_once(call)

    async def _whole_body(self, call: Call, response: aiohttp.ClientResponse) -> bytes:
        pieces: list[bytes] = []
        size, path = 0, response.url.raw_path
        last = self._last.get(path, b"")
        same = True
        async for piece in self._pieces(call, response):
            same = same and last.startswith(piece, size)
            size += len(piece)
            pieces.append(piece)
        if same and size == len(last):
            return last
        body = b"".join(pieces)
        if size <= _kept_bytes_max(call.body):
            self._last = {**self._last, path: body}
        return body


class HttpExtender:
    """An HTTP extender of the configuration.

    Parameters
    ----------
    settings
        The extender's part of the configuration.
    transport
        To its host; closed by its owner.
    whole
        Gives the JSON of the objects to send.
    guard
        Asked before the extender is told to bind: its binding counts as a write of ours.
    listed
        Gives the JSON of several nodes, separated by commas; None: `whole` gives each.
    """

    def __init__(
        self,
        settings: ExtenderSettings,
        transport: Transport,
        *,
        whole: Whole,
        guard: WriteGuard | None = None,
        listed: Listed | None = None,
    ) -> None:
        self._guard = guard or WriteGuard()
        self._settings = settings
        self._transport = transport
        self._whole = whole
        self._victims_whole = None if settings.names_only else whole
        self._listed = None if settings.names_only else listed or self._list
        self._node_lists: dict[str, NodeList] = {}
        self._filtered: _Last[wire.Filtered] = _Last()
        self._scores: _Last[Mapping[str, int]] = _Last()
        self.name = without_user(settings.url)  # it stands in messages that everybody may read
        self._url = self.name.rstrip("/")
        self._path = urlsplit(self._url).path
        self.ignorable = settings.ignorable
        self.weight = settings.weight
        self.filters = bool(settings.filter_verb)
        self.prioritizes = bool(settings.prioritize_verb)
        self.preempts = bool(settings.preempt_verb)
        self.binds = bool(settings.bind_verb)

    def interested(self, pod: Pod) -> bool:
        """Whether a container requests, or limits, a resource that the extender looks after."""
        wanted = self._settings.resources
        return not wanted or any(not wanted.isdisjoint(names) for names in _resources(pod))

    async def filter(
        self, pod: Pod, nodes: Sequence[Node]
    ) -> tuple[Sequence[str], Mapping[str, str], Mapping[str, str]]:
        """Ask which nodes pass.

        Raises
        ------
        ExtenderError
            The extender failed, said so, or names a node that was not in the question.
        """
        node_list, sent = self._about(self._settings.filter_verb, nodes)
        body = wire.nodes_body(self._whole(pod), node_list, sent)
        told = await self._call_extender(self._settings.filter_verb, body)
        answer = self._filtered.decode_answer(
            told, lambda body: wire.read_filter(body, node_list, sent), _kept_bytes_max(body)
        )
        if answer.error:
            raise ExtenderError(answer.error)
        names = answer.names or []
        if self._settings.names_only and answer.node_names is not None:
            names = answer.node_names
        if not node_list.known.issuperset(names):
            for name in (each for each in names if each not in node_list.known):
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found '
                    "in the input node list"
                )
        return names, answer.failed, answer.unresolvable

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        """Ask for scores.

        Raises
        ------
        ExtenderError
            The extender failed.
        """
        asked, sent = self._about(self._settings.prioritize_verb, nodes)
        body = wire.nodes_body(self._whole(pod), asked, sent)
        told = await self._call_extender(self._settings.prioritize_verb, body)
        return self._scores.decode_answer(told, wire.read_scores, _kept_bytes_max(body))

    async def preempt(
        self, pod: Pod, victims: Victims, *, on_node: Callable[[str], Sequence[Pod]]
    ) -> Victims:
        """Ask on which nodes room may be made, and by which victims.

        Raises
        ------
        ExtenderError
            The extender failed, or names a pod that is not on the node.
        """
        body = wire.preempt_body(self._whole(pod), victims, self._victims_whole)
        answer = wire.read_victims(await self._call_extender(self._settings.preempt_verb, body))
        victims_left: dict[str, tuple[Sequence[Pod], int]] = {}
        for name in sorted(answer, key=str.encode):
            uids, violations = answer[name]
            pods = {each.uid: each for each in on_node(name)}
            for uid in uids:
                if uid not in pods:
                    raise ExtenderError(
                        f"extender: {self.name} claims to preempt pod (UID: {uid}) on node: "
                        f"{name}, but the pod is not found on that node"
                    )
            victims_left[name] = tuple(pods[uid] for uid in dict.fromkeys(uids)), violations
        return victims_left

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Have the extender bind the pod.

        Raises
        ------
        ExtenderSilentError
            The extender gave no answer: the pod may be bound nevertheless.
        ExtenderError
            The extender failed or said so, or this process may not write any more.
        """
        try:
            self._guard.check_write()
        except NotLeadingError as refused:
            raise ExtenderError(str(refused)) from refused
        answer = await self._call_extender(self._settings.bind_verb, wire.bind_body(pod, node_name))
        problem = wire.read_error(answer)
        if problem:
            raise ExtenderError(problem)

    def _about(self, verb: str, nodes: Sequence[Node]) -> tuple[NodeList, bytes | None]:
        """Return a question's nodes and, unless names are enough, their JSON.

        As long as no node changes, a verb is asked about the same nodes for every pod.
        """
        asked = self._node_lists.get(verb)
        if asked is None or asked.nodes != nodes:
            asked = self._node_lists[verb] = NodeList(nodes)
        return asked, None if self._listed is None else self._listed(nodes)

    def _list(self, nodes: Sequence[Node]) -> bytes:
        return b",".join([self._whole(node) for node in nodes])

    async def _call_extender(self, verb: str, body: bytes | tuple[bytes, ...]) -> bytes:
        call = Call(
            "POST",
            f"{self._path}/{verb}",
            body=body,
            timeout_seconds=self._settings.timeout_seconds,
        )
        try:
            answer = await self._transport.request(call)
        except RefusedError as error:  # nothing was sent
            raise ExtenderError(
                f"{error}; is the extender running, and is its urlPrefix right?"
            ) from error
        except KubeconfigError as error:
            raise ExtenderError(str(error)) from error
        except TransportError as error:
            raise ExtenderSilentError(str(error)) from error
        if answer.status != _OK:
            raise ExtenderError(
                f"failed {verb} with extender at URL {self._url}/{verb}, code {answer.status}"
            )
        return answer.body


def _kept_bytes_max(question: bytes | tuple[bytes, ...] | None) -> int:
    """Return the longest answer that is kept for the next pod, in bytes.

    An honest answer is a part of the question, with a score or a reason for each node.
    """
    pieces = (question or b"",) if not isinstance(question, tuple) else question
    return sum(map(len, pieces)) + _KEPT_BYTES_MORE


class _Last(Generic[T]):
    """The last answer to a verb, decoded.

    Most answers about the next pod are the same: comparing a megabyte takes a thirtieth of the time
    of reading it.
    """

    def __init__(self) -> None:
        self._body = b""
        self._answer: T | None = None

    def decode_answer(self, body: bytes, read: Callable[[bytes], T], kept_bytes_max: int) -> T:
        """Read an answer; an answer equal to the last one is not read again, unless it is long."""
        answer = self._answer
        if answer is None or self._body != body:
            answer = read(body)
            if len(body) <= kept_bytes_max:
                self._body, self._answer = body, answer
        return answer


def _resources(pod: Pod) -> Iterator[Mapping[str, object]]:
    containers: list[Container] = [*pod.spec.init_containers, *pod.spec.containers]
    for container in containers:
        yield container.resources.requests
        yield container.resources.limits
