"""The official Python client, which nobody here wrote, lists, watches, creates and deletes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage_sandbox.testing.builders import pod_manifest
from sandbox.tests.sandbox.process import Up

# Untyped, as far as we are concerned.
kubernetes: Any = pytest.importorskip("kubernetes")


@pytest.fixture
def core(tmp_path: Path) -> Iterator[Any]:
    """Return the client's CoreV1Api, connected to a new sandbox."""
    with Up(tmp_path, "--nodes", "2", "--empty", "--seed", "1") as up:
        up.started()
        client = kubernetes.config.new_client_from_config(str(up.kubeconfig))
        with client:
            yield kubernetes.client.CoreV1Api(client)


@pytest.mark.slow
def test_a_pod_is_watched_from_pending_to_running(core: Any) -> None:
    assert [node.metadata.name for node in core.list_node().items] == ["node-01", "node-02"]
    version = core.list_namespaced_pod("default").metadata.resource_version
    core.create_namespaced_pod("default", pod_manifest("p", cpu="1", node_name=""))
    phases: list[tuple[str, bool]] = []
    watching = kubernetes.watch.Watch()
    for event in watching.stream(
        core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=20
    ):
        pod = event["object"]
        seen = (pod.status.phase, bool(pod.spec.node_name))
        if seen not in phases:
            phases.append(seen)
        if pod.status.phase == "Running":
            watching.stop()
    assert phases == [("Pending", False), ("Pending", True), ("Running", True)]
    events = core.list_namespaced_event("default", field_selector="involvedObject.name=p").items
    assert [event.reason for event in events] == ["Scheduled"]
    core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
    with pytest.raises(kubernetes.client.ApiException) as gone:
        core.read_namespaced_pod("p", "default")
    assert (gone.value.status, gone.value.reason) == (404, "Not Found")
