"""The group ``metrics.k8s.io``: the use of nodes and pods, as a metrics server reports it.

Place in the flow: `server` calls this module before its resources. ``kubectl top`` and autoscalers
ask. Nothing is measured: a running container uses the amount in an annotation of its pod, or its
request. Mirrors kubernetes-sigs/metrics-server v0.8 and k8s.io/metrics v1.36, ``v1beta1``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

import msgspec

from moorage.api.quantity import from_nano, parse_quantity
from moorage.api.resources import NODES, PODS, ResourceType, group_version_path
from moorage.api.selectors import Selector, parse_field_selector, parse_label_selector
from moorage.api.usage import NODE_METRICS, POD_METRICS
from moorage.base.aio import sleep
from moorage.base.clock import rfc3339
from moorage.kinds.kind import Obj
from moorage.kinds.status import bad_request, method_not_allowed, not_found
from moorage_sandbox.apiserver.kubelet.measured import Usage, added, pod_usage
from moorage_sandbox.apiserver.wire.negotiate import Form, negotiate
from moorage_sandbox.apiserver.wire.render import encode
from moorage_sandbox.apiserver.wire.requests import Query, Reply, Request
from moorage_sandbox.apiserver.wire.table import partial_metadata
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record

METRICS: Final = (NODE_METRICS, POD_METRICS)
"""The kinds that are answered here."""

_BASE: Final = group_version_path(POD_METRICS.group, POD_METRICS.version)
_WINDOW: Final = "15s"  # a metrics server's resolution
_TABLE: Final[Obj] = {
    "kind": "Table",
    "apiVersion": "meta.k8s.io/v1",
    "metadata": {},
    "columnDefinitions": [
        {"name": name, "type": "string", "format": form, "description": about, "priority": 0}
        for name, form, about in (
            ("Name", "name", "Name of the resource"),
            ("cpu", "quantity", ""),
            ("memory", "quantity", ""),
            ("Window", "duration", ""),
        )
    ],
}
"""The columns of metrics-server v0.8 (pkg/api/table.go)."""

# How many pods are looked at between two chances for other tasks (a guess: about a millisecond).
_BATCH: Final = 100


class _Subject(msgspec.Struct, frozen=True):
    resource: ResourceType
    namespace: str
    name: str


class ResourceMetrics:
    """Answers calls for measurements.

    Parameters
    ----------
    world
        The resources of the server, which include nodes and pods.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    def answer_metrics(self, request: Request) -> Reply | None:
        """Answer a call; None when it is not about measurements.

        Raises
        ------
        StatusError
            400: a selector cannot be read. 404: no such node, or no running pod of this name.
            405: another method than GET, or a watch.
        """
        subject = _subject_of(request.path)
        if subject is None:
            return None
        query = Query(request.query)
        if request.method != "GET" or query.flag("watch"):
            raise method_not_allowed()
        accept = request.headers.get("accept", "")
        table = negotiate(accept).form is Form.TABLE
        if subject.name:
            found = self._one(subject)
            shown = {**_TABLE, "rows": [_row(found)]} if table else found
            return Reply(status=200, body=encode(shown) + b"\n")
        labels, name = _selectors(query)
        chosen = [
            record
            for record in self._records(subject)
            if (labels is None or labels.matches(record.labels)) and name in ("", record.name)
        ]
        return Reply(status=200, body=self._list(subject.resource, chosen, table=table))

    def _records(self, subject: _Subject) -> Iterable[Record]:
        stored = NODES if subject.resource is NODE_METRICS else PODS
        return self._world.store.shelf(stored.qualified).records(subject.namespace)

    def _one(self, subject: _Subject) -> Obj:
        stored = NODES if subject.resource is NODE_METRICS else PODS
        record = self._world.store.shelf(stored.qualified).get((subject.namespace, subject.name))
        if record is not None and subject.resource is NODE_METRICS:
            return self._node(record, [each for each in self._pods() if _is_on(each, record.name)])
        usage = pod_usage(record) if record is not None else None
        if record is None or usage is None:
            name = f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name
            raise not_found(subject.resource, name)
        return self._pod(record, usage)

    async def _list(
        self, resource: ResourceType, chosen: list[Record], *, table: bool
    ) -> AsyncIterator[bytes]:
        """Yield a list in chunks; other tasks may run between two chunks."""
        head: Obj = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
        head = _TABLE if table else head | {"metadata": {}}
        yield encode(head)[:-1] + (b',"rows":[' if table else b',"items":[')
        shown = _row if table else _itself
        separator = b""
        by_node: dict[str, list[Record]] = {}
        if resource is NODE_METRICS:
            for each in self._pods():
                by_node.setdefault(each.fields.get("spec.nodeName", ""), []).append(each)
        for batch in _batches(chosen, by_node):
            items = []
            for record in batch:
                if resource is NODE_METRICS:
                    items.append(encode(shown(self._node(record, by_node.get(record.name, [])))))
                elif (usage := pod_usage(record)) is not None:
                    items.append(encode(shown(self._pod(record, usage))))
            if items:
                yield separator + b",".join(items)
                separator = b","
            await sleep(0)
        yield b"]}\n"

    def _pods(self) -> Iterator[Record]:
        return self._world.store.shelf(PODS.qualified).records()

    def _node(self, record: Record, pods: list[Record]) -> Obj:
        usages = [found for found in map(pod_usage, pods) if found is not None]
        total = added([each for usage in usages for each in usage.values()])
        return self._object(NODE_METRICS, record) | {"usage": _usage_text(total)}

    def _pod(self, record: Record, usage: dict[str, Usage]) -> Obj:
        containers = [{"name": name, "usage": _usage_text(used)} for name, used in usage.items()]
        return self._object(POD_METRICS, record) | {"containers": containers}

    def _object(self, resource: ResourceType, record: Record) -> Obj:
        now = rfc3339(self._world.clock.now_ns())
        metadata: Obj = {"name": record.name, "creationTimestamp": now}
        if record.namespace:
            metadata["namespace"] = record.namespace
        if record.labels:
            metadata["labels"] = dict(record.labels)
        return {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": metadata,
            "timestamp": now,
            "window": _WINDOW,
        }


def _subject_of(path: str) -> _Subject | None:
    """Return the subject of a path of the group; None for other paths and the group itself."""
    head, found, rest = path.partition(f"{_BASE}/")
    if head or not found:
        return None
    match rest.strip("/").split("/"):
        case ["nodes"]:
            return _Subject(NODE_METRICS, "", "")
        case ["nodes", name]:
            return _Subject(NODE_METRICS, "", name)
        case ["pods"]:
            return _Subject(POD_METRICS, "", "")
        case ["namespaces", namespace, "pods"]:
            return _Subject(POD_METRICS, namespace, "")
        case ["namespaces", namespace, "pods", name]:
            return _Subject(POD_METRICS, namespace, name)
    return None


def _selectors(query: Query) -> tuple[Selector | None, str]:
    """Return the label selector, and the only name that a field selector selects."""
    text, fields = query.text("labelSelector"), query.text("fieldSelector")
    try:
        labels = parse_label_selector(text) if text else None
        parsed = parse_field_selector(fields) if fields else []
    except ValueError as error:
        raise bad_request(str(error)) from error
    name = ""
    for path, operator, value in parsed:
        if (path, operator) != ("metadata.name", "="):
            raise bad_request(f"field label not supported: {path}; only metadata.name=NAME is")
        name = value
    return labels, name


def _batches(chosen: list[Record], by_node: dict[str, list[Record]]) -> Iterator[list[Record]]:
    """Split records so that each part looks at about `_BATCH` pods."""
    batch: list[Record] = []
    cost = 0
    for record in chosen:
        batch.append(record)
        cost += 1 + len(by_node.get(record.name, ()))
        if cost >= _BATCH:
            yield batch
            batch, cost = [], 0
    if batch:
        yield batch


def _is_on(record: Record, node: str) -> bool:
    return record.fields.get("spec.nodeName") == node


def _itself(obj: Obj) -> Obj:
    return obj


def _row(obj: Obj) -> Obj:
    """Return a row of a Table; a pod uses what its containers use together."""
    usages = [obj["usage"]] if "usage" in obj else [each["usage"] for each in obj["containers"]]
    total = _usage_text(
        added([{each: parse_quantity(used[each]) for each in used} for used in usages])
    )
    cells = [obj["metadata"]["name"], total["cpu"], total["memory"], obj["window"]]
    return {"cells": cells, "object": partial_metadata(obj)}


def _usage_text(usage: Usage) -> dict[str, str]:
    return {
        "cpu": from_nano(usage["cpu"], binary=False),
        "memory": from_nano(usage["memory"], binary=True),
    }
