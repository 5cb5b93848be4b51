"""Scope: what kubectl 1.36.3 sends in protobuf, recorded once, written by Kubernetes' own Go code.

``kubectl_bodies.json`` has each command with the body it sent, in base 64, in the order typed.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from moorage.apiserver.negotiate import PROTOBUF
from moorage.apiserver.protobuf.envelope import read_object, write_object
from tests.apiserver.harness import Cluster

RECORDED: list[dict[str, str]] = json.loads(
    Path(__file__).with_name("kubectl_bodies.json").read_text()
)
ACCEPT = f"{PROTOBUF},application/json"


def body_of(recorded: dict[str, str]) -> bytes:
    return base64.b64decode(recorded["body"])


def ids(recorded: dict[str, str]) -> str:
    return recorded["command"]


@pytest.mark.parametrize("recorded", RECORDED, ids=ids)
def test_a_body_read_and_written_again_is_the_same_bytes(recorded):
    body = body_of(recorded)
    assert write_object(read_object(body, ("", ""))) == body


async def test_every_body_is_taken_and_answered_like_the_same_in_json():
    in_protobuf, in_json = Cluster(), Cluster()
    for recorded in RECORDED:
        body = body_of(recorded)
        method, path = recorded["method"], recorded["path"]
        reply = await in_protobuf.reply(method, path, body, content_type=PROTOBUF, accept=ACCEPT)
        assert (reply.status, reply.content_type) == (201, PROTOBUF), recorded["command"]
        assert isinstance(reply.body, bytes)
        expected = await in_json.ok(method, path, read_object(body, ("", "")))
        found = read_object(reply.body, ("", ""))
        assert _told(found) == _told(expected), recorded["command"]


def _told(obj: Any) -> Any:
    """Return what JSON tells a Go client: neither nulls nor empty structs differ from nothing."""
    if isinstance(obj, dict):
        told = {key: _told(value) for key, value in obj.items() if key not in _BY_CHANCE}
        return {key: value for key, value in told.items() if value not in (None, {}, [], 0, "")}
    return [_told(each) for each in obj] if isinstance(obj, list) else obj


# Drawn by each server.
_BY_CHANCE = ("uid", "token", "controller-uid")


def test_what_a_deployment_says():
    assert read_object(body_of(RECORDED[0]), ("", "")) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {
                            "name": "nginx",
                            "image": "nginx:1",
                            "ports": [{"containerPort": 80}],
                            "resources": {},
                        }
                    ]
                },
            },
            "strategy": {},
        },
        "status": {},
    }
