"""A server without a network, and calls to it in a word; time that moves only when told to."""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.rng import Streams
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.wire.requests import Reply, Request, User
from moorage_sandbox.apiserver.world import GIT_VERSION, GIT_VERSION_1_37
from moorage_sandbox.storage.watch_log import Limits

T = TypeVar("T")
ADMIN = User("kubernetes-admin", ("system:masters",))
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class Cluster:
    """An `ApiServer` with the objects of a new cluster and a clock to turn."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        clock: Any = None,
        bootstrapped: bool = True,
        rbac: bool = False,
        of_1_37: bool = False,
    ) -> None:
        self.clock = clock or ManualClock()
        kinds = served_kinds(of_1_37=of_1_37)
        self.server = ApiServer(
            kinds,
            clock=self.clock,
            streams=Streams(1),
            limits=limits,
            rbac=rbac,
            git_version=GIT_VERSION_1_37 if of_1_37 else GIT_VERSION,
        )
        if bootstrapped:
            self.bootstrap()

    def bootstrap(self) -> None:
        """Make the objects of a new cluster."""
        bootstrap(self.server)

    async def reply(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, str] | None = None,
        user: User | None = ADMIN,
        **headers: str,
    ) -> Reply:
        """Make a call; header names are keywords with underscores for hyphens."""
        data = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if data:
            sent.setdefault("content-type", "application/json")
        return await self.server.handle(
            Request(
                method=method,
                path=path,
                query=tuple((query or {}).items()),
                headers=sent,
                body=data,
                user=user,
            )
        )

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Make a call and return (HTTP status, decoded body)."""
        reply = await self.reply(method, path, body, **options)
        assert isinstance(reply.body, bytes)
        return reply.status, json.loads(reply.body)

    async def ok(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Make a call that must succeed and return the decoded body."""
        status, found = await self.call(method, path, body, **options)
        assert status in {200, 201}, found
        return found

    async def names(self, path: str, **query: str) -> list[str]:
        """List, and return the names found."""
        found = await self.ok("GET", path, query=query)
        return [item["metadata"]["name"] for item in found["items"]]

    async def watch(self, path: str, *, accept: str = "", **query: str) -> Watch:
        """Open a watch."""
        options: dict[str, Any] = {"accept": accept} if accept else {}
        reply = await self.reply("GET", path, query={"watch": "true", **query}, **options)
        assert not isinstance(reply.body, bytes), reply.body
        return Watch(reply.body)


def unowned(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object without ``managedFields``.

    Answers to writes, lists and watches have notes there in place of the entries of a GET.
    """
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return obj | {"metadata": meta}


async def clear_managers(cluster: Cluster, path: str) -> None:
    """Clear the managers of an object, which then has none until its first apply."""
    cleared: Any = {"metadata": {"managedFields": [{}]}}
    found = await cluster.ok("PATCH", path, cleared, content_type=MERGE)
    assert "managedFields" not in found["metadata"]


class Watch:
    """Reads a watch stream event by event."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._lines: list[bytes] = []

    async def event(self) -> dict[str, Any]:
        """Return the next event whole."""
        if not self._lines:
            chunk = await anext(self._chunks)
            assert chunk.endswith(b"\n"), "chunks are whole lines"
            self._lines = chunk.splitlines()
        found: dict[str, Any] = json.loads(self._lines.pop(0))
        return found

    async def seen(self, count: int) -> list[tuple[str, str]]:
        """Return the next events as (type, name)."""
        events = [await self.event() for _ in range(count)]
        return [(each["type"], each["object"]["metadata"].get("name", "")) for each in events]

    async def ended(self) -> bool:
        """Whether the stream ends now, without another event."""
        try:
            await self.event()
        except StopAsyncIteration:
            return True
        return False

    async def close(self) -> None:
        """Hang up."""
        close = getattr(self._chunks, "aclose", None)
        assert close is not None
        await close()


def _encoded(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return b"" if body is None else json.dumps(body).encode()


def pod(name: str = "a", *, node: str = "", labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a small valid pod."""
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "nginx:1"}]}
    if node:
        spec["nodeName"] = node
    meta: dict[str, Any] = {"name": name}
    if labels:
        meta["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def config_map(name: str = "a", **data: str) -> dict[str, Any]:
    """Return a config map: the plainest object there is."""
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def namespace(name: str) -> dict[str, Any]:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def binding(name: str = "a", node: str = "n1", **meta: Any) -> dict[str, Any]:
    """Return a Binding of a pod to a node."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": "default", **meta},
        "target": {"kind": "Node", "name": node},
    }


def failure(
    code: int, reason: str, message: str, details: Any = None
) -> tuple[int, dict[str, Any]]:
    """Return what `Cluster.call` returns for a refusal."""
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if details is not None:
        body["details"] = details
    return code, body


class _JumpingSelector(selectors.SelectSelector):
    """Never waits: it moves the loop's time to when it would have woken."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing is left to wait for: the test hangs"
        self.loop.clock.advance(max(0.0, timeout))
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on a `ManualClock`, which jumps when there is nothing else to do."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.clock.monotonic_ns() / NS_PER_SECOND + 1e-9


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine under virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def virtual_clock() -> ManualClock:
    """Return the clock of the running virtual loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.clock
