"""Scope: a data directory from before a version made more objects for a new cluster."""

from __future__ import annotations

from typing import Any

from moorage.base.clock import SystemClock
from moorage_sandbox.sandbox.data_directory import DataDirectory
from moorage_sandbox.sandbox.server import SandboxServer
from moorage_sandbox.sandbox.settings import ServerSettings
from sandbox.tests.apiserver.crd import DEFINITIONS, definition
from sandbox.tests.apiserver.harness import Cluster

SHIPPED = "elasticquotas.scheduling.x-k8s.io"
NEWER = {
    "apiservices.apiregistration.k8s.io",
    "ipaddresses.networking.k8s.io",
    "servicecidrs.networking.k8s.io",
}


def _names(server: SandboxServer, shelf: str) -> list[str]:
    return [record.name for record in server._api.store.shelf(shelf).records()]


async def _started(path: Any) -> SandboxServer:
    server = SandboxServer(ServerSettings(data=str(path)), clock=SystemClock())
    await server.start()
    return server


def _store(before: Cluster, path: Any) -> None:
    """Write what a version without the newer kinds would have written."""
    kept = [
        (shelf, each) for shelf, each in before.server.store.all_records() if shelf not in NEWER
    ]
    directory = DataDirectory(path, clock=SystemClock())
    journal = directory.open_journal(SystemClock())
    journal.fill(kept, before.server.store.version)
    journal.close()
    directory.close()


async def test_an_older_directory_gets_the_objects_of_a_new_cluster_at_the_next_start(tmp_path):
    path = tmp_path / "data"
    before = Cluster()
    ports = {"ports": [{"port": 80}], "clusterIP": "10.96.7.7"}
    web = {"metadata": {"name": "web"}, "spec": ports}
    await before.ok("POST", "/api/v1/namespaces/default/services", web)
    await before.ok("POST", DEFINITIONS, definition())
    await before.ok("DELETE", f"{DEFINITIONS}/{SHIPPED}")
    _store(before, path)
    for _ in range(2):
        server = await _started(path)
        addresses = _names(server, "ipaddresses.networking.k8s.io")
        ranges = _names(server, "servicecidrs.networking.k8s.io")
        groups = _names(server, "apiservices.apiregistration.k8s.io")
        definitions = _names(server, "customresourcedefinitions.apiextensions.k8s.io")
        version = server._api.store.version
        await server.stop()
        assert addresses == ["10.96.0.1", "10.96.7.7"]
        assert ranges == ["kubernetes"]
        assert {"v1.", "v1.apps", "v1.example.com"} <= set(groups)
        # A definition that was deleted stays away.
        assert SHIPPED not in definitions
    again = await _started(path)
    # Nothing is written where nothing is missing, besides the address that the server listens on.
    assert again._api.store.version <= version + 2
    await again.stop()


async def test_a_policy_that_refuses_a_missing_object_keeps_no_server_from_its_start(
    tmp_path, caplog
):
    before = Cluster()
    rule = {
        "apiGroups": ["apiregistration.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["apiservices"],
    }
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    policy = {
        "metadata": {"name": "no-groups"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "no groups"}],
        },
    }
    await before.ok("POST", f"{policies}ies", policy)
    binding = {
        "metadata": {"name": "no-groups"},
        "spec": {"policyName": "no-groups", "validationActions": ["Deny"]},
    }
    await before.ok("POST", f"{policies}ybindings", binding)
    _store(before, tmp_path / "data")
    server = await _started(tmp_path / "data")
    ranges = _names(server, "servicecidrs.networking.k8s.io")
    await server.stop()
    assert ranges == ["kubernetes"]
    refused = [each for each in caplog.messages if each.startswith("missing object not made")]
    assert refused[0].startswith("missing object not made: APIService ")
    assert refused[0].endswith("no groups")
