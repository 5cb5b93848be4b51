"""Scope: node ports are free or taken as the stored services say, whatever became of a service.

Which ports a service may ask for is in scheduler/tests/kinds/test_service_types.py; the index that
finds the services of a port is in test_store.py.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage_sandbox.storage.journal.faults import NoRoomError
from sandbox.tests.apiserver.harness import MERGE, Cluster
from sandbox.tests.storage.test_persistence import GatedJournal, Kept

SERVICES = "/api/v1/namespaces/default/services"
PORT = 30080


def on_nodes(name: str, port: int = PORT, **spec: Any) -> dict[str, Any]:
    ports = [{"port": 80, "nodePort": port}]
    return {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports, **spec}}


async def is_free(cluster: Cluster) -> bool:
    """Whether a service may have the port; asked without creating it."""
    status, body = await cluster.call("POST", SERVICES, on_nodes("asks"), query={"dryRun": "All"})
    if status == 201:
        return True
    assert (status, body["details"]["causes"]) == (
        422,
        [
            {
                "reason": "FieldValueInvalid",
                "message": f"Invalid value: {PORT}: provided port is already allocated",
                "field": "spec.ports[0].nodePort",
            }
        ],
    )
    return False


@pytest.mark.parametrize(
    ("change", "free"),
    [
        pytest.param({"metadata": {"labels": {"a": "b"}}}, False, id="another field"),
        pytest.param({"spec": {"type": "LoadBalancer"}}, False, id="a type with node ports"),
        pytest.param({"spec": {"type": "ClusterIP"}}, True, id="a type without node ports"),
        pytest.param(
            {"spec": {"ports": [{"port": 80, "nodePort": PORT + 1}]}}, True, id="another port"
        ),
        pytest.param({"spec": {"ports": [{"port": 80, "nodePort": 1}]}}, False, id="a bad port"),
    ],
)
async def test_a_node_port_after_a_change_of_its_service(change, free):
    cluster = Cluster()
    await cluster.ok("POST", SERVICES, on_nodes("web"))
    assert not await is_free(cluster)
    await cluster.call("PATCH", f"{SERVICES}/web", change, content_type=MERGE)
    assert await is_free(cluster) == free


async def test_a_node_port_is_free_after_its_service_and_after_a_dry_run():
    cluster = Cluster()
    assert await is_free(cluster)
    await cluster.ok("POST", SERVICES, on_nodes("web"))
    await cluster.ok("DELETE", f"{SERVICES}/web", query={"dryRun": "All"})
    assert not await is_free(cluster)
    await cluster.ok("DELETE", f"{SERVICES}/web")
    assert await is_free(cluster)
    await cluster.ok("POST", SERVICES, on_nodes("web"))


async def test_a_node_port_of_a_service_that_waits_for_a_finalizer_is_taken():
    cluster = Cluster()
    waiting = on_nodes("web")
    waiting["metadata"]["finalizers"] = ["example.com/wait"]
    await cluster.ok("POST", SERVICES, waiting)
    await cluster.ok("DELETE", f"{SERVICES}/web")
    assert not await is_free(cluster)
    gone = {"metadata": {"finalizers": None}}
    await cluster.ok("PATCH", f"{SERVICES}/web", gone, content_type=MERGE)
    assert await is_free(cluster)


async def test_node_ports_are_taken_after_a_restart(tmp_path):
    first = Kept(tmp_path / "db")
    await first.cluster.ok("POST", SERVICES, on_nodes("web"))
    await first.close()
    second = Kept(tmp_path / "db")
    assert not await is_free(second.cluster)
    await second.close()


async def test_node_ports_are_as_before_after_writes_that_the_disk_refused(tmp_path, caplog):
    kept = Kept(tmp_path / "db", GatedJournal)
    gated, cluster = kept.journal, kept.cluster
    assert isinstance(gated, GatedJournal)
    gated.gate.release(3)
    await cluster.ok("POST", SERVICES, on_nodes("web"))
    gated.fault = NoRoomError("No space left on device")
    other = on_nodes("web", PORT + 1)["spec"]["ports"]
    refused = await asyncio.gather(
        cluster.call("PATCH", f"{SERVICES}/web", {"spec": {"ports": other}}, content_type=MERGE),
        cluster.call("POST", SERVICES, on_nodes("next")),
        cluster.call("DELETE", f"{SERVICES}/next"),
    )
    assert [status for status, _ in refused] == [507, 507, 507]
    assert caplog.records
    gated.fault = None
    assert not await is_free(cluster)
    await cluster.ok("POST", SERVICES, on_nodes("other", PORT + 1))
    await kept.close()


async def test_the_same_random_stream_gives_the_same_ports_and_none_twice():
    async def drawn(cluster: Cluster) -> list[int]:
        found = []
        for number in range(20):
            made = await cluster.ok("POST", SERVICES, on_nodes(f"s{number}", 0))
            found.append(made["spec"]["ports"][0]["nodePort"])
        return found

    first = await drawn(Cluster())
    assert first == await drawn(Cluster())
    assert len(set(first)) == len(first)
