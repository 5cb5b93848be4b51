"""Sentences about claims, volumes and quotas name the claim, the amounts, and what is lacking."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration
from moorage.explain.answer import Where
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, explained, waiting
from scheduler.tests.explain.planted_nodes import EXAMPLES
from scheduler.tests.explain.planted_volumes import CSI, claim, mounted, storage_class, volume

NEVER = "never fits here, not even on an empty node, because of"
UNTRIED = "is not tried on any node, because of"
LOCAL = storage_class("local", "WaitForFirstConsumer")
EPHEMERAL = [
    {
        "name": "scratch",
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                }
            }
        },
    }
]


def _attaches(node: str, count: int) -> Manifest:
    """Return the CSINode of a node that attaches a number of volumes."""
    driver = {"name": CSI, "nodeID": node, "allocatable": {"count": count}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": [driver]},
    }


def _with_volumes(*names: str) -> list[Manifest]:
    claims = [claim(name, volumeName=f"pv-{name}") for name in names]
    return [*claims, *(volume(f"pv-{name}", of=name) for name in names)]


def _mounts(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]


def _on(host: str) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


CASES = [
    pytest.param(
        [
            _attaches("n", 1),
            *_with_volumes("one", "two"),
            waiting("p", volumes=_mounts("one", "two")),
        ],
        Where.NEVER,
        f"{NEVER} the number of volumes of disk.example (it has 2, these nodes take at most 1)",
        [],
        id="more volumes than a node attaches",
    ),
    pytest.param(
        [
            _attaches("n", 2),
            *_with_volumes("one", "two", "other"),
            bound("w", "n", volumes=_mounts("other")),
            waiting("p", volumes=_mounts("one", "two")),
        ],
        Where.REJECTED,
        "would fit on 1 node of 1 but for the number of volumes of disk.example (each node has as "
        "many as it takes, at most 2)",
        ["evict", "priority", "node"],
        id="another pod has one of the volumes that a node attaches",
    ),
    pytest.param(
        [
            LOCAL,
            claim(storageClassName="local", resources={"requests": {"storage": "5Gi"}}),
            volume("small", storageClassName="local"),
            waiting("p", volumes=mounted()),
        ],
        Where.REJECTED,
        "fits on no node now: its claim data (StorageClass local), for which these nodes have no "
        "free volume (it requests 5Gi, the largest free one has 1Gi)",
        [],
        id="the free volumes are too small",
    ),
    pytest.param(
        [
            LOCAL,
            claim(mode="ReadWriteMany", storageClassName="local"),
            volume("single", storageClassName="local"),
            waiting("p", volumes=mounted()),
        ],
        Where.REJECTED,
        "fits on no node now: its claim data (StorageClass local), for which these nodes have no "
        "free volume with ReadWriteMany",
        [],
        id="the free volumes have other access modes",
    ),
    pytest.param(
        [
            claim(volumeName="pv"),
            volume("pv", of="data", nodeAffinity=_on("gone")),
            waiting("p", volumes=mounted()),
        ],
        Where.NEVER,
        f"{NEVER} its claim data, whose volume pv is for nodes with (kubernetes.io/hostname In "
        "[gone]), and none exists",
        [],
        id="the node of a local volume is gone",
    ),
    pytest.param(
        [{**claim(volumeName="pv"), "status": {"phase": "Lost"}}, waiting("p", volumes=mounted())],
        Where.REJECTED,
        f"{UNTRIED} its claim data, whose volume pv does not exist (VolumeBinding: "
        'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv")',
        [],
        id="a claim that lost its volume",
    ),
    pytest.param(
        [waiting("p", volumes=EPHEMERAL)],
        Where.REJECTED,
        f"{UNTRIED} its claim p-scratch of volume scratch, which has not been created yet "
        "(VolumeBinding: waiting for ephemeral volume controller to create the "
        'persistentvolumeclaim "p-scratch")',
        [],
        id="the claim of an ephemeral volume is not there yet",
    ),
    pytest.param(
        [*_with_volumes("p-scratch"), waiting("p", volumes=EPHEMERAL)],
        Where.REJECTED,
        f"{UNTRIED} its claim p-scratch, which was not made for this pod (VolumeBinding: PVC "
        "default/p-scratch was not created for pod default/p (pod is not owner))",
        [],
        id="the claim of an ephemeral volume is somebody else's",
    ),
]


@pytest.mark.parametrize(("manifests", "where", "sentence", "kinds"), CASES)
def test_the_sentence_says_what_is_wrong_with_a_claim(
    manifests: list[Manifest], where: Where, sentence: str, kinds: list[str]
) -> None:
    found = explained(node_manifest("n"), *manifests)
    assert (found.sentence, found.where) == (sentence, where)
    assert [each.kind for each in found.suggestions] == kinds


def _quota(namespace: str, **bounds: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "own", "namespace": namespace},
        "spec": bounds,
    }


def _quotas() -> LoadedConfiguration:
    return load_config(EXAMPLES / "profiles" / "elastic-quota.yaml")


@pytest.mark.parametrize(
    ("quotas", "pods", "start"),
    [
        pytest.param(
            [_quota("default", min={"cpu": "1"}, max={"cpu": "2"})],
            [bound("w", "n", cpu="1500m"), waiting("p", cpu="1")],
            "ElasticQuota default/own: cpu 1500m used and 1000m asked, 2000m at most",
            id="the maximum of the namespace",
        ),
        pytest.param(
            [_quota("default", min={"cpu": "1"}), _quota("other", min={"cpu": "1"})],
            [bound("w", "n", cpu="1500m", namespace="other"), waiting("p", cpu="1")],
            "all ElasticQuotas together: cpu 1500m used and 1000m asked, 2000m guaranteed",
            id="what all namespaces are guaranteed",
        ),
    ],
)
def test_a_quota_is_named_with_its_figures(
    quotas: list[Manifest], pods: list[Manifest], start: str
) -> None:
    found = explained(node_manifest("n"), *quotas, *pods, config=_quotas())
    assert found.sentence.startswith(f"{UNTRIED} {start} (CapacityScheduling: ")


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        pytest.param(
            [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}],
            "(gpu Exists)",
            id="a label that other nodes have",
        ),
        pytest.param([{}], "(an empty term, which no node matches)", id="an empty term"),
    ],
)
def test_a_node_affinity_is_told_without_needless_values(
    terms: list[dict[str, Any]], text: str
) -> None:
    required = {"nodeSelectorTerms": terms}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    closed = [{"key": "closed", "effect": "NoSchedule"}]
    found = explained(
        node_manifest("n"),
        node_manifest("other", cpu="1", labels={"gpu": "yes"}, taints=closed),
        waiting("p", cpu="2", affinity=affinity),
    )
    fact = f"its required node affinity {text}"
    assert [each.fact for each in found.causes if each.fact == fact] == [fact]
