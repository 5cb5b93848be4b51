"""The objects that the null server has from the start, as a server sends them: streamed or paged.

A running pod has about 3 KB. What the pods of one workload share is written once for each workload;
name, uid, node, address, times, one annotation and the name of the token's volume are a pod's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import parse_qs

import msgspec

from moorage.api.codec import encode
from moorage_lab.bench.path.running_pod import running_pod
from moorage_lab.bench.workload import JsonObject, default_node, default_pod

_REPLICAS: Final = 30
"""Pods of a workload: 150,000 pods belong to 5000 workloads."""
_BLOCK: Final = 64
"""Objects of a stream that are written at once."""
_PODS: Final = b"/api/v1/pods"
_NODES: Final = b"/api/v1/nodes"
_ADDED: Final = b'{"type":"ADDED","object":%s}\n'
_BOOKMARK: Final = (
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1",'
    b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)
_NO_STREAMS: Final = (
    b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message"'
    b':"sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"}'
)
_EMPTY: Final = b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}'


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the cluster at the start.

    Parameters
    ----------
    nodes
        Number of nodes.
    running
        Number of pods that run on them.
    waiting
        Number of pods that have no node yet; they come after the others.
    streams
        Whether a list in the form of a watch is answered; else lists come in pages only.
    """

    nodes: int
    running: int = 0
    waiting: int = 0
    streams: bool = True

    def refusal(self, target: bytes) -> bytes:
        """Return the answer to a watch that is not served; empty if the watch is served."""
        return b"" if self.streams or b"sendInitialEvents=true" not in target else _NO_STREAMS

    def stream(self, target: bytes) -> Iterator[bytes]:
        """Yield the lines that a watch begins with, some at a time."""
        if b"sendInitialEvents=true" not in target:
            return
        objects, count = self._objects(target)
        for first in range(0, count, _BLOCK):
            last = min(first + _BLOCK, count)
            yield b"".join([_ADDED % objects(index) for index in range(first, last)])
        yield _BOOKMARK

    def page(self, target: bytes) -> bytes:
        """Return the page of a list that a call asks for."""
        query = parse_qs(target.partition(b"?")[2].decode())
        objects, count = self._objects(target)
        if not count:
            return _EMPTY
        first, limit = int(query.get("continue", "0")[0]), int(query.get("limit", "0")[0])
        last = min(first + limit, count) if limit else count
        rest = b',"continue":"%d"' % last if last < count else b""
        items = b",".join([objects(index) for index in range(first, last)])
        return (
            b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"%s},"items":[%s]}'
            % (rest, items)
        )

    def _objects(self, target: bytes) -> tuple[Callable[[int], bytes], int]:
        path = target.partition(b"?")[0]
        if path == _NODES:
            return _node, self.nodes
        if path == _PODS:
            return _pods(self), self.running + self.waiting
        return _node, 0


def _node(index: int) -> bytes:
    node = default_node(index)
    node["metadata"] |= {"resourceVersion": "1", "uid": f"node-{index}"}
    return encode(node)


def _pods(standing: Standing) -> Callable[[int], bytes]:
    """Return what makes the pod of an index; the text of a workload is kept for its next pod."""
    shared, text = -1, b""

    def pod(index: int) -> bytes:
        nonlocal shared, text
        if index >= standing.running:
            return encode(_waiting(index))
        if index // _REPLICAS != shared:
            shared = index // _REPLICAS
            text = encode(running_pod(shared))
        passed, node = divmod(index, standing.nodes)
        own = {
            b"name": b"app-%d-%06d" % (shared, index),
            b"uid": b"%08x-0000-4000-8000-%012x" % (index, index),
            b"node": b"scheduler-perf-%d" % node,
            b"address": b"10.%d.%d.%d" % (index >> 16 & 255, index >> 8 & 255, index & 255),
            b"host": b"192.168.%d.%d" % (node >> 8 & 255, node & 255),
            b"time": b"2026-01-%02dT%02d:%02d:%02dZ"
            % (1 + passed % 28, index % 24, index % 60, index // 60 % 60),
            b"version": b"%d" % (index + 2),
            b"token": b"%05x" % index,
        }
        return text % own

    return pod


def _waiting(index: int) -> JsonObject:
    pod = default_pod("waiting")(index)
    pod["metadata"] |= {"uid": f"waiting-{index}", "resourceVersion": "1"}
    pod["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    pod["spec"]["schedulerName"] = "default-scheduler"
    pod["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    return pod
