"""Parts of manifests for workloads and measurements."""

from __future__ import annotations

from collections.abc import Mapping

from moorage_lab.bench.workload import NAMESPACE, JsonObject, Template, default_pod

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
DRIVER = "ebs.csi.aws.com"
WAITING_CLASS = "waiting"


def pod(
    prefix: str,
    spec: JsonObject,
    *,
    labels: Mapping[str, str] | None = None,
    namespace: str = NAMESPACE,
    namespaces: int = 1,
) -> Template:
    """Return a template of default pods with more in their spec.

    Parameters
    ----------
    prefix
        Prefix of the names.
    spec
        Fields added to the default pod's spec.
    labels
        Labels instead of the default pod's.
    namespace, namespaces
        Where the pods go; with several namespaces, ``<namespace>-<index>`` in turn.
    """
    plain = default_pod(prefix)

    def template(index: int) -> JsonObject:
        manifest = plain(index)
        metadata = manifest["metadata"]
        metadata["namespace"] = f"{namespace}-{index % namespaces}" if namespaces > 1 else namespace
        if labels is not None:
            metadata["labels"] = dict(labels)
        manifest["spec"] |= spec
        return manifest

    return template


def sized_pod(prefix: str, *, cpu: str, priority: int) -> Template:
    """Return the template of scheduler_perf's low- and high-priority pods."""
    plain = default_pod(prefix)

    def template(index: int) -> JsonObject:
        manifest = plain(index)
        spec = manifest["spec"] | {"priority": priority, "terminationGracePeriodSeconds": 0}
        amounts = {"cpu": cpu, "memory": "500Mi"}
        spec["containers"][0]["resources"] = {"limits": amounts, "requests": amounts}
        manifest["spec"] = spec
        return manifest

    return template


def term(labels: Mapping[str, str], topology_key: str, **more: object) -> JsonObject:
    """Return a pod affinity term."""
    selector = {"matchLabels": dict(labels)}
    return {"labelSelector": selector, "topologyKey": topology_key, **more}


def required(kind: str, *terms: JsonObject) -> JsonObject:
    """Return the spec of a pod with required terms of ``podAffinity`` or ``podAntiAffinity``."""
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def preferred(kind: str, *terms: JsonObject) -> JsonObject:
    """Return the spec of a pod with preferred terms, each of weight 1."""
    wishes = [{"weight": 1, "podAffinityTerm": each} for each in terms]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}


def spread(labels: Mapping[str, str], topology_key: str, *, skew: int, when: str) -> JsonObject:
    """Return a topology spread constraint."""
    return {
        "maxSkew": skew,
        "topologyKey": topology_key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": dict(labels)},
    }


def zone_in(*zones: str) -> JsonObject:
    """Return a node selector term for nodes of some zones."""
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}


def namespace_of(prefix: str, labels: Mapping[str, str]) -> Template:
    """Return the template of labelled namespaces ``<prefix>-<index>``."""
    return lambda index: {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": f"{prefix}-{index}", "labels": dict(labels)},
    }


def bound_volume(prefix: str, *, zone: str = "", namespace: str = NAMESPACE) -> Template:
    """Return the template of CSI volumes bound to claims of the same name; "" for any zone."""

    def volume(index: int) -> JsonObject:
        name = f"{prefix}-{index}"
        claim = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
        spec: JsonObject = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": claim,
            "csi": {"driver": DRIVER, "volumeHandle": name},
        }
        metadata: JsonObject = {"name": name}
        if zone:
            metadata["labels"] = {ZONE: zone}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [zone_in(zone)]}}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": metadata,
            "spec": spec,
            "status": {"phase": "Bound"},
        }

    return volume


def bound_claim(prefix: str, *, namespace: str = NAMESPACE) -> Template:
    """Return the template of claims bound to volumes of the same name."""

    def claim(index: int) -> JsonObject:
        name = f"{prefix}-{index}"
        manifest = _claim(name, namespace, "")
        manifest["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "true"}
        manifest["spec"]["volumeName"] = name
        manifest["status"] = {"phase": "Bound"}
        return manifest

    return claim


def waiting_claim(prefix: str, *, namespace: str = NAMESPACE) -> Template:
    """Return the template of claims that wait for their pod, of the class `waiting_class`."""
    return lambda index: _claim(f"{prefix}-{index}", namespace, WAITING_CLASS)


def waiting_class(index: int) -> JsonObject:
    """Return a storage class that provisions in two zones once a pod has its node."""
    del index
    zones = {"matchLabelExpressions": [{"key": ZONE, "values": ["zone1", "zone2"]}]}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": WAITING_CLASS},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [zones],
    }


def csi_node(index: int) -> JsonObject:
    """Return the CSINode of a default node: 39 volumes, as scheduler_perf sets it."""
    name = f"scheduler-perf-{index}"
    driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": 39}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def with_claims(template: Template, *prefixes: str) -> Template:
    """Return a template whose pods use the claims ``<prefix>-<index>``."""

    def claiming(index: int) -> JsonObject:
        manifest = template(index)
        manifest["spec"]["volumes"] = [
            {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"{prefix}-{index}"}}
            for i, prefix in enumerate(prefixes)
        ] + manifest["spec"].get("volumes", [])
        return manifest

    return claiming


def _claim(name: str, namespace: str, storage_class: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
