"""Pods and nodes for tests in one line: keywords for common fields, defaults for all others.

`pod_manifest` and `node_manifest` make plain values as a client sends them; `pod` and `node` make
the typed objects a scheduler reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod

Manifest: TypeAlias = dict[str, Any]


def pod_manifest(  # noqa: PLR0913 - keywords, one for each part
    name: str = "pod",
    *,
    namespace: str = "default",
    cpu: str | None = None,
    memory: str | None = None,
    node_name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, Any]] = (),
    gates: Sequence[str] = (),
    host_ports: Sequence[int] = (),
    **spec: Any,
) -> Manifest:
    """Return a pod with one container, as plain values.

    Parameters
    ----------
    name, namespace, labels, annotations
        The pod's metadata.
    cpu, memory
        Requests of the container; None for none.
    node_name
        The node that the pod is bound to, "" for none.
    node_selector, tolerations
        As in the pod's spec.
    gates
        Names of the pod's scheduling gates.
    host_ports
        TCP host ports that the pod requests.
    spec
        Any other field of the spec, by its name on the wire (``priorityClassName="x"``);
        overrides the fields built from the other parameters.
    """
    asked = {"cpu": cpu, "memory": memory}
    requests = {resource: amount for resource, amount in asked.items() if amount is not None}
    container: Manifest = {"name": "main", "image": "registry.example/app:1"}
    if requests:
        container["resources"] = {"requests": requests}
    if host_ports:
        container["ports"] = [{"containerPort": port, "hostPort": port} for port in host_ports]
    metadata: Manifest = {"name": name, "namespace": namespace}
    body: Manifest = {"containers": [container]}
    _put(metadata, labels=dict(labels or {}), annotations=dict(annotations or {}))
    _put(
        body,
        nodeName=node_name,
        nodeSelector=dict(node_selector or {}),
        tolerations=[dict(each) for each in tolerations],
        schedulingGates=[{"name": gate} for gate in gates],
    )
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**body, **spec}}


def pod(name: str = "pod", **fields: Any) -> Pod:
    """Return a typed pod, with a uid; the fields are those of `pod_manifest`."""
    manifest = pod_manifest(name, **fields)
    namespace = manifest["metadata"]["namespace"]
    manifest["metadata"]["uid"] = f"uid-{namespace}-{name}"
    manifest["spec"].setdefault("schedulerName", "default-scheduler")
    return from_dict(Pod, manifest)


def node_manifest(
    name: str = "node",
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    **resources: str,
) -> Manifest:
    """Return a node, as plain values.

    Parameters
    ----------
    name, labels
        The node's metadata; the label with the host name is added.
    cpu, memory, pods
        The node's capacity.
    taints, unschedulable
        As in the node's spec.
    resources
        The node's other resources, with ``_`` for ``-`` in names.
    """
    further = {key.replace("_", "-"): amount for key, amount in resources.items()}
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, **further}
    spec: Manifest = {}
    _put(spec, taints=[dict(each) for each in taints], unschedulable=unschedulable)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"capacity": dict(amounts), "allocatable": dict(amounts)},
    }


def node(name: str = "node", **fields: Any) -> Node:
    """Return a typed node, with a uid; the fields are those of `node_manifest`."""
    manifest = node_manifest(name, **fields)
    manifest["metadata"]["uid"] = f"uid-{name}"
    return from_dict(Node, manifest)


def _put(into: Manifest, **fields: Any) -> None:
    """Add the fields that are not empty."""
    into.update({name: value for name, value in fields.items() if value})
