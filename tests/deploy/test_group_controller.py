"""``moorage group-controller`` as the chart installs it: its definitions, its rights, its work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import ELASTIC_QUOTAS, PODS, ResourceType
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.client.writes import Client
from moorage.controllers.cluster import ClusterControllers
from moorage.controllers.groups import GroupControllers
from moorage.kinds.custom.shipped import shipped_definitions
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.testing.builders import node_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from sandbox.tests.controllers.cluster import stored
from scheduler.tests.plugins.quotas.builders import quota_manifest
from tests.deploy.chart import Objects, objects, rendered
from tests.deploy.pod_security import violations
from tests.deploy.rights import NAMESPACE, Asking, Right, granted, install_roles
from tests.scenarios.gangs import of_object, pod_group

pytestmark = [pytest.mark.slow, pytest.mark.kubectl]

ACCOUNT = "moorage-groups"
USER = User(
    f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
    ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"),
)
VALUES = ("--set", "groups.definitions=true", "--set", "groups.controller.enabled=true")


def of_controller() -> Objects:
    """Return what the chart makes for the controller, and not for the scheduler."""
    before = objects(rendered("--namespace", NAMESPACE))
    return [
        each for each in objects(rendered("--namespace", NAMESPACE, *VALUES)) if each not in before
    ]


def status(cluster: VirtualCluster, resource: ResourceType, name: str) -> dict[str, Any]:
    """Return the status of an object of the namespace default."""
    return stored(cluster, resource, name).get("status") or {}


def play(installed: Objects, *, streams_lists: bool) -> set[Right]:
    """Let a group and a quota change; return the rights that the controller used."""
    clock = ManualClock()
    asking = Asking(streams_lists=streams_lists, script=lambda call: None)

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1")]) as cluster:
            install_roles(cluster, installed)
            asking.inner = InProcessTransport(cluster.server, user=USER)
            client = Client(asking, rng=Streams(1).stream("client"))
            parts = (GroupControllers,)
            made = ClusterControllers(client, clock=clock, streams=Streams(1), parts=parts)
            tasks = TaskOwner()
            tasks.spawn(made.run(), name="group controllers")
            await made.ready()
            await scenario(cluster)
            await tasks.cancel_all()

    run_virtual(main(), clock)
    return asking.used


async def scenario(cluster: VirtualCluster) -> None:
    """Take a group to Running, and the use of a quota up and down again."""

    def use() -> Any:
        return status(cluster, ELASTIC_QUOTAS, "quota").get("used", {}).get("cpu")

    def phase() -> Any:
        return status(cluster, COSCHEDULING_POD_GROUPS, "g").get("phase")

    quota = quota_manifest("default", {"cpu": 2})
    await cluster.client.create(COSCHEDULING_POD_GROUPS, pod_group(least=2), namespace="default")
    await cluster.client.create(ELASTIC_QUOTAS, quota, namespace="default")
    await cluster.create_objects(of_object("a", cpu="1"), of_object("b", cpu="1"))
    await cluster.until(lambda: (phase(), use()) == ("Running", "2"), seconds=60)
    await cluster.client.delete(PODS, "b", namespace="default")
    await cluster.until(lambda: (phase(), use()) == ("Degraded", "1"), seconds=60)


def test_the_controller_uses_exactly_the_rights_it_has() -> None:
    installed = of_controller()
    used = play(installed, streams_lists=True) | play(installed, streams_lists=False)
    assert sorted(map(str, used)) == sorted(map(str, granted(installed)))


def test_the_chart_installs_the_definitions_and_keeps_them() -> None:
    found = [each for each in of_controller() if each["kind"] == "CustomResourceDefinition"]
    assert [each["spec"] for each in found] == [each["spec"] for each in shipped_definitions()]
    policies = [each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in found]
    assert policies == ["keep", "keep"]


def test_the_pods_of_the_controller_are_restricted_and_no_endpoint_of_the_scheduler() -> None:
    (deployment,) = (each for each in of_controller() if each["kind"] == "Deployment")
    template = deployment["spec"]["template"]
    assert violations(template["spec"]) == []
    (service,) = (
        each for each in objects(rendered("--namespace", NAMESPACE)) if each["kind"] == "Service"
    )
    wanted: Sequence[tuple[str, str]] = sorted(service["spec"]["selector"].items())
    assert not set(wanted) <= set(template["metadata"]["labels"].items())
