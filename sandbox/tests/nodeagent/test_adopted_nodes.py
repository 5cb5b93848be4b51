"""Nodes that other clients made: which of them the agents play, by annotation or selector."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from moorage.base import aio
from sandbox.tests.nodeagent.memory_api import MemoryApi
from sandbox.tests.nodeagent.test_agents import pod
from sandbox.tests.nodeagent.test_deleted_nodes import adopting, made
from sandbox.tests.sandbox.process import Up


@pytest.mark.parametrize(
    ("annotations", "phase"),
    [
        pytest.param({"moorage.dev/played": "true"}, "Running", id="by moorage's annotation"),
        pytest.param({"kwok.x-k8s.io/node": "fake"}, "Running", id="by kwok's annotation"),
        pytest.param({"kwok.x-k8s.io/node": "real"}, "Pending", id="another value of it"),
    ],
)
def test_a_node_is_played_whose_annotation_asks_for_it(annotations, phase):
    async def scene(api: MemoryApi) -> None:
        api.put("nodes", made(**annotations))
        api.put("pods", pod(node="extra"))
        await aio.sleep(10)
        assert api.get("pods", "web")["status"]["phase"] == phase
        leased = ("leases", "kube-node-lease", "extra") in api.objects
        assert leased == (phase == "Running")
        labels = api.get("nodes", "extra", "")["metadata"].get("labels", {})
        assert ("kubernetes.io/hostname" in labels) == leased
        assert "topology.kubernetes.io/region" not in labels, "its maker knows where it is"

    adopting(scene)


@pytest.mark.slow
def test_nodes_of_others_are_played_by_a_selector(tmp_path):
    with Up(tmp_path, "--nodes", "1", "--empty", "-o", "json") as up:
        up.until('"type":"ready"')
        node = made("theirs")
        node["metadata"]["annotations"] = {}
        node["metadata"]["labels"] = {"type": "theirs"}

        def run(*words: str) -> str:
            command = [*up.command[:-1], *words, "--kubeconfig", str(up.kubeconfig)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        (tmp_path / "node.json").write_text(json.dumps(node))
        run("apply", "-f", str(tmp_path / "node.json"))
        words = [*up.command[:-1], "nodes", "--adopt", "type in (theirs)", "--kubeconfig"]
        with subprocess.Popen(
            [*words, str(up.kubeconfig)], stdout=subprocess.PIPE, text=True
        ) as playing:
            try:
                assert playing.stdout is not None
                line = playing.stdout.readline()
                assert line.startswith("0 nodes are registered at https://127.0.0.1:")
                assert "nodes with type in (theirs) are played" in line
                end = time.monotonic() + 20
                while not _is_ready(run("get", "nodes", "theirs", "-o", "json")):
                    assert time.monotonic() < end, "the node does not become ready"
            finally:
                playing.terminate()


def _is_ready(node: str) -> bool:
    conditions = json.loads(node)["status"].get("conditions", [])
    return ("Ready", "True") in {(each["type"], each["status"]) for each in conditions}
