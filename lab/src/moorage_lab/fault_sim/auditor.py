"""A reader of the server's watch without faults: every change must be told once, in order."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import decode_untyped
from moorage.api.resources import PODS, ResourceType
from moorage.base import aio
from moorage.client import requests
from moorage_lab.fault_sim.served import Served
from moorage_sandbox.cluster.in_process import InProcessTransport

_AGAIN_SECONDS = 0.01


class Auditor:
    """Watches one kind from the first version on, and compares in the end.

    Parameters
    ----------
    api
        The server.
    resource
        The kind.
    """

    def __init__(self, api: Served, resource: ResourceType = PODS) -> None:
        self._transport = InProcessTransport(api, latency_seconds=0, user_agent="auditor")
        self._api = api
        self._resource = resource
        self._objects: dict[tuple[str, str], str] = {}
        self.faults: list[str] = []
        self._version = 0

    async def run(self) -> None:
        """Read the watch until cancelled, from where the last one ended."""
        while True:
            call = requests.watch(
                self._resource,
                requests.Selection(),
                resource_version=str(self._version),
                timeout_seconds=3600,
            )
            async with self._transport.stream(call) as lines:
                if lines.status < 400:  # else the server has lost its disk, and is about to end
                    async for line in lines:
                        self._take_event(decode_untyped(line))
            await aio.sleep(_AGAIN_SECONDS)  # a server that is being closed ends it at once

    def _take_event(self, event: Any) -> None:
        kind, obj = event["type"], event["object"]
        if kind == "BOOKMARK":
            return
        if kind == "ERROR":  # the server has forgotten its history, which is a fault of a script
            self._version = self._api.store.published_version
            self._objects = self._stored(self._version)
            return
        meta = obj["metadata"]
        key, version = (meta["namespace"], meta["name"]), int(meta["resourceVersion"])
        if version <= self._version:
            self.faults.append(f"{kind} of {key} has version {version} after {self._version}")
        self._version = version
        if (kind == "ADDED") != (key not in self._objects):
            self.faults.append(f"{kind} of {key}, which was {'not ' * (kind != 'ADDED')}there")
        if kind == "DELETED":
            self._objects.pop(key, None)
        else:
            self._objects[key] = meta["resourceVersion"]

    def differences(self) -> list[str]:
        """Return what the watch told wrongly, and where it differs from the store now."""
        wrong = sorted(
            set(self._stored(self._api.store.published_version).items())
            ^ set(self._objects.items())
        )
        return [*self.faults, *(f"the watch and the store differ in {each}" for each in wrong[:3])]

    def _stored(self, version: int) -> dict[tuple[str, str], str]:
        """Return the versions of all objects at a version that was told."""
        records = self._api.store.records_at(self._resource.qualified, version)
        assert records is not None, "the log begins at a version that was told, or before"
        metas = [record.decode()["metadata"] for record in records]
        return {(meta["namespace"], meta["name"]): meta["resourceVersion"] for meta in metas}
