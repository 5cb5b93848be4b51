"""Scope: what a server has to import and to build for clients of each form."""

from __future__ import annotations

import subprocess
import sys

import pytest

SERVE = """
import asyncio, sys
from sandbox.tests.apiserver.harness import Cluster, NODES

async def serve():
    cluster = Cluster()
    reply = await cluster.reply("GET", NODES, accept=sys.argv[1])
    assert reply.status == 200

asyncio.run(serve())
print("google.protobuf" in sys.modules)
"""
THREADS = """
import threading
from moorage_sandbox.apiserver.protobuf.codec import encode

names = ["core.v1.Pod", "apps.v1.Deployment", "batch.v1.Job", "networking.v1.Ingress"] * 4
faults, start = [], threading.Barrier(len(names))

def write(name):
    start.wait()
    try:
        encode(f"k8s.io.api.{name}", {"metadata": {"name": "a"}})
    except BaseException as error:
        faults.append(error)

threads = [threading.Thread(target=write, args=(name,)) for name in names]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(faults)
"""


def _said(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("accept", "imported"),
    [
        pytest.param("application/json", "False", id="JSON"),
        pytest.param("application/vnd.kubernetes.protobuf", "True", id="protobuf"),
    ],
)
def test_the_runtime_is_imported_only_for_calls_in_protobuf(accept, imported):
    assert _said(SERVE, accept) == imported


def test_threads_may_load_the_same_packages_at_once():
    assert _said(THREADS) == "[]"
