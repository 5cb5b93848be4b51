"""An operator as kopf's walkthrough has it: a claim of its own kind keeps a PersistentVolumeClaim.

Started as its authors tell, ``kopf run --standalone ephemeral.py``: peering is off. It creates,
resizes and relabels with the official client; what it made goes with its owner.
"""

from __future__ import annotations

from typing import Any

import kopf
import kubernetes

# Untyped, as its users see it.
client: Any = kubernetes.client
config: Any = kubernetes.config
PLURAL = "ephemeralvolumeclaims"


@kopf.on.startup()
def configure(**_: Any) -> None:
    config.load_kube_config()


@kopf.on.create(PLURAL)
def create_fn(body: kopf.Body, spec: kopf.Spec, name: str, namespace: Any, **_: Any) -> Any:
    size = spec.get("size")
    if not size:
        raise kopf.PermanentError(f"Size must be set. Got {size!r}.")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": "at-once",
        },
    }
    kopf.adopt(claim)
    made = client.CoreV1Api().create_namespaced_persistent_volume_claim(namespace, claim)
    kopf.info(body, reason="Made", message=f"PVC child is created: {made.metadata.name}")
    return {"pvc-name": made.metadata.name}


@kopf.on.update(PLURAL, field="spec.size")
def update_fn(new: Any, status: kopf.Status, namespace: Any, **_: Any) -> Any:
    name = status["create_fn"]["pvc-name"]
    patch = {"spec": {"resources": {"requests": {"storage": new}}}}
    client.CoreV1Api().patch_namespaced_persistent_volume_claim(name, namespace, patch)
    return {"size": new}


@kopf.on.update(PLURAL, field="metadata.labels")
def relabel(new: Any, status: kopf.Status, namespace: Any, **_: Any) -> None:
    name = status["create_fn"]["pvc-name"]
    patch = {"metadata": {"labels": new}}
    client.CoreV1Api().patch_namespaced_persistent_volume_claim(name, namespace, patch)


@kopf.on.delete(PLURAL)
def delete_fn(name: str, namespace: Any, **_: Any) -> None:
    # Kept by the finalizer until this is through.
    body = {"metadata": {"name": f"{name}-farewell"}}
    client.CoreV1Api().create_namespaced_config_map(namespace, body)
