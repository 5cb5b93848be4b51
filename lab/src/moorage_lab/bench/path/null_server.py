"""An API server that does nothing: it answers every call at once and shows a scripted cluster.

It runs in a process of its own, so that the processor time of the scheduler is the scheduler's
alone. `standing` has the objects of the start. Pods come when ``POST /null/start`` asks for them:
always as many as fit a window, or at a steady rate. The watch shows such a pod bound as soon as its
binding came. Of a lease the server keeps what was written last.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from moorage.api.codec import encode
from moorage.base import aio
from moorage.base.certificates import Authority, kubeconfig, server_context
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.process import Pace
from moorage_lab.bench.path.standing import Standing
from moorage_lab.bench.workload import default_pod
from moorage_sandbox.sandbox.processes.child_process import ChildProgram, program_of, run_child

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"
_HEAD: Final = b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_STREAM: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_STATUS: Final = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
_REFUSED: Final = b"HTTP/1.1 422 \r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_LEASES: Final = b"/apis/coordination.k8s.io/v1/"
_TICK_SECONDS: Final = 0.01
"""Interval in which pods of a steady rate come, several at once."""


class Script(msgspec.Struct, frozen=True):
    """The measured part of a run.

    Parameters
    ----------
    pods
        Number of pods.
    window
        Most pods without a node or without an Event at a time, below 1000.
    rate
        Pods a second; 0 keeps the window full.
    """

    pods: int
    window: int
    rate: float = 0.0


class Report(msgspec.Struct, frozen=True):
    """The calls since the script began, and the times from a pod's creation to its binding.

    Parameters
    ----------
    bindings, events, patches, others
        Numbers of calls.
    seconds
        From the first pod to the last binding.
    latencies_ns
        Of each pod, in the order of bindings; empty before the last binding.
    """

    bindings: int
    events: int
    patches: int
    others: int
    seconds: float
    latencies_ns: list[int]


class NullServer:
    """The state of the server: which pods have come and which have a node.

    Parameters
    ----------
    standing
        The objects of the start.
    clock
        Measures latencies.
    """

    def __init__(self, standing: Standing, clock: Clock) -> None:
        self.standing = standing
        self._clock = clock
        self._lease = b""
        self._template = default_pod("p")
        self._watch_pods: Callable[[bytes], None] | None = None
        self._script = Script(0, 0)
        self._created_ns: dict[str, int] = {}
        self._pod_count = 0
        self._version = 1
        self._began_ns = self._last_ns = 0
        self._latencies_ns: list[int] = []
        self._calls = {"bindings": 0, "events": 0, "patches": 0, "others": 0}
        self._pace: asyncio.Task[None] | None = None

    def answer_call(self, method: bytes, target: bytes, body: bytes) -> tuple[int, bytes]:
        """Return status and body of the answer to a call."""
        path, _, _ = target.partition(b"?")
        if method == b"POST" and path.endswith(b"/binding"):
            self._calls["bindings"] += 1
            self._bound(path.split(b"/")[-2].decode(), body)
            return 201, _STATUS
        if path.endswith(b"/events"):
            self._calls["events"] += 1
            self._fill()
            return 201, body
        if method == b"PATCH":
            self._calls["patches"] += 1
            return 200, b"{}"
        if path == b"/null/start":
            self._start(msgspec.json.decode(body, type=Script))
            return 200, b"{}"
        if path == b"/null/report":
            return 200, msgspec.json.encode(self._report())
        self._calls["others"] += 1
        if b"limit=" in target:
            return 200, self.standing.page(target)
        if path.startswith(_LEASES) and (body or self._lease):
            self._lease = body or self._lease
            return 201 if method == b"POST" else 200, self._lease
        if path == b"/version":
            return 200, b'{"major":"1","minor":"36","gitVersion":"v1.36.0"}'
        if path == b"/apis/events.k8s.io/v1":
            return 200, b'{"kind":"APIResourceList","groupVersion":"events.k8s.io/v1"}'
        return 404, b'{"kind":"Status","status":"Failure","reason":"NotFound","code":404}'

    def watch(self, target: bytes, send: Callable[[bytes], None]) -> Iterator[bytes]:
        """Begin a watch: yield the objects of the start; later changes are sent."""
        yield from self.standing.stream(target)
        if target.partition(b"?")[0] == b"/api/v1/pods":
            self._watch_pods = send

    def _start(self, script: Script) -> None:
        self._script, self._pod_count = script, 0
        self._calls = dict.fromkeys(self._calls, 0)
        self._latencies_ns.clear()
        self._began_ns = self._clock.monotonic_ns()
        if script.rate:
            self._pace = asyncio.get_running_loop().create_task(self._come_steadily())
        else:
            self._fill()

    async def _come_steadily(self) -> None:
        while self._pod_count < self._script.pods:
            passed_ns = self._clock.monotonic_ns() - self._began_ns
            due = min(int(self._script.rate * passed_ns / NS_PER_SECOND), self._script.pods)
            self._send_lines([self._new() for _ in range(due - self._pod_count)])
            await aio.sleep(_TICK_SECONDS)

    def _fill(self) -> None:
        """Have pods come in place of pods that have a node and an Event.

        The scheduler drops Events where too many wait, so a run without Events would look cheap.
        """
        script, under_way = self._script, self._pod_count - self._calls["events"]
        count = 0 if script.rate else min(script.window - under_way, script.pods - self._pod_count)
        self._send_lines([self._new() for _ in range(count)])

    def _send_lines(self, lines: list[bytes]) -> None:
        if lines:
            assert self._watch_pods is not None, "pods are watched before the script begins"
            self._watch_pods(b"".join(lines))

    def _new(self) -> bytes:
        pod = self._pod(self._pod_count)
        self._pod_count += 1
        self._created_ns[str(pod["metadata"]["name"])] = self._clock.monotonic_ns()
        return b'{"type":"ADDED","object":%s}\n' % encode(pod)

    def _pod(self, index: int) -> dict[str, dict[str, object]]:
        pod: dict[str, dict[str, object]] = self._template(index)
        self._version += 1
        name, namespace = f"p-{self._began_ns}-{index}", "default"
        pod["metadata"] |= {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": str(self._version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        pod["metadata"].pop("generateName", None)
        pod["spec"]["schedulerName"] = "default-scheduler"
        pod["status"] = {"phase": "Pending", "qosClass": "Burstable"}
        return pod

    def _bound(self, name: str, body: bytes) -> None:
        created_ns = self._created_ns.pop(name, None)
        if created_ns is None:
            return
        self._last_ns = self._clock.monotonic_ns()
        self._latencies_ns.append(self._last_ns - created_ns)
        node = msgspec.json.decode(body)["target"]["name"]
        pod = self._pod(int(name.rpartition("-")[2]))
        pod["spec"]["nodeName"] = node
        self._send_lines([b'{"type":"MODIFIED","object":%s}\n' % encode(pod)])

    def _report(self) -> Report:
        seconds = (self._last_ns - self._began_ns) / NS_PER_SECOND
        is_done = self._calls["bindings"] >= self._script.pods
        latencies_ns = self._latencies_ns if is_done else []
        return Report(**self._calls, seconds=seconds, latencies_ns=latencies_ns)


class _Connection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, server: NullServer) -> None:
        self._server = server
        self._received = b""
        self._transport: asyncio.WriteTransport | None = None
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._streams: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]  # uvloop's classes are its own

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        for task in self._streams:
            task.cancel()

    def pause_writing(self) -> None:
        self._has_room.clear()

    def resume_writing(self) -> None:
        self._has_room.set()

    def data_received(self, data: bytes) -> None:
        received = self._received + data
        while True:
            head, found, rest = received.partition(_END_OF_HEAD)
            if not found:
                break
            length = _length(head)
            if len(rest) < length:
                break
            self._handle_call(head, rest[:length])
            received = rest[length:]
        self._received = received

    def _handle_call(self, head: bytes, body: bytes) -> None:
        assert self._transport is not None, "connected"
        method, target, _ = head.partition(b"\r\n")[0].split(b" ")
        if b"watch=true" in target:
            if refusal := self._server.standing.refusal(target):
                self._transport.write(_REFUSED % len(refusal) + refusal)
                return
            self._transport.write(_STREAM)
            task = asyncio.get_running_loop().create_task(self._stream(target))
            self._streams.add(task)
            task.add_done_callback(self._streams.discard)
            return
        status, answer = self._server.answer_call(method, target, body)
        self._transport.write(_HEAD % (status, len(answer)) + answer)

    async def _stream(self, target: bytes) -> None:
        """Send the start of a watch as fast as it is read."""
        for lines in self._server.watch(target, self._chunk):
            self._chunk(lines)
            await self._has_room.wait()

    def _chunk(self, lines: bytes) -> None:
        assert self._transport is not None, "connected"
        self._transport.write(b"%x\r\n%s\r\n" % (len(lines), lines))


def _length(head: bytes) -> int:
    at = head.lower().find(_LENGTH)
    return 0 if at < 0 else int(head[at + len(_LENGTH) :].partition(b"\r\n")[0])


class NullServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a null server's process.

    Parameters
    ----------
    standing
        The objects of the start.
    kubeconfig
        The file that the server writes once it answers.
    pace
        The speed of its time.
    """

    standing: Standing
    kubeconfig: Path
    pace: Pace = Pace()


def null_server_program(standing: Standing, kubeconfig: Path) -> ChildProgram:
    """Return the program of a null server: this module, with its settings."""
    return program_of(
        "moorage_lab.bench.path.null_server",
        NullServerSettings(standing=standing, kubeconfig=kubeconfig),
    )


async def _serve(settings: NullServerSettings, clock: Clock) -> None:
    """Serve until cancelled; the kubeconfig is written once calls are answered."""
    authority, state = Authority(clock), NullServer(settings.standing, clock)
    context = server_context(authority.server_pair(), authority.certificate)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(state), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    text = kubeconfig(
        f"https://127.0.0.1:{port}",
        authority_certificate=authority.certificate,
        client=authority.client_pair(),
    )
    written = settings.kubeconfig.with_suffix(".new")
    written.write_text(text)
    written.rename(settings.kubeconfig)
    await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(run_child(NullServerSettings, _serve, name="null server"))
