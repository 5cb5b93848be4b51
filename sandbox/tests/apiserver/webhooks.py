"""Webhooks for tests: configurations, a sender without a network, and a server with TLS."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

from moorage_sandbox.apiserver.webhooks.answers import HookError, Question
from sandbox.tests.apiserver.harness import Cluster

GROUP = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{GROUP}/mutatingwebhookconfigurations"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations"
ANY = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
CONFIG_MAPS_ONLY = ANY | {"apiGroups": [""], "resources": ["configmaps"]}

Reply = Callable[[dict[str, Any]], Any]
"""Returns the response to the request of a review, whole reviews or bytes; it may wait."""


def hook(name: str = "a.example.com", **fields: Any) -> dict[str, Any]:
    """Return a webhook for config maps at ``https://NAME/``."""
    return {
        "name": name,
        "clientConfig": {"url": f"https://{name}/"},
        "rules": [CONFIG_MAPS_ONLY],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    } | fields


def configuration(*hooks: dict[str, Any], name: str = "hooks") -> dict[str, Any]:
    """Return a configuration of webhooks."""
    return {"metadata": {"name": name}, "webhooks": list(hooks)}


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """Return a response with a JSON patch."""
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def add(key: str, value: Any) -> dict[str, Any]:
    """Return an operation that sets a key of the data of a config map."""
    return {"op": "add", "path": f"/data/{key}", "value": value}


class Programs:
    """Programs that answer reviews, by host; a `Sender` without a network."""

    def __init__(self, **replies: Reply) -> None:
        self.replies = {f"{name}.example.com": reply for name, reply in replies.items()}
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def asked(self, name: str) -> list[dict[str, Any]]:
        """Return the requests that a program has had."""
        return [request for host, request in self.requests if host == f"{name}.example.com"]

    async def send_review(self, question: Question, body: bytes, seconds: float) -> bytes:
        """Answer a review."""
        host, review = question.endpoint.host, json.loads(body)
        self.requests.append((host, review["request"]))
        reply = self.replies.get(host)
        if reply is None:
            raise HookError("connection refused")
        try:
            async with asyncio.timeout(seconds):
                answer = reply(review["request"])
                if isinstance(answer, Awaitable):
                    answer = await answer
        except TimeoutError:
            raise HookError("no answer in time") from None
        return answer if isinstance(answer, bytes) else _whole(review, answer)


def _whole(review: dict[str, Any], response: dict[str, Any]) -> bytes:
    uid = {"uid": review["request"]["uid"]}
    kind = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
    return json.dumps(kind | {"response": uid | response}).encode()


def allow(request: dict[str, Any]) -> dict[str, Any]:
    """Allow a write."""
    return {"allowed": True}


def cluster_with(programs: Programs) -> Cluster:
    """Return a cluster whose webhooks are these programs."""
    cluster = Cluster()
    cluster.server.use_sender(programs)
    return cluster
