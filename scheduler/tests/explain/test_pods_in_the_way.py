"""Pods in the way: which of them stay, which may be evicted, and which are nominated."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.explain.answer import Where
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, explained, waiting

NEVER = "never fits here, not even on an empty node, because of"


def _owned(name: str, node: str, kind: str, **fields: Any) -> Manifest:
    owner = {
        "apiVersion": "v1" if kind == "Node" else "apps/v1",
        "kind": kind,
        "name": "owner",
        "uid": "of-owner",
        "controller": True,
    }
    pod = bound(name, node, **fields)
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}


def _static(name: str, node: str, **fields: Any) -> Manifest:
    """Return a mirror pod, whose owner is its node."""
    annotations = {"kubernetes.io/config.mirror": "hash"}
    return _owned(name, node, "Node", annotations=annotations, **fields)


def _nominated(name: str, node: str, **fields: Any) -> Manifest:
    return {
        **waiting(name, priority=10, **fields),
        "status": {"nominatedNodeName": node},
    }


@pytest.mark.parametrize(
    ("manifests", "where", "sentence", "kinds"),
    [
        pytest.param(
            [
                _owned("agent-1", "n", "DaemonSet", host_ports=[80]),
                waiting("p", host_ports=[80]),
            ],
            Where.NEVER,
            f"{NEVER} the host port 80/TCP, which DaemonSet owner's pod default/agent-1 has",
            ["host port"],
            id="a pod of a DaemonSet has the host port",
        ),
        pytest.param(
            [_static("etcd", "n", cpu="3"), waiting("p", cpu="2")],
            Where.NEVER,
            f"{NEVER} cpu (it requests 2, the largest of these nodes has 1 next to static pod "
            "default/etcd, which takes 3)",
            ["request", "node"],
            id="a static pod is no pod of its node, and a further node has it too",
        ),
        pytest.param(
            [_owned("w", "n", "ReplicaSet", cpu="3"), waiting("p", cpu="2")],
            Where.REJECTED,
            "would fit on 1 node of 1 but for cpu (it requests 2, the most that is free on one of "
            "them is 1)",
            ["evict", "request", "priority", "node"],
            id="a pod that is made again behind this one",
        ),
        pytest.param(
            [_owned("w", "n", "ReplicaSet", cpu="3", priority=10), waiting("p", cpu="2")],
            Where.REJECTED,
            "would fit on 1 node of 1 but for cpu (it requests 2, the most that is free on one of "
            "them is 1)",
            ["request", "priority", "node"],
            id="a pod that is made again takes its room back",
        ),
        pytest.param(
            [
                bound("w", "n", cpu="3", namespace="kube-system", priority=2_000_000_000),
                waiting("p", cpu="2"),
            ],
            Where.REJECTED,
            "would fit on 1 node of 1 but for cpu (it requests 2, the most that is free on one of "
            "them is 1)",
            ["request", "node"],
            id="a pod that the cluster needs",
        ),
    ],
)
def test_pods_in_the_way_are_named_and_moved_only_if_that_helps(
    manifests: list[Manifest], where: Where, sentence: str, kinds: list[str]
) -> None:
    found = explained(node_manifest("n"), *manifests)
    assert (found.where, found.sentence) == (where, sentence)
    assert [each.kind for each in found.suggestions] == kinds


def test_a_nominated_pod_has_the_last_place() -> None:
    found = explained(node_manifest("n", pods="1"), _nominated("first", "n"), waiting("p"))
    assert found.sentence == (
        "would fit on 1 node of 1 but for the number of pods (each node has as many as it takes, "
        "at most 1, with nominated pod default/first)"
    )
