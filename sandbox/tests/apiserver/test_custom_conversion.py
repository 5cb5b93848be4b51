"""Definitions of custom resources that a webhook converts.

Does not cover: what a definition of the strategy has to say (`test_custom_resources`).
"""

from __future__ import annotations

from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import Cluster

CONVERTED = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {"service": {"namespace": "s", "name": "w", "path": "/convert"}},
        "conversionReviewVersions": ["v1"],
    },
}


async def test_a_definition_with_a_webhook_serves_its_one_version():
    """As JobSet and LeaderWorkerSet have it."""
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition(spec__conversion=CONVERTED))
    stored = await cluster.ok("GET", f"{DEFINITIONS}/cars.example.com")
    assert stored["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 443
    await cluster.ok("POST", CARS, car())
    assert len(await cluster.names(CARS)) == 1


async def test_a_webhook_for_several_versions_is_refused_with_the_reason():
    cluster = Cluster()
    wanted = definition(spec__conversion=CONVERTED)
    first = wanted["spec"]["versions"][0]
    wanted["spec"]["versions"].append(first | {"name": "v2", "storage": False})
    status, answer = await cluster.call("POST", DEFINITIONS, wanted)
    assert (status, "to convert objects between v1, v2" in answer["message"]) == (422, True)
