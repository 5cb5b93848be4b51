"""``moorage migrate``: the policy that it prints, applied to the embedded API server."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sandbox.tests.apiserver.harness import PODS, Cluster, pod
from tests.cli.conftest import Type

GROUP = "/apis/admissionregistration.k8s.io"
NAMESPACES = "/api/v1/namespaces"
UID = "{}-0000-4000-8000-000000000000"
PLURALS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}


def of(controller: str = "", **changes: Any) -> dict[str, Any]:
    """Return a pod of a ReplicaSet whose uid begins with a text, with changes of its fields."""
    made = pod(labels=changes.pop("labels", None))
    if controller:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
        made["metadata"]["ownerReferences"] = [{**owner, "uid": UID.format(controller)}]
    made["spec"] |= changes
    return made


async def cluster_after(bare: Type, *words: str, version: str = "v1") -> Cluster:
    """Return a cluster with what the command prints."""
    cluster = Cluster()
    result = bare("migrate", *words)
    assert result.exit_code == 0, result.output
    for obj in yaml.safe_load(result.stdout)["items"]:
        await cluster.ok("POST", f"{GROUP}/{version}/{PLURALS[obj['kind']]}", obj)
    return cluster


@pytest.mark.parametrize(
    ("words", "wanted", "scheduler"),
    [
        pytest.param([], of(), "moorage", id="any pod"),
        pytest.param(["--to", "acme"], of(), "acme", id="another name"),
        pytest.param(
            [], of(schedulerName="other"), "other", id="a pod of a third scheduler keeps it"
        ),
        pytest.param(
            ["--from", "other"], of(schedulerName="other"), "moorage", id="from a third scheduler"
        ),
        pytest.param([], of(nodeName="n"), "default-scheduler", id="a pod with a node"),
        pytest.param(["-n", "team"], of(), "default-scheduler", id="another namespace"),
        pytest.param(["-n", "team", "-n", "default"], of(), "moorage", id="one of two namespaces"),
        pytest.param(["--share", "25"], of("3fffffff"), "moorage", id="an owner of the share"),
        pytest.param(["--share", "25"], of("40000000"), "default-scheduler", id="another owner"),
        pytest.param(["--share", "25"], of(), "default-scheduler", id="no owner, and a share"),
        pytest.param(
            ["--share", "25"],
            of("00000000", labels={"scheduling.x-k8s.io/pod-group": "g"}),
            "default-scheduler",
            id="a group, and a share",
        ),
        pytest.param(
            [], of(labels={"scheduling.x-k8s.io/pod-group": "g"}), "moorage", id="a group"
        ),
        pytest.param(["--share", "1"], of("028e0000"), "moorage", id="one in a hundred"),
        pytest.param(["--share", "99"], of("fd710000"), "default-scheduler", id="the last of them"),
    ],
)
async def test_the_scheduler_of_a_new_pod(
    bare: Type, words: list[str], wanted: dict[str, Any], scheduler: str
) -> None:
    cluster = await cluster_after(bare, *words)
    made = await cluster.ok("POST", PODS, wanted)
    assert made["spec"]["schedulerName"] == scheduler


async def test_kube_system_is_left_alone_unless_it_is_named(bare: Type) -> None:
    path = f"{NAMESPACES}/kube-system/pods"
    for words, scheduler in ([], "default-scheduler"), (["-n", "kube-system"], "moorage"):
        cluster = await cluster_after(bare, *words)
        made = await cluster.ok("POST", path, pod())
        assert made["spec"]["schedulerName"] == scheduler


async def test_without_the_policy_pods_have_their_scheduler_again(bare: Type) -> None:
    cluster = await cluster_after(bare, "--api-version", "v1beta1", version="v1beta1")
    assert (await cluster.ok("POST", PODS, pod("a")))["spec"]["schedulerName"] == "moorage"
    for plural in PLURALS.values():
        await cluster.ok("DELETE", f"{GROUP}/v1/{plural}/moorage-migrate")
    assert (await cluster.ok("POST", PODS, pod("b")))["spec"][
        "schedulerName"
    ] == "default-scheduler"


def test_from_and_to_the_same_scheduler_is_refused(bare: Type) -> None:
    result = bare("migrate", "--to", "default-scheduler")
    assert result.exit_code == 2
    assert "nothing would change" in result.stderr
