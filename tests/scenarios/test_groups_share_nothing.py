"""A group whose members need something each that a node has once evicts one pod on each node.

The members of a group are tried together, each next to the earlier ones and next to their victims,
which have not left. What an earlier member will use must not count as free.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from moorage.config.own import LoadedConfiguration
from moorage_sandbox.testing.builders import Manifest, node_manifest
from tests.scenarios.company import Company, made, play, replicas
from tests.scenarios.test_groups_preempt import FORMS, LATE_SECONDS, Form
from tests.scenarios.test_nominees import (
    DEVICES,
    GPU_COUNT,
    GPU_MILLI,
    away_from,
    device_slice,
    gpu_node,
)

MINE, LOW = {"app": "mine"}, {"app": "low"}
NAMES = ("n1", "n2", "n3")


class Thing(msgspec.Struct, frozen=True):
    """Something that a node has for one pod.

    Parameters
    ----------
    use
        Lets a pod use it.
    of_members
        What members use besides.
    objects
        What has to be there.
    plugin
        The plugin that knows it, where that is not enabled by default.
    node
        The node of a name.
    """

    use: Callable[[Manifest], None]
    of_members: Callable[[Manifest], None] = lambda _: None
    objects: tuple[Manifest, ...] = ()
    plugin: str = ""
    node: Callable[[str], Manifest] = node_manifest

    def use_as_member(self, pod: Manifest) -> None:
        """Let a member use it."""
        self.use(pod)
        self.of_members(pod)

    def config(self, form: Form) -> LoadedConfiguration:
        """Return the configuration for a form of groups."""
        return form.config(extra=self.plugin)


def use_port(pod: Manifest) -> None:
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]


def repel_the_other(pod: Manifest) -> None:
    """Repel pods of its own set, and victims."""
    pod["spec"]["affinity"] = away_from({"one-a-node": "yes"})
    pod["metadata"].setdefault("labels", {})["one-a-node"] = "yes"


def use_gpu(pod: Manifest) -> None:
    pod["metadata"].setdefault("annotations", {}).update({GPU_COUNT: "1", GPU_MILLI: "1000"})


def use_device(pod: Manifest) -> None:
    entry = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    pod["spec"]["resourceClaims"] = [entry]
    pod["spec"]["containers"][0].setdefault("resources", {})["claims"] = [{"name": "gpu"}]


def use_cpu(pod: Manifest) -> None:
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}


def use_disk(pod: Manifest) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "disks"}
    spec = {**claim, "resources": {"requests": {"storage": "1Gi"}}}
    source = {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    pod["spec"]["volumes"] = [{"name": "data", **source}]


def csi_node(name: str) -> Manifest:
    limits = {"drivers": [{"name": "d.io", "nodeID": name, "allocatable": {"count": 1}}]}
    meta = {"name": name}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": meta, "spec": limits}


DISKS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "disks"},
    "provisioner": "d.io",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CSI_DRIVER = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": "d.io"},
    "spec": {"attachRequired": True},
}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpu", "namespace": "default"},
    "spec": {
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "one",
                        "exactly": {
                            "deviceClassName": "gpu",
                            "allocationMode": "ExactCount",
                            "count": 1,
                        },
                    }
                ]
            }
        }
    },
}
THINGS = [
    pytest.param(Thing(use_port), id="a host port"),
    pytest.param(Thing(repel_the_other), id="a node without a pod like it"),
    pytest.param(Thing(use_cpu), id="most of the cpu"),
    pytest.param(
        Thing(use_gpu, plugin="GpuShare", node=lambda name: gpu_node(name, 1)), id="a GPU"
    ),
    pytest.param(
        Thing(
            use_cpu,
            of_members=use_device,
            objects=(DEVICES, TEMPLATE, *map(device_slice, NAMES)),
        ),
        id="most of the cpu, and the free device",
    ),
    pytest.param(
        Thing(use_disk, objects=(DISKS, CSI_DRIVER, *map(csi_node, NAMES))), id="an attachment"
    ),
]


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize(
    ("form", "stops"),
    [
        *(pytest.param(*each.values, 5, id=each.id) for each in FORMS),
        pytest.param(*FORMS[0].values, 0, id=f"{FORMS[0].id}, victims that stop at once"),
    ],
)
def test_each_member_gets_what_a_node_has_once(form: Form, thing: Thing, stops: float) -> None:
    async def scenario(company: Company) -> None:
        await company.create(*thing.objects)
        await company.sleep(1)
        low = made("t", stops=stops, cpu="1")
        thing.use(low)
        await company.create(replicas(5, low))
        await company.run("t-", 3)
        await form.create(company, 3, change=thing.use_as_member)
        seconds = await company.run("g", 3)
        await company.sleep(20)
        assert (company.placed("g"), len(company.evicted)) == (list(NAMES), 3)
        assert seconds < stops + LATE_SECONDS

    play(scenario, nodes=[thing.node(name) for name in NAMES], config=thing.config(form))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("thing", THINGS)
def test_nobody_is_evicted_for_a_group_of_more_members_than_nodes(form: Form, thing: Thing) -> None:
    async def scenario(company: Company) -> None:
        await company.create(*thing.objects)
        await company.sleep(1)
        low = made("t", stops=2, cpu="1")
        thing.use(low)
        await company.create(replicas(5, low))
        await company.run("t-", 3)
        await form.create(company, 4, change=thing.use_as_member)
        await company.sleep(40)
        assert (company.placed("g"), company.evicted) == ([""] * 4, [])

    play(scenario, nodes=[thing.node(name) for name in NAMES], config=thing.config(form))
