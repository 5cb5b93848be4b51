"""An operator as kopf's walkthrough has it: a claim of its own kind keeps a PersistentVolumeClaim.

Started as its authors tell, ``kopf run --standalone ephemeral.py``: peering is off. It creates,
resizes and relabels with lightkube, which starts faster than the official client;
what it made goes with its owner.
"""

from __future__ import annotations

from typing import Any

import kopf
from lightkube import Client
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, PersistentVolumeClaim

PLURAL = "ephemeralvolumeclaims"
client: Any = Client()


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
    client.create(PersistentVolumeClaim.from_dict(claim), namespace=namespace)
    kopf.info(body, reason="Made", message=f"PVC child is created: {name}")
    return {"pvc-name": name}


@kopf.on.update(PLURAL, field="spec.size")
def update_fn(new: Any, status: kopf.Status, namespace: Any, **_: Any) -> Any:
    name = status["create_fn"]["pvc-name"]
    patch = {"spec": {"resources": {"requests": {"storage": new}}}}
    client.patch(PersistentVolumeClaim, name, patch, namespace=namespace)
    return {"size": new}


@kopf.on.update(PLURAL, field="metadata.labels")
def relabel(new: Any, status: kopf.Status, namespace: Any, **_: Any) -> None:
    name = status["create_fn"]["pvc-name"]
    client.set(PersistentVolumeClaim, name, namespace=namespace, labels=new)


@kopf.on.delete(PLURAL)
def delete_fn(name: str, namespace: Any, **_: Any) -> None:
    # Kept by the finalizer until this is through.
    farewell = ConfigMap(metadata=ObjectMeta(name=f"{name}-farewell", namespace=namespace))
    client.create(farewell)
