"""A sandbox in a Python program or test: ``from moorage import Sandbox``.

The cluster runs in processes of its own, as ``moorage up`` starts it. It ends with the ``with``
block, and with the program however that ends: then no reader is left for its output.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

import msgspec

from moorage.api.codec import decode_untyped, encode, from_dict
from moorage.api.manifest_text import object_texts
from moorage.api.pod import Pod
from moorage.api.resources import PODS, by_kind
from moorage.base.aio import TaskOwner
from moorage.base.clock import SystemClock
from moorage.base.errors import DecodeError, MoorageError, UsageError
from moorage.base.rng import Streams
from moorage.base.running_sandboxes import find
from moorage.client import requests
from moorage.client.http_transport import HttpTransport
from moorage.client.kubeconfig import find_access
from moorage.client.status import error_from_answer
from moorage.client.writes import Client
from moorage_sandbox.sandbox.processes.children import Child
from moorage_sandbox.sandbox.progress import state_of
from moorage_sandbox.sandbox.watching import settled_within, watched

T = TypeVar("T")

Objects: TypeAlias = "str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]"
"""A YAML text, a file, one object, or several."""

_APPLY = "application/apply-patch+yaml"
_START_SECONDS = 60.0
# `moorage up` ends everything within two seconds.
_GRACE_SECONDS = 5.0


class PodRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, and where it is.

    Parameters
    ----------
    namespace, name
        The pod's name.
    phase
        ``Pending``, ``Running``, ...
    state
        ``pending``, ``gated``, ``unschedulable``, ``bound``, ``running`` or ``finished``.
    node
        The pod's node; "" for none.
    message
        Why the pod has no node; "" if it has one, or was not tried yet.
    scheduler
        The pod's ``schedulerName``.
    """

    namespace: str
    name: str
    phase: str
    state: str
    node: str = ""
    message: str = ""
    scheduler: str = ""


class AsyncSandbox:
    """A running sandbox, for coroutines; `Sandbox` starts it.

    Parameters
    ----------
    folder
        Directory of its kubeconfig, of its own.
    arguments
        Arguments of ``moorage up``.
    """

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self.kubeconfig = folder / "kubeconfig"
        """Path of the kubeconfig."""
        self.url = ""
        """Address of the API server."""
        self._clock = SystemClock()
        self._messages: list[str] = []
        command = [sys.executable, "-m", "moorage", "up", "-o", "json", *arguments]
        command += ["--kubeconfig-out", str(self.kubeconfig)]
        self._child = Child(
            "sandbox",
            command,
            on_error_line=self._messages.append,
            grace_seconds=_GRACE_SECONDS,
        )
        self._tasks = TaskOwner(on_failure=lambda _name, _error: None)
        self._ready = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self._transport: HttpTransport | None = None

    async def start(self) -> None:
        """Start; returns when pods are scheduled.

        Raises
        ------
        MoorageError
            It does not start; the message is what ``moorage up`` says.
        """
        await self._child.start()
        reading = self._reading = self._tasks.spawn(
            self._read_watch(), name="read the sandbox's lines"
        )
        ready = self._tasks.spawn(self._wait_ready(), name="wait until it is ready")
        await asyncio.wait({reading, ready}, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.is_set():
            await self.stop()
            raise MoorageError("\n".join(self._messages) or "the sandbox does not start")
        access = find_access(str(self.kubeconfig), clock=self._clock)
        self._transport = HttpTransport(access, user_agent="moorage-python")

    async def stop(self) -> None:
        """End everything; idempotent."""
        if self._transport is not None:
            await self._transport.close()
            self._transport = None
        await self._child.stop()
        await self._tasks.cancel_all()

    async def wait_settled(self, seconds: float = 60.0) -> None:
        """Wait until every pod is bound, or its condition says why not.

        Pods that have a node are given up to 10 s to start.

        Raises
        ------
        MoorageError
            The time is over, or the sandbox has ended.
        """
        record = find(self.kubeconfig)
        served = None if record is None else record.served
        async with watched(self.kubeconfig, served, clock=self._clock) as progress:
            await settled_within(progress, seconds, check=self._check)

    async def apply(self, objects: Objects) -> None:
        """Create objects, or change them, by server-side apply.

        Raises
        ------
        UsageError
            The text is no YAML, or an object has no kind that the sandbox knows.
        ApiError
            The server refuses an object.
        """
        for obj in _objects(objects):
            await self._apply(obj)

    async def pods(self, namespace: str = "") -> list[PodRecord]:
        """Return the pods by name, of one namespace or of all."""
        listed: Any = (await self._client().list(PODS))["items"]
        records = [
            _record(from_dict(Pod, each))
            for each in listed
            if namespace in {"", each["metadata"]["namespace"]}
        ]
        return sorted(records, key=lambda each: (each.namespace, each.name))

    async def _apply(self, obj: Mapping[str, Any]) -> None:
        metadata = obj.get("metadata") or {}
        kind, version = str(obj.get("kind", "")), str(obj.get("apiVersion", ""))
        resource = by_kind(kind, version)
        if resource is None or not metadata.get("name"):
            raise UsageError(f"{version} {kind}: no built-in kind, or no metadata.name")
        namespace = metadata.get("namespace") or "default" if resource.namespaced else ""
        call = requests.patch(
            resource, metadata["name"], encode(obj), namespace=namespace, content_type=_APPLY
        )
        path = f"{call.path}?fieldManager=moorage-sandbox&force=true"
        assert self._transport is not None, "a sandbox that runs has a connection"
        answer = await self._transport.request(msgspec.structs.replace(call, path=path))
        if answer.status >= 300:
            raise error_from_answer(answer)

    def _client(self) -> Client:
        assert self._transport is not None, "a sandbox that runs has a connection"
        return Client(self._transport, rng=Streams().stream("sandbox"))

    def _check(self) -> None:
        if self._reading is None or self._reading.done():
            raise MoorageError("\n".join(self._messages) or "the sandbox has ended")

    async def _read_watch(self) -> None:
        async for line in self._child.lines():
            found = msgspec.json.decode(line)
            if found["type"] == "started":
                self.url = found["url"]
            elif found["type"] == "ready":
                self._ready.set()

    async def _wait_ready(self) -> None:
        async with asyncio.timeout(_START_SECONDS):
            await self._ready.wait()


class Sandbox:
    """A cluster of its own for a ``with`` block; with ``async with``, an `AsyncSandbox`.

    Parameters
    ----------
    nodes
        Number of fake nodes, of 8 cpu and 32Gi each.
    config
        File of a KubeSchedulerConfiguration; None for the defaults.
    plugins
        Plugins, as ``moorage up --plugin`` takes them: ``file.py:name``.
    samples
        Whether to create the thirty pods of ``moorage up``.
    seed
        Seed of all random choices; the same seed gives the same placements.
    arguments
        Further arguments of ``moorage up``: ``("--rbac",)``.
    """

    def __init__(
        self,
        *,
        nodes: int = 3,
        config: str | Path | None = None,
        plugins: Sequence[str] = (),
        samples: bool = False,
        seed: int = 1,
        arguments: Sequence[str] = (),
    ) -> None:
        self._arguments = [*arguments]
        if "--nodes-from" not in self._arguments:
            self._arguments += ["--nodes", str(nodes)]
        self._arguments += ["--seed", str(seed), *([] if samples else ["--empty"])]
        if config is not None:
            self._arguments += ["--config", str(config)]
        for plugin in plugins:
            self._arguments += ["--plugin", plugin]
        self._opened: AbstractAsyncContextManager[AsyncSandbox] | None = None
        self._inner: AsyncSandbox | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def kubeconfig(self) -> Path:
        """Path of the kubeconfig."""
        return self._running().kubeconfig

    @property
    def url(self) -> str:
        """Address of the API server."""
        return self._running().url

    def wait_settled(self, seconds: float = 60.0) -> None:
        """Wait until every pod is bound, or its condition says why not."""
        self._run_in_loop(lambda inner: inner.wait_settled(seconds))

    def apply(self, objects: Objects) -> None:
        """Create objects, or change them: a YAML text, a file, one object or several."""
        self._run_in_loop(lambda inner: inner.apply(objects))

    def pods(self, namespace: str = "") -> list[PodRecord]:
        """Return the pods by name, of one namespace or of all."""
        return self._run_in_loop(lambda inner: inner.pods(namespace))

    def __enter__(self) -> Self:
        """Start the cluster; returns when pods are scheduled."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._inner = self._run(self.__aenter__())
        except BaseException:
            self._end_loop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the cluster."""
        try:
            self._run(self.__aexit__())
        finally:
            self._end_loop()

    async def __aenter__(self) -> AsyncSandbox:
        """Start the cluster in the loop that runs."""
        self._opened = _opened(self._arguments)
        return await self._opened.__aenter__()

    async def __aexit__(self, *_: object) -> None:
        """End the cluster."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.__aexit__(None, None, None)

    def _running(self) -> AsyncSandbox:
        if self._inner is None:
            raise UsageError("this sandbox does not run: with Sandbox() as sandbox: ...")
        return self._inner

    def _run_in_loop(self, work: Callable[[AsyncSandbox], Coroutine[Any, Any, T]]) -> T:
        return self._run(work(self._running()))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None, "a sandbox that runs has a loop"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        assert self._loop is not None, "ended once"
        assert self._thread is not None, "ended once"
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._inner = self._loop = self._thread = None


@asynccontextmanager
async def _opened(arguments: Sequence[str]) -> AsyncIterator[AsyncSandbox]:
    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        sandbox = AsyncSandbox(Path(folder), arguments)
        try:
            await sandbox.start()
            yield sandbox
        finally:
            await sandbox.stop()


def _objects(objects: Objects) -> list[Mapping[str, Any]]:
    if isinstance(objects, str):
        text = objects.encode()
    else:
        text = objects.read_bytes() if isinstance(objects, Path) else encode(objects)
    try:
        return [decode_untyped(each) for _, each in object_texts(text)]
    except DecodeError as error:
        raise UsageError(str(error)) from error


def _record(pod: Pod) -> PodRecord:
    state, message = state_of(pod)
    return PodRecord(
        namespace=pod.namespace,
        name=pod.name,
        phase=pod.status.phase,
        state=state.value,
        node=pod.spec.node_name,
        message=message,
        scheduler=pod.spec.scheduler_name,
    )
