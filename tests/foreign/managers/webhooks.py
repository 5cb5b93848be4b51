"""The webhooks of the operator of job sets: defaults, checks, and conversion of versions."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from moorage.base.certificates import Authority, server_context
from moorage.base.clock import SystemClock

SERVICE = "sets-webhook-service.sets-system.svc"


def _mutate(request: dict[str, Any]) -> dict[str, Any]:
    if "successPolicy" in request["object"]["spec"]:
        return {"allowed": True}
    policy = {"op": "add", "path": "/spec/successPolicy", "value": {"operator": "All"}}
    patch = base64.b64encode(json.dumps([policy]).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def _validate(request: dict[str, Any]) -> dict[str, Any]:
    if request["object"]["spec"]["replicas"] > 0:
        return {"allowed": True}
    return {"allowed": False, "status": {"message": "replicas must be positive"}}


def _convert(request: dict[str, Any]) -> dict[str, Any]:
    wanted = request["desiredAPIVersion"]
    before, after = ("jobs", "replicas") if wanted.endswith("/v1") else ("replicas", "jobs")
    for obj in request["objects"]:
        obj["apiVersion"] = wanted
        obj["spec"][after] = obj["spec"].pop(before)
    return {"convertedObjects": request["objects"], "result": {"status": "Success"}}


_ANSWERS = {"/mutate": _mutate, "/validate": _validate, "/convert": _convert}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review.pop("request")
        answer = _ANSWERS[self.path.partition("?")[0]](request)
        body = json.dumps(review | {"response": {"uid": request["uid"]} | answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name of the base)
        """Say nothing."""


@contextmanager
def serving_webhooks() -> Iterator[tuple[int, str]]:
    """Serve the webhooks; give the port, and the bundle of the authority as a chart has it."""
    authority = Authority(SystemClock())
    context = server_context(authority.server_pair([SERVICE]), authority.certificate)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, base64.b64encode(authority.certificate).decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
