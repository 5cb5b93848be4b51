"""The paths about the server itself besides discovery: health and metrics."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from moorage_sandbox.apiserver.world import GIT_VERSION
from sandbox.tests.apiserver.harness import CONFIG_MAPS, Cluster, config_map


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_a_health_path_names_its_checks_and_answers_each(path):
    cluster = Cluster()
    assert (await cluster.reply("GET", path, user=None)).body == b"ok"
    reply = await cluster.reply("GET", path, query={"verbose": "1"}, user=None)
    assert isinstance(reply.body, bytes)
    *checks, last = reply.body.decode().splitlines()
    assert last == f"{path[1:]} check passed"
    names = [check.removeprefix("[+]").removesuffix(" ok") for check in checks]
    assert {"ping", "log", "etcd", "poststarthook/crd-informer-synced"} <= set(names)
    assert ("informer-sync" in names) == (path == "/readyz")
    for name in names:
        assert (await cluster.reply("GET", f"{path}/{name}", user=None)).status == 200
    assert (await cluster.call("GET", f"{path}/nothing", user=None))[0] == 404


async def test_the_metrics_count_stored_objects():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map())
    assert (await cluster.call("GET", "/metrics", user=None))[0] == 401
    reply = await cluster.reply("GET", "/metrics")
    assert (reply.status, reply.content_type.split(";")[0]) == (200, "text/plain")
    assert isinstance(reply.body, bytes)
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }
    assert found["apiserver_resource_objects", "", "configmaps"] == 1
    assert found["apiserver_resource_objects", "apps", "deployments"] == 0
    assert found["kubernetes_build_info", GIT_VERSION] == 1
    assert found["process_resident_memory_bytes",] > 0
