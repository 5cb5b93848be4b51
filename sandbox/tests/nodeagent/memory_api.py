"""An API server of a few lines, enough for agents: objects, versions, watches, merge patches."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from moorage.client.transport import Answer, Call, LineStream

_PATH = re.compile(
    r"^(?P<base>/api/v1|/apis/[^/]+/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?$"
)
_MERGE_KEYS = {"conditions": "type", "podIPs": "ip", "hostIPs": "ip", "addresses": "type"}

Key = tuple[str, str, str]  # plural, namespace, name


class MemoryApi:
    """The Transport of a server that lives in a dict."""

    def __init__(self) -> None:
        self.objects: dict[Key, dict[str, Any]] = {}
        self.log: list[tuple[int, str, str, dict[str, Any]]] = []
        self.calls: list[str] = []
        self.changed = asyncio.Event()
        self.fail_next: list[Answer] = []
        self._version = 0

    # --- for tests ---------------------------------------------------------------------------

    def put(self, plural: str, obj: dict[str, Any], *, event: str = "") -> dict[str, Any]:
        """Store an object as some other client would."""
        metadata = obj.setdefault("metadata", {})
        key = (plural, metadata.get("namespace", ""), metadata["name"])
        self._version += 1
        metadata.setdefault("uid", f"uid-{metadata['name']}-{self._version}")
        metadata["resourceVersion"] = str(self._version)
        kind = event or ("MODIFIED" if key in self.objects else "ADDED")
        self.objects[key] = obj
        self._tell(plural, kind, obj)
        return obj

    def change(self, plural: str, namespace: str, name: str, patch: dict[str, Any]) -> None:
        self._merge_into((plural, namespace, name), patch)

    def get(self, plural: str, name: str, namespace: str = "default") -> dict[str, Any]:
        return self.objects[(plural, namespace, name)]

    # --- Transport ---------------------------------------------------------------------------

    async def request(self, call: Call) -> Answer:
        self.calls.append(f"{call.method} {call.path}")
        if self.fail_next:
            return self.fail_next.pop(0)
        found = _PATH.match(call.path)
        if found is None:
            return _answer(200, {})
        key = (found["plural"], found["namespace"] or "", found["name"] or "")
        body = msgspec.json.decode(call.whole_body) if call.body else {}
        if call.method == "POST":
            key = (key[0], key[1], body["metadata"]["name"])
            if key in self.objects:
                return _failure(409, "AlreadyExists")
            return _answer(201, self.put(key[0], body))
        if key not in self.objects:
            return _failure(404, "NotFound")
        if call.method == "PATCH":
            for condition in ("uid", "resourceVersion"):
                asked = body.get("metadata", {}).pop(condition, None)
                if asked not in {None, self.objects[key]["metadata"][condition]}:
                    return _failure(409, "Conflict")
            return _answer(200, self._merge_into(key, body))
        if call.method == "DELETE":
            uid = body.get("preconditions", {}).get("uid")
            if uid not in {None, self.objects[key]["metadata"]["uid"]}:
                return _failure(409, "Conflict")
            return _answer(200, self._delete(key))
        return _answer(200, self.objects[key])

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        self.calls.append(f"{call.method} {call.path}")
        found = _PATH.match(call.path)
        assert found
        query = dict(call.query)
        bound_only = query.get("fieldSelector") == "spec.nodeName!="
        yield _Watch(self, found["plural"], bound_only=bound_only)

    async def close(self) -> None:
        """Nothing to close."""

    # --- the store ---------------------------------------------------------------------------

    def _merge_into(self, key: Key, patch: dict[str, Any]) -> dict[str, Any]:
        merged = _merge(self.objects[key], patch)
        return self.put(key[0], merged)

    def _delete(self, key: Key) -> dict[str, Any]:
        gone = self.objects.pop(key)
        self._version += 1
        gone = copy.deepcopy(gone)
        gone["metadata"]["resourceVersion"] = str(self._version)
        self._tell(key[0], "DELETED", gone)
        return gone

    def _tell(self, plural: str, event: str, obj: dict[str, Any]) -> None:
        self.log.append((self._version, plural, event, copy.deepcopy(obj)))
        self.changed.set()
        self.changed = asyncio.Event()


class _Watch:
    """A streaming list followed by everything that happens."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, api: MemoryApi, plural: str, *, bound_only: bool) -> None:
        self._api = api
        self._plural = plural
        self._bound_only = bound_only

    async def __aiter__(self) -> AsyncIterator[bytes]:
        position = len(self._api.log)
        for (plural, _, _), obj in sorted(self._api.objects.items()):
            if plural == self._plural and self._selected(obj):
                yield msgspec.json.encode({"type": "ADDED", "object": obj})
        end = {
            "resourceVersion": str(self._api._version),
            "annotations": {"k8s.io/initial-events-end": "true"},
        }
        yield msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": end}})
        while True:
            changed = self._api.changed
            for _, plural, event, obj in self._api.log[position:]:
                if plural == self._plural and self._selected(obj):
                    yield msgspec.json.encode({"type": event, "object": obj})
            position = len(self._api.log)
            if changed is self._api.changed:
                await changed.wait()

    def _selected(self, obj: dict[str, Any]) -> bool:
        return not self._bound_only or bool(obj.get("spec", {}).get("nodeName"))


def _merge(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return patch
    result = copy.deepcopy(old)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif key in _MERGE_KEYS and isinstance(value, list):
            name = _MERGE_KEYS[key]
            merged = {item[name]: item for item in result.get(key, [])}
            for item in value:
                if item.get("$patch") == "delete":
                    merged.pop(item[name], None)
                    continue
                merged[item[name]] = _merge(merged.get(item[name], {}), item)
            result[key] = list(merged.values())
        else:
            result[key] = _merge(result.get(key, {}), value)
    return result


def _answer(status: int, value: Any) -> Answer:
    return Answer(status, {}, msgspec.json.encode(value))


def _failure(code: int, reason: str) -> Answer:
    return _answer(code, {"kind": "Status", "code": code, "reason": reason, "message": reason})
