"""One sandbox for every client that needs a whole cluster, and a namespace for each test."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest

from sandbox.tests.sandbox.process import Up

# Untyped, as its users see it.
kube: Any = kubernetes


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    # One of the clients writes an elastic quota, whose kind comes with this configuration.
    config = str(Path(__file__).parents[2] / "examples/profiles/elastic-quota.yaml")
    words = ("--nodes", "3", "--empty", "--seed", "1", "--config", config)
    with Up(tmp_path_factory.mktemp("hello"), *words) as up:
        yield up.started()


@pytest.fixture(scope="session")
def api(sandbox: Up) -> Iterator[Any]:
    """Return the official client, which looks at what the others do."""
    client = kube.config.new_client_from_config(str(sandbox.kubeconfig))
    yield client
    client.close()
    # Closing leaves the connections to the garbage collector.
    client.rest_client.pool_manager.clear()


@pytest.fixture
def space(api: Any, request: pytest.FixtureRequest) -> str:
    """Return the name of a namespace of the test's own."""
    name = request.node.name.replace("_", "-")[:60].strip("-")
    kube.client.CoreV1Api(api).create_namespace({"metadata": {"name": name}})
    return str(name)


@pytest.fixture
def environment(sandbox: Up, space: str, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a program whose user works in that namespace."""
    kubeconfig = json.loads(sandbox.kubeconfig.read_text())
    for context in kubeconfig["contexts"]:
        context["context"]["namespace"] = space
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
    return {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
