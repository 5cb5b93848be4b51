"""Owners, their pods and quotas as manifests, for the tests of answers about workloads."""

from __future__ import annotations

from typing import Any

from moorage.config.own import LoadedConfiguration
from moorage.explain.workloads.answer import ObjectExplanation, ObjectQuery
from moorage.explain.workloads.asking import answer_query
from moorage.explain.workloads.explaining import complete
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.explain.clusters import bound, inputs_of, waiting

APPS = "apps/v1"
_VERSIONS = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}


def reference(kind: str, name: str, version: str = "") -> list[Manifest]:
    """Return the ownerReferences of what an object controls."""
    return [
        {
            "apiVersion": version or _VERSIONS.get(kind, APPS),
            "kind": kind,
            "name": name,
            "uid": f"uid-{kind}-{name}",
            "controller": True,
        }
    ]


def owner(
    kind: str,
    name: str,
    *,
    below: list[Manifest] | None = None,
    status: Manifest | None = None,
    template: Manifest | None = None,
    version: str = "",
    **spec: Any,
) -> Manifest:
    """Return an owner of pods, with a template of one container that requests one cpu."""
    made = template or {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
        },
    }
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{kind}-{name}", "generation": 1}
    if below:
        metadata["ownerReferences"] = below
    return {
        "apiVersion": version or _VERSIONS.get(kind, APPS),
        "kind": kind,
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": made, **spec},
        "status": {"observedGeneration": 1, **(status or {})},
    }


def quota(name: str, used: Manifest, **hard: str) -> Manifest:
    """Return a quota; ``requests_cpu`` stands for ``requests.cpu``."""
    bounds = {key.replace("_", "."): value for key, value in hard.items()}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": bounds},
        "status": {"hard": bounds, "used": used},
    }


def failed_create(kind: str, name: str, message: str) -> Manifest:
    """Return the Event of a controller whose pod was refused."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": "default"},
        "involvedObject": {"kind": kind, "name": name, "namespace": "default"},
        "reason": "FailedCreate",
        "message": message,
        "type": "Warning",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }


def of(owners: list[Manifest], pod: Manifest) -> Manifest:
    """Return a pod with owners."""
    pod["metadata"]["ownerReferences"] = owners
    return pod


def ready(pod: Manifest) -> Manifest:
    """Return a bound pod that is ready."""
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return pod


def ready_pods(owners: list[Manifest], count: int, *, nodes: int, **fields: Any) -> list[Manifest]:
    """Return ready pods on nodes ``n0``, ``n1`` and so on, in turn."""
    name = owners[0]["name"]
    return [
        of(owners, ready(bound(f"{name}-r{index}", f"n{index % nodes}", **fields)))
        for index in range(count)
    ]


def pending_pods(owners: list[Manifest], count: int, **fields: Any) -> list[Manifest]:
    """Return pods without a node."""
    name = owners[0]["name"]
    return [of(owners, waiting(f"{name}-p{index}", **fields)) for index in range(count)]


def about(
    *manifests: Manifest,
    type_: str = "",
    name: str = "",
    config: LoadedConfiguration | None = None,
    **query: Any,
) -> ObjectExplanation:
    """Explain an object in a cluster of these manifests."""
    inputs = inputs_of(*manifests, config=config)
    objects = tuple(each for each in manifests if each["kind"] not in {"Node", "Pod"})
    asked = ObjectQuery(type_=type_, name=name, objects=objects, **query)
    return complete(answer_query(inputs.fill().core, asked))
