"""A small HTTP extender of a scheduler, kube-scheduler's or moorage's, to copy and change.

It knows three things that no scheduler knows, all of them labels under ``example.com/``:

- ``maintenance: planned`` on a node: nothing new goes there (filter);
- ``power: green`` on a node: better than others (prioritize);
- ``keep: "true"`` on a pod: it is not to be evicted (preempt).

It binds as well, if it is asked to (bind). Sent whole objects, it needs nothing else; sent names
only (``nodeCacheCapable``), or asked to bind, it needs an API server.

Bodies and answers: kubernetes v1.36 ``staging/src/k8s.io/kube-scheduler/extender/v1/types.go``.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
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

Fault: TypeAlias = Literal["slow", "broken", "garbage", "silent", "lying"]
FAULTS: Mapping[Fault, str] = {
    "slow": "answers after the delay",
    "broken": "answers 500",
    "garbage": "answers something that is not JSON",
    "silent": "closes the connection without an answer",
    "lying": "names nodes and pods nobody asked about",
}

_BODY_BYTES_MAX = 256 * 1024 * 1024  # 15000 whole nodes are 60 MB
_BUFFER_BYTES = 4 * 1024 * 1024  # so much is read without a pause for whoever takes it


# --- what is asked: only what is read of it ---------------------------------------------------


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""
    labels: dict[str, str] = {}


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Split(msgspec.Struct, frozen=True):
    """Nodes as they were sent."""

    items: list[msgspec.Raw] = []


class _Nodes(msgspec.Struct, frozen=True):
    """Nodes as far as they are read."""

    items: list[_Object] = []


class _NodesAsked(msgspec.Struct, frozen=True, rename="pascal"):
    """Body of filter and prioritize: nodes as objects, or by name."""

    nodes: msgspec.Raw = msgspec.Raw(b"null")
    node_names: list[str] | None = None


class _Victims(msgspec.Struct, frozen=True, rename="pascal"):
    pods: list[_Object] = []


class _VictimIds(msgspec.Struct, frozen=True, rename={"pods": "Pods"}):
    pods: list[_Uid] = []


class _Uid(msgspec.Struct, frozen=True, rename={"uid": "UID"}):
    uid: str = ""


class _VictimsAsked(msgspec.Struct, frozen=True, rename="pascal"):
    """Body of preempt: victims as objects, or by uid."""

    node_name_to_victims: dict[str, _Victims] | None = None
    node_name_to_meta_victims: dict[str, _VictimIds] | None = None


class _BindAsked(msgspec.Struct, frozen=True, rename="pascal"):
    pod_name: str
    pod_namespace: str
    node: str
    pod_uid: str = msgspec.field(default="", name="PodUID")


_nodes_asked = msgspec.json.Decoder(_NodesAsked)
_nodes = msgspec.json.Decoder(_Nodes | None)
_split = msgspec.json.Decoder(_Split)
_victims_asked = msgspec.json.Decoder(_VictimsAsked)
_bind_asked = msgspec.json.Decoder(_BindAsked)


# --- what it knows --------------------------------------------------------------------------


class Cluster:
    """Labels of nodes and pods as the API server has them, and the verb to bind.

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
        self.nodes[node.name] = node.metadata.labels

    def _node_gone(self, node: Node) -> None:
        self.nodes.pop(node.name, None)

    def _pod_seen(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod.metadata.labels

    def _pod_gone(self, pod: Pod) -> None:
        self.pods.pop(pod.uid, None)

    async def follow(self) -> None:
        """Keep what is known in step with the server until cancelled."""
        await aio.together(self._of_nodes.run(), self._of_pods.run())

    async def synced(self) -> None:
        """Wait until everything is known."""
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


# --- what it answers ------------------------------------------------------------------------


class ExampleExtender:
    """The rules, one method for each verb: the bytes of a body in, a JSON value out.

    Parameters
    ----------
    cluster
        What it knows by itself; None: only what it is told.
    """

    def __init__(self, cluster: Cluster | None = None) -> None:
        self._cluster = cluster
        self._sent = b""
        self._read: Mapping[str, Mapping[str, str]] = {}

    async def filter(self, body: bytes) -> Any:
        """Refuse nodes that are about to be taken down."""
        asked = _nodes_asked.decode(body)
        labels_of = await self._labels_of(asked)
        refused = {
            name: f"maintenance of {name} is {labels[MAINTENANCE]}"
            for name, labels in labels_of.items()
            if MAINTENANCE in labels
        }
        left = [name for name in labels_of if name not in refused]
        return {
            **(_objects(asked, labels_of, refused) or {"NodeNames": left}),
            "FailedNodes": refused,
            "FailedAndUnresolvableNodes": {},
            "Error": "",
        }

    async def prioritize(self, body: bytes) -> Any:
        """Prefer nodes on green power."""
        labels_of = await self._labels_of(_nodes_asked.decode(body))
        return [
            {"Host": name, "Score": GREEN_SCORE if labels.get(POWER) == "green" else 0}
            for name, labels in labels_of.items()
        ]

    async def preempt(self, body: bytes) -> Any:
        """Leave out nodes where a pod would have to go that is to be kept."""
        asked = _victims_asked.decode(body)
        kept: dict[str, list[str]] = {}
        for node_name, victims in (asked.node_name_to_victims or {}).items():
            if not any(pod.metadata.labels.get(KEEP) == "true" for pod in victims.pods):
                kept[node_name] = [pod.metadata.uid for pod in victims.pods]
        for node_name, ids in (asked.node_name_to_meta_victims or {}).items():
            known = (await self._known()).pods
            if not any(known.get(pod.uid, {}).get(KEEP) == "true" for pod in ids.pods):
                kept[node_name] = [pod.uid for pod in ids.pods]
        return {
            "NodeNameToMetaVictims": {
                node_name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
                for node_name, uids in kept.items()
            }
        }

    async def bind(self, body: bytes) -> Any:
        """Bind the pod."""
        asked = _bind_asked.decode(body)
        pod = ObjectReference(namespace=asked.pod_namespace, name=asked.pod_name, uid=asked.pod_uid)
        await (await self._known()).bind(pod, asked.node)
        return {"Error": ""}

    async def _labels_of(self, asked: _NodesAsked) -> Mapping[str, Mapping[str, str]]:
        """Return the labels of the nodes asked about, in order.

        Nodes are many and change seldom: the last ones sent are remembered.
        """
        if asked.node_names is not None:
            known = (await self._known()).nodes
            return {name: known.get(name, {}) for name in asked.node_names}
        sent = bytes(asked.nodes)
        if sent != self._sent:
            nodes = _nodes.decode(sent) or _Nodes()
            found = (node.metadata for node in nodes.items)
            self._sent, self._read = sent, {each.name: each.labels for each in found}
        return self._read

    async def _known(self) -> Cluster:
        if self._cluster is None:
            raise UsageError("only names were sent, or a binding is asked for: use --kubeconfig")
        await self._cluster.synced()
        return self._cluster


def _objects(asked: _NodesAsked, names: Iterable[str], refused: Collection[str]) -> dict[str, Any]:
    """Return the nodes to send back as they came, nothing if only names were sent."""
    if asked.node_names is not None:
        return {}
    if not refused:
        return {"Nodes": asked.nodes}
    items = zip(names, _split.decode(asked.nodes).items, strict=True)
    return {"Nodes": {"metadata": {}, "items": [raw for name, raw in items if name not in refused]}}


# --- the server -----------------------------------------------------------------------------


class ExtenderServer:
    """Answers ``POST /filter``, ``/prioritize``, ``/preempt`` and ``/bind``; ``GET /stats`` counts.

    Parameters
    ----------
    extender
        The rules.
    fault, delay_seconds
        How it misbehaves, to see what a scheduler makes of that; None: not at all.
    """

    def __init__(
        self, extender: ExampleExtender, *, fault: Fault | None = None, delay_seconds: float = 0.0
    ) -> None:
        self._verbs: dict[str, Callable[[bytes], Awaitable[Any]]] = {
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
        app = web.Application(client_max_size=_BODY_BYTES_MAX)
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
        body = await request.read()
        if self._fault is not None:
            return await self._misbehave(request, verb, body)
        return await self._told(verb, body)

    async def _told(self, verb: str, body: bytes) -> web.Response:
        try:
            value = await self._verbs[verb](body)
        except (msgspec.DecodeError, MoorageError) as problem:
            if verb == "prioritize":  # the only answer without a place for an error
                return web.Response(status=500, text=str(problem))
            value = {"Error": str(problem)}
        return web.Response(body=msgspec.json.encode(value), content_type="application/json")

    def _note(self, verb: str, request: web.Request) -> None:
        self.calls[verb] += 1
        if request.transport is not None:
            self._connections[id(request.transport)] = request.transport

    async def _stats(self, request: web.Request) -> web.Response:
        del request
        told = {"calls": dict(sorted(self.calls.items())), "connections": len(self._connections)}
        return web.json_response(told)

    async def _misbehave(self, request: web.Request, verb: str, body: bytes) -> web.StreamResponse:
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
        return await self._told(verb, body)


_LIES: Mapping[str, Any] = {
    "filter": {"NodeNames": ["nowhere"], "Nodes": {"items": [{"metadata": {"name": "nowhere"}}]}},
    "prioritize": [{"Host": "nowhere", "Score": 2**62}],
    "preempt": {"NodeNameToMetaVictims": {"nowhere": {"Pods": [{"UID": "nobody"}]}}},
    "bind": {"Error": ""},
}
