"""What the documentation of kr8s begins with, as one program; it prints what it sees."""

from __future__ import annotations

import json
import sys
from typing import Any

import kr8s
from kr8s import objects

# Half of it has no types.
kube: Any = kr8s
Deployment: Any = objects.Deployment
Node: Any = objects.Node
Pod: Any = objects.Pod

SECONDS_MAX = 30
LABELS = {"app": "web"}
CONTAINER = {"name": "main", "image": "nginx:1"}


def show(*values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")


def pods() -> None:
    pod = Pod(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "my-pod"},
            "spec": {"containers": [CONTAINER]},
        }
    )
    pod.create()
    pod.wait("condition=Ready", timeout=SECONDS_MAX)
    pod.label({"foo": "bar"})
    found = kube.get("pods", namespace=kube.ALL, label_selector={"foo": "bar"})
    show("labelled", *(each.name for each in found))
    for kind, seen in kube.watch("pods", field_selector={"metadata.name": "my-pod"}):
        show("watched", kind, seen.name, seen.status.phase)
        break
    pod.delete(grace_period=0)
    pod.wait("delete", timeout=SECONDS_MAX)
    show("exists", pod.exists())


def deployments() -> None:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
    deployment = Deployment(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template},
        }
    )
    deployment.create()
    deployment.wait("condition=Available", timeout=SECONDS_MAX)
    deployment.scale(3)
    deployment.wait("jsonpath='{.status.readyReplicas}'=3", timeout=SECONDS_MAX)
    show("scaled", deployment.replicas, deployment.ready(), len(deployment.pods()))


def nodes() -> None:
    show("nodes", *(node.name for node in kube.get("nodes")))
    node = Node.get("node-01")
    node.cordon()
    node.refresh()
    show("cordoned", node.unschedulable)
    node.uncordon()
    node.refresh()
    show("cordoned", node.unschedulable)


if __name__ == "__main__":
    show("user", kube.whoami())
    nodes()
    pods()
    deployments()
