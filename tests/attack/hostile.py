"""An API server that sends what it likes: lists, watch lines and answers changed at random.

`HostileServer` is a transport. It keeps the objects that are so (`put`, `remove`) and sends them
truly. Between them it sends any other bytes (`say`). What is bound through it is noted in `bound`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from moorage.base import aio
from moorage.client.transport import Answer, Call, LineStream

Manifest = dict[str, Any]
_MISSING: Manifest = {"kind": "Status", "code": 404}
Garble = Callable[[Call, Answer], Answer]


def _unchanged(call: Call, answer: Answer) -> Answer:
    del call
    return answer


class HostileServer:
    """A transport to a server of which a test decides each word.

    Attributes
    ----------
    garble
        Changes the answers of calls, lists included.
    streams
        Whether a list in the form of a watch is answered; otherwise the objects are listed plainly.
    bound
        Pod name -> node, for every binding that was taken.
    """

    def __init__(self) -> None:
        self.garble: Garble = _unchanged
        self.streams = True
        self.bound: dict[str, str] = {}
        self._objects: dict[str, dict[tuple[str, str], Manifest]] = {}
        self._extra: dict[str, list[bytes]] = {}
        self._open: dict[str, list[asyncio.Queue[bytes | None]]] = {}
        self._version = 100

    # --- what a test does -----------------------------------------------------------------------

    def put(self, plural: str, obj: Manifest) -> None:
        """Make an object, or change it, and say so."""
        self._version += 1
        meta = {"uid": f"uid-{plural}-{obj['metadata']['name']}", **obj["metadata"]}
        obj = {**obj, "metadata": {**meta, "resourceVersion": str(self._version)}}
        key = meta.get("namespace", ""), meta["name"]
        known = key in self._objects.setdefault(plural, {})
        self._objects[plural][key] = obj
        self._tell(plural, "MODIFIED" if known else "ADDED", obj)

    def remove(self, plural: str, namespace: str, name: str) -> None:
        """Remove an object, and say so."""
        self._tell(plural, "DELETED", self._objects[plural].pop((namespace, name)))

    def say(self, plural: str, line: bytes) -> None:
        """Send bytes as the next line of the kind's watch."""
        for queue in self._open.get(plural, []):
            queue.put_nowait(line)

    def list_too(self, plural: str, items: list[bytes]) -> None:
        """Send these objects in each list of the kind, beside the true ones."""
        self._extra[plural] = items

    def cut(self, plural: str) -> None:
        """End the kind's watch, so that the kind is listed anew."""
        gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        self.say(plural, json.dumps({"type": "ERROR", "object": gone}).encode())

    def watched(self, plural: str) -> bool:
        """Whether somebody is watching the kind."""
        return bool(self._open.get(plural))

    def _tell(self, plural: str, event: str, obj: Manifest) -> None:
        self.say(plural, json.dumps({"type": event, "object": obj}).encode())

    # --- the transport --------------------------------------------------------------------------

    async def request(self, call: Call) -> Answer:
        """Answer a call, garbled."""
        await aio.sleep(0)
        return self.garble(call, self._answer(call))

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        """Answer a watch."""
        await aio.sleep(0)
        plural, initial = _plural(call), "sendInitialEvents" in dict(call.query)
        if initial and not self.streams:
            yield _Lines(422, [b'{"kind":"Status","code":422}'], None)
            return
        lines = self._initial(plural) if initial else []
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._open.setdefault(plural, []).append(queue)
        try:
            yield _Lines(200, lines, queue)
        finally:
            self._open[plural].remove(queue)

    async def close(self) -> None:
        """End every watch."""
        for queues in self._open.values():
            for queue in queues:
                queue.put_nowait(None)

    def _initial(self, plural: str) -> list[bytes]:
        raw = [b'{"type":"ADDED","object":' + each + b"}" for each in self._items(plural)]
        end = {"resourceVersion": str(self._version)} | {
            "annotations": {"k8s.io/initial-events-end": "true"}
        }
        bookmark = {"type": "BOOKMARK", "object": {"metadata": end}}
        return [*raw, json.dumps(bookmark).encode()]

    def _items(self, plural: str) -> list[bytes]:
        true = [json.dumps(each).encode() for each in self._objects.get(plural, {}).values()]
        return [*self._extra.get(plural, []), *true]

    def _answer(self, call: Call) -> Answer:
        parts = call.path.split("/")
        if parts[-1] == "binding" and call.method == "POST":
            return self._bind(parts[-4], parts[-2], json.loads(call.whole_body)["target"]["name"])
        if call.method != "GET":
            return _json(200, json.loads(call.whole_body or b"{}"))
        if parts[-2] == "pods" or parts[-2] == "leases":
            found = self._objects.get(parts[-2], {}).get((parts[-3], parts[-1]))
            return _json(404, _MISSING) if found is None else _json(200, found)
        head = b'{"kind":"List","metadata":{"resourceVersion":"%d"},"items":[' % self._version
        return Answer(200, {}, head + b",".join(self._items(parts[-1])) + b"]}")

    def _bind(self, namespace: str, name: str, node: str) -> Answer:
        pod = self._objects.get("pods", {}).get((namespace, name))
        if pod is not None and not pod["spec"].get("nodeName"):
            self.bound[name] = node
            self.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": node}})
        return _json(201, {"kind": "Status", "status": "Success"})


class _Lines:
    def __init__(
        self, status: int, lines: list[bytes], queue: asyncio.Queue[bytes | None] | None
    ) -> None:
        self._lines, self._queue = lines, queue
        self.status = status
        self.headers: Mapping[str, str] = {}

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for line in self._lines:
            yield line
        while self._queue is not None:
            said = await self._queue.get()
            if said is None:
                return
            yield said


def _plural(call: Call) -> str:
    return call.path.rsplit("/", 1)[1]


def _json(status: int, body: Manifest) -> Answer:
    return Answer(status, {}, json.dumps(body).encode())
