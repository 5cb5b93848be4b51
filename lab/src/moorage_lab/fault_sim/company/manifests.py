"""The objects of worlds, as plain values."""

from __future__ import annotations

from typing import Any, Final

from moorage_sandbox.testing.builders import Manifest

PRIORITIES: Final = {"low": 0, "middle": 500, "high": 1000}
"""The three levels of priority, by class; low pods have no class."""


def priority_class(name: str) -> Manifest:
    """Return the class of a level."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": PRIORITIES[name],
    }


def workload(kind: str, name: str, count: int, template: Manifest) -> Manifest:
    """Return a set of pods of a kind; pods get the label ``app`` with the name of the set."""
    labels = {"app": name, **template["metadata"].get("labels", {})}
    template = {**template, "metadata": {**template["metadata"], "labels": labels}}
    selector = {"matchLabels": {"app": name}}
    spec: dict[str, Any]
    match kind:
        case "Job":
            # Otherwise each evicted pod is a failure, and the next one comes ever later.
            rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
            spec = {"parallelism": count, "completions": count}
            spec["podFailurePolicy"] = {"rules": [rule]}
            template["spec"] = {**template["spec"], "restartPolicy": "Never"}
        case "DaemonSet":
            spec = {"selector": selector}
        case "StatefulSet":
            spec = {"replicas": count, "selector": selector, "serviceName": name}
            spec["podManagementPolicy"] = "Parallel"
        case _:
            spec = {"replicas": count, "selector": selector}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    metadata = {"name": name, "namespace": "default"}
    spec["template"] = template
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def template(cpu: str, **spec: Any) -> Manifest:
    """Return the template of pods with one container that asks for cpu."""
    resources = {"requests": {"cpu": cpu}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": resources}
    return {
        "metadata": {"labels": {}, "annotations": {}},
        "spec": {"containers": [container], **spec},
    }
