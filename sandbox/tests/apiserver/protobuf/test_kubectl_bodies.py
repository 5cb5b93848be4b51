"""Scope: what kubectl 1.36.3 sends in protobuf, written by Kubernetes' own Go code."""

from __future__ import annotations

import pytest

from moorage_sandbox.apiserver.protobuf.envelope import read_object, write_object
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from sandbox.tests.apiserver.harness import Cluster
from sandbox.tests.apiserver.protobuf.recorded import RECORDED, Recorded, body_of, told

ACCEPT = f"{PROTOBUF},application/json"


def ids(recorded: Recorded) -> str:
    return recorded.command


@pytest.mark.parametrize("recorded", RECORDED, ids=ids)
def test_a_body_read_and_written_again_is_the_same_bytes(recorded):
    body = body_of(recorded)
    assert write_object(read_object(body, ("", ""))) == body


async def test_every_recorded_body_is_answered_like_its_json():
    in_protobuf, in_json = Cluster(), Cluster()
    for recorded in RECORDED:
        body = body_of(recorded)
        method, path = recorded.method, recorded.path
        reply = await in_protobuf.reply(method, path, body, content_type=PROTOBUF, accept=ACCEPT)
        assert (reply.status, reply.content_type) == (201, PROTOBUF), recorded.command
        assert isinstance(reply.body, bytes)
        expected = await in_json.ok(method, path, read_object(body, ("", "")))
        found = read_object(reply.body, ("", ""))
        assert told(found) == told(expected), recorded.command


def test_a_recorded_deployment_is_decoded_completely():
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
