"""A small HTTP extender of a scheduler, kube-scheduler's or moorage's, to copy and change.

The extender acts on three labels under ``example.com/`` that schedulers ignore:

- ``maintenance: planned`` on a node: the node takes no new pods (filter);
- ``power: green`` on a node: the node is preferred (prioritize);
- ``keep: "true"`` on a pod: the pod is not to be evicted (preempt).

The extender also binds pods on request (bind). With whole objects in its calls it needs no API
server. With names only (``nodeCacheCapable``), and to bind, it needs one API server.

Bodies and answers: kubernetes v1.36 ``staging/src/k8s.io/kube-scheduler/extender/v1/types.go``.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec
from aiohttp import web

from moorage.api.meta import ObjectReference
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError, UsageError
from moorage.base.rng import Streams
from moorage.client.follow import Follower
from moorage.client.reflector import Reflector
from moorage.client.transport import Transport
from moorage.client.writes import Client

MAINTENANCE = "example.com/maintenance"
POWER = "example.com/power"
KEEP = "example.com/keep"
GREEN_SCORE = 10  # the most an extender gives; the scheduler multiplies it by the weight

Body: TypeAlias = Sequence[bytes]
"""A body as received pieces: joining a megabyte takes longer than all other work on it."""

Fault: TypeAlias = Literal["slow", "broken", "garbage", "silent", "lying"]
FAULTS: Mapping[Fault, str] = {
    "slow": "answers after the delay",
    "broken": "answers 500",
    "garbage": "answers something that is not JSON",
    "silent": "closes the connection without an answer",
    "lying": "names nodes and pods nobody asked about",
}

_BODY_BYTES_MAX = 256 * 1024 * 1024  # 15000 whole nodes are 60 MB
_BUFFER_BYTES = 4 * 1024 * 1024  # bytes read before the reader pauses


# --- questions: only the fields that are read -------------------------------------------------


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""
    labels: dict[str, str] = {}


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Split(msgspec.Struct, frozen=True):
    """Nodes as received."""

    items: list[msgspec.Raw] = []


class _Nodes(msgspec.Struct, frozen=True):
    """The fields of nodes that are read."""

    items: list[_Object] = []


class _NodesQuestion(msgspec.Struct, frozen=True, rename="pascal"):
    """Body of filter and prioritize: nodes as objects, or by name."""

    pod: msgspec.Raw = msgspec.Raw(b"null")
    nodes: msgspec.Raw = msgspec.Raw(b"null")
    node_names: list[str] | None = None


class _Victims(msgspec.Struct, frozen=True, rename="pascal"):
    pods: list[_Object] = []


class _VictimIds(msgspec.Struct, frozen=True, rename={"pods": "Pods"}):
    pods: list[_Uid] = []


class _Uid(msgspec.Struct, frozen=True, rename={"uid": "UID"}):
    uid: str = ""


class _VictimsQuestion(msgspec.Struct, frozen=True, rename="pascal"):
    """Body of preempt: victims as objects, or by uid."""

    node_name_to_victims: dict[str, _Victims] | None = None
    node_name_to_meta_victims: dict[str, _VictimIds] | None = None


class _BindQuestion(msgspec.Struct, frozen=True, rename="pascal"):
    pod_name: str
    pod_namespace: str
    node: str
    pod_uid: str = msgspec.field(default="", name="PodUID")


_POD = b'{"Pod":'  # how questions of kube-scheduler and of moorage begin
_nodes_asked = msgspec.json.Decoder(_NodesQuestion)
_nodes = msgspec.json.Decoder(_Nodes | None)
_split = msgspec.json.Decoder(_Split)
_victims_asked = msgspec.json.Decoder(_VictimsQuestion)
_bind_asked = msgspec.json.Decoder(_BindQuestion)


# --- the cluster ----------------------------------------------------------------------------


class Cluster:
    """Labels of nodes and pods from the API server, and the verb to bind.

    Parameters
    ----------
    transport
        To the API server; closed by its owner.
    clock, streams
        Time and randomness of retries.
    """

    def __init__(self, transport: Transport, *, clock: Clock, streams: Streams) -> None:
        rng = streams.stream("extender")
        self._client = Client(transport, rng=rng)
        self.nodes: dict[str, Mapping[str, str]] = {}
        self.pods: dict[str, Mapping[str, str]] = {}
        self.changes = 0
        """Number of times that the labels of a node have changed."""
        self._of_nodes = Reflector(
            transport,
            NODES,
            Node,
            handler=Follower(self._node_seen, self._node_gone),
            clock=clock,
            rng=rng,
        )
        self._of_pods = Reflector(
            transport,
            PODS,
            Pod,
            handler=Follower(self._pod_seen, self._pod_gone),
            clock=clock,
            rng=rng,
        )

    def _node_seen(self, node: Node) -> None:
        if self.nodes.get(node.name) != node.metadata.labels:
            self.nodes[node.name] = node.metadata.labels
            self.changes += 1

    def _node_gone(self, node: Node) -> None:
        self.nodes.pop(node.name, None)
        self.changes += 1

    def _pod_seen(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod.metadata.labels

    def _pod_gone(self, pod: Pod) -> None:
        self.pods.pop(pod.uid, None)

    async def follow(self) -> None:
        """Keep the labels up to date with the server until cancelled."""
        await aio.together(self._of_nodes.run(), self._of_pods.run())

    async def synced(self) -> None:
        """Wait until all labels have been read."""
        await self._of_nodes.synced.wait()
        await self._of_pods.synced.wait()

    async def bind(self, pod: ObjectReference, node_name: str) -> None:
        """Bind a pod.

        Raises
        ------
        MoorageError
            The server refused, or did not answer.
        """
        await self._client.bind(pod, node_name=node_name)


# --- answers --------------------------------------------------------------------------------


class ExampleExtender:
    """The rules, one method for each verb: a body in, the bytes of an answer out.

    Parameters
    ----------
    cluster
        Its own view of the cluster; None if it uses only the objects in its calls.
    """

    def __init__(self, cluster: Cluster | None = None) -> None:
        self._cluster = cluster
        self._look: tuple[bytes, int, _Look] | None = None

    async def filter(self, body: Body) -> bytes:
        """Refuse nodes that are about to be taken down."""
        return (await self._look_at(body)).filtered

    async def prioritize(self, body: Body) -> bytes:
        """Prefer nodes on green power."""
        return (await self._look_at(body)).scores

    async def preempt(self, body: Body) -> bytes:
        """Leave out nodes where a pod labelled to be kept would be a victim."""
        question = _victims_asked.decode(b"".join(body))
        uids_by_node: dict[str, list[str]] = {}
        for node_name, victims in (question.node_name_to_victims or {}).items():
            if not any(pod.metadata.labels.get(KEEP) == "true" for pod in victims.pods):
                uids_by_node[node_name] = [pod.metadata.uid for pod in victims.pods]
        for node_name, ids in (question.node_name_to_meta_victims or {}).items():
            known = (await self._known()).pods
            if not any(known.get(pod.uid, {}).get(KEEP) == "true" for pod in ids.pods):
                uids_by_node[node_name] = [pod.uid for pod in ids.pods]
        left = {
            node_name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
            for node_name, uids in uids_by_node.items()
        }
        return msgspec.json.encode({"NodeNameToMetaVictims": left})

    async def bind(self, body: Body) -> bytes:
        """Bind the pod."""
        asked = _bind_asked.decode(b"".join(body))
        pod = ObjectReference(namespace=asked.pod_namespace, name=asked.pod_name, uid=asked.pod_uid)
        await (await self._known()).bind(pod, asked.node)
        return _error("")

    async def _look_at(self, body: Body) -> _Look:
        """Return the answers about the nodes of a question.

        The answers do not depend on the pod, which comes first in a question. Nodes are many and
        change seldom, so a question that ends like the last one is neither joined nor decoded.
        """
        changes = 0 if self._cluster is None else self._cluster.changes
        if self._look is not None:
            end, known, look = self._look
            if known == changes and _ends_like(body, end):
                return look
        whole = b"".join(body)
        asked = _nodes_asked.decode(whole)
        look = _Look(asked.nodes, asked.node_names, await self._labels_of(asked))
        head = _POD + bytes(asked.pod)
        self._look = (whole[len(head) :], changes, look) if whole.startswith(head) else None
        return look

    async def _labels_of(self, question: _NodesQuestion) -> Mapping[str, Mapping[str, str]]:
        """Return the labels of the nodes asked about, in order."""
        if question.node_names is not None:
            known = (await self._known()).nodes
            return {name: known.get(name, {}) for name in question.node_names}
        nodes = _nodes.decode(question.nodes) or _Nodes()
        return {node.metadata.name: node.metadata.labels for node in nodes.items}

    async def _known(self) -> Cluster:
        if self._cluster is None:
            raise UsageError("only names were sent, or a binding is asked for: use --kubeconfig")
        await self._cluster.synced()
        return self._cluster


def _ends_like(body: Body, end: bytes) -> bool:
    """Whether a question begins with a pod and then continues like another question."""
    if not body or not body[0].startswith(_POD):
        return False
    left = len(end)
    for piece in reversed(body):
        if len(piece) >= left:
            return piece.endswith(end[:left])
        left -= len(piece)
        if not end.startswith(piece, left):
            return False
    return False


class _Look:
    """The answers about some nodes, as JSON.

    Parameters
    ----------
    nodes
        The list of nodes as received; null if only names were sent.
    names
        The names if only names were sent.
    labels_of
        Labels by node name, in the order of the question.
    """

    def __init__(
        self,
        nodes: msgspec.Raw,
        names: Sequence[str] | None,
        labels_of: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._nodes = nodes.copy()  # not the pod next to it
        self._by_name = names is not None
        self._labels_of = labels_of

    @cached_property
    def filtered(self) -> bytes:
        """The answer to filter."""
        refused = {
            name: f"maintenance of {name} is {labels[MAINTENANCE]}"
            for name, labels in self._labels_of.items()
            if MAINTENANCE in labels
        }
        answer = {
            **self._without(refused),
            "FailedNodes": refused,
            "FailedAndUnresolvableNodes": {},
            "Error": "",
        }
        return msgspec.json.encode(answer)

    @cached_property
    def scores(self) -> bytes:
        """The answer to prioritize."""
        answer = [
            {"Host": name, "Score": GREEN_SCORE if labels.get(POWER) == "green" else 0}
            for name, labels in self._labels_of.items()
        ]
        return msgspec.json.encode(answer)

    def _without(self, refused: Collection[str]) -> dict[str, Any]:
        """Return the other nodes, in the form received."""
        if self._by_name:
            return {"NodeNames": [name for name in self._labels_of if name not in refused]}
        if not refused:
            return {"Nodes": self._nodes}
        items = zip(self._labels_of, _split.decode(self._nodes).items, strict=True)
        left = [raw for name, raw in items if name not in refused]
        return {"Nodes": {"metadata": {}, "items": left}}


def _error(text: str) -> bytes:
    return msgspec.json.encode({"Error": text})


# --- the server -----------------------------------------------------------------------------


class ExtenderServer:
    """Answers ``POST /filter``, ``/prioritize``, ``/preempt`` and ``/bind``; ``GET /stats`` counts.

    Parameters
    ----------
    extender
        The rules.
    fault, delay_seconds
        How the server misbehaves, to test how a scheduler reacts; None: not at all.
    """

    def __init__(
        self, extender: ExampleExtender, *, fault: Fault | None = None, delay_seconds: float = 0.0
    ) -> None:
        self._verbs: dict[str, Callable[[Body], Awaitable[bytes]]] = {
            "filter": extender.filter,
            "prioritize": extender.prioritize,
            "preempt": extender.preempt,
            "bind": extender.bind,
        }
        self._fault = fault
        self._delay_seconds = delay_seconds
        self._runner: web.AppRunner | None = None
        self.calls: Counter[str] = Counter()
        self._connections: dict[int, asyncio.BaseTransport] = {}

    async def start(
        self, *, address: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> str:
        """Listen; return the URL prefix.

        Raises
        ------
        UsageError
            The port cannot be listened on.
        """
        app = web.Application()
        app.router.add_post("/{verb}", self._answer)
        app.router.add_get("/stats", self._stats)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=1.0, read_bufsize=_BUFFER_BYTES
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, address, port, ssl_context=tls).start()
        except OSError as error:
            await self._runner.cleanup()
            raise UsageError(f"cannot listen on {address}:{port}: {error.strerror}") from error
        port = self._runner.addresses[0][1]
        return f"{'http' if tls is None else 'https'}://{address}:{port}"

    async def stop(self) -> None:
        """Stop listening; idempotent."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        verb = request.match_info["verb"]
        answer = self._verbs.get(verb)
        if answer is None:
            return web.json_response({"Error": f"no such verb: {verb}"}, status=404)
        self._note(verb, request)
        body = await _read(request)
        if self._fault is not None:
            return await self._misbehave(request, verb, body)
        return await self._answer_verb(verb, body)

    async def _answer_verb(self, verb: str, body: Body) -> web.Response:
        try:
            answer = await self._verbs[verb](body)
        except (msgspec.DecodeError, MoorageError) as problem:
            if verb == "prioritize":  # the only answer without a place for an error
                return web.Response(status=500, text=str(problem))
            answer = _error(str(problem))
        return web.Response(body=answer, content_type="application/json")

    def _note(self, verb: str, request: web.Request) -> None:
        self.calls[verb] += 1
        if request.transport is not None:
            self._connections[id(request.transport)] = request.transport

    async def _stats(self, request: web.Request) -> web.Response:
        del request
        told = {"calls": dict(sorted(self.calls.items())), "connections": len(self._connections)}
        return web.json_response(told)

    async def _misbehave(self, request: web.Request, verb: str, body: Body) -> web.StreamResponse:
        if self._fault == "broken":
            return web.Response(status=500, text="out of order")
        if self._fault == "garbage":
            return web.Response(text="<html>welcome</html>")
        if self._fault == "lying":
            return web.json_response(_LIES[verb])
        if self._fault == "silent":
            if request.transport is not None:
                request.transport.close()
            return web.StreamResponse()
        await aio.sleep(self._delay_seconds)
        return await self._answer_verb(verb, body)


async def _read(request: web.Request) -> Body:
    pieces, size = [], 0
    async for piece, _ in request.content.iter_chunks():
        pieces.append(piece)
        size += len(piece)
        if size > _BODY_BYTES_MAX:
            raise web.HTTPRequestEntityTooLarge(_BODY_BYTES_MAX, size)
    return pieces


_LIES: Mapping[str, Any] = {
    "filter": {"NodeNames": ["nowhere"], "Nodes": {"items": [{"metadata": {"name": "nowhere"}}]}},
    "prioritize": [{"Host": "nowhere", "Score": 2**62}],
    "preempt": {"NodeNameToMetaVictims": {"nowhere": {"Pods": [{"UID": "nobody"}]}}},
    "bind": {"Error": ""},
}
