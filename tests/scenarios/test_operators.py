"""The examples of docs/how-to/groups-of-operators.md are scheduled as the page says.

One node of one cpu takes no group whole, so nobody starts; with a second node all start.
"""

from __future__ import annotations

import re

import pytest

from moorage.api.manifest_text import parse_manifests
from moorage.base import aio
from moorage_sandbox.testing.builders import Manifest, node_manifest
from tests.packages import ROOT
from tests.scenarios.gangs import Cluster, coscheduling, of_object, play

_PAGE = ROOT / "docs" / "how-to" / "groups-of-operators.md"
_EXAMPLE = re.compile(r"<!-- operator: (\w+) -->\n```yaml\n(.*?)```", re.DOTALL)
EXAMPLES = dict(_EXAMPLE.findall(_PAGE.read_text()))
_SCHEDULERS = ("scheduler-plugins-scheduler", "kube-scheduler")


def _objects(operator: str) -> list[Manifest]:
    manifests = parse_manifests(EXAMPLES[operator].encode(), operator)
    for each in manifests:
        each["metadata"]["namespace"] = "default"
    return manifests


def test_the_page_has_an_example_of_each_operator() -> None:
    assert sorted(EXAMPLES) == ["labels", "mpi", "ray", "spark", "training"]


@pytest.mark.parametrize("operator", sorted(EXAMPLES))
def test_the_pods_of_an_operator_start_together_or_not_at_all(operator: str) -> None:
    objects = _objects(operator)
    pods = [each["metadata"]["name"] for each in objects if each["kind"] == "Pod"]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*objects)
        await aio.sleep(10)
        assert live.bound(*pods) == 0
        await live.play([node_manifest("n2", cpu="1", memory="8Gi")])
        await live.until(lambda: live.bound(*pods) == len(pods), seconds=15)

    config = coscheduling(names=_SCHEDULERS)
    play(scenario, cluster=[node_manifest("n1", cpu="1", memory="8Gi")], config=config)


def test_pods_of_volcano_are_told_that_their_group_is_not_read() -> None:
    async def scenario(live: Cluster) -> None:
        pod = of_object("v", of="")
        pod["metadata"]["labels"] = {}
        pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "job"}
        await live.create_objects(pod)
        await aio.sleep(5)
        (event,) = await live.events("v", reason="GroupsNotScheduled")
        assert event["message"].startswith(
            "pod group default/job (annotation scheduling.k8s.io/group-name) is not scheduled as a "
            "group, each of its pods is placed on its own: groups of Volcano are not read. "
        )
        assert live.bound("v") == 1

    cluster = [node_manifest("n1", cpu="1", memory="8Gi")]
    play(scenario, cluster=cluster, config=coscheduling())
