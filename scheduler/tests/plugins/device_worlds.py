"""Random small clusters with devices, a pod that waits with a claim, and one random change."""

from __future__ import annotations

from copy import deepcopy

from scheduler.tests.plugins.wake_up_worlds import HOST, ZONE, Json, World

DRIVER = "d.example"
KINDS = ("nodes", "deviceclasses", "resourceslices", "resourceclaims")
_NAMES = {
    "nodes": "lmn",
    "deviceclasses": ["gpu"],
    "resourceslices": "xyz",
    "resourceclaims": ["mine", "other", "third"],
}


class DeviceWorld(World):
    """A cluster with devices, a pod that waits in namespace a for its claim, and a change.

    Claims of other pods hold devices; some end, some lose their devices. A claim that the waiting
    pod names may belong to another pod, or be allocated for a node.
    """

    kinds: tuple[str, ...] = KINDS
    changes: tuple[str, ...] = (
        *KINDS,
        "resourceslices",
        "resourceclaims",
        "resourceclaims",
        "waiting",
    )

    def _names(self, kind: str) -> list[str]:
        return list(_NAMES[kind])

    def _waiting(self) -> Json:
        container: Json = {"name": "c", "resources": {"claims": [{"name": "r"}]}}
        spec: Json = {"containers": [container], "schedulerName": "default-scheduler"}
        if self._one_in(3):
            spec["resourceClaims"] = [{"name": "r", "resourceClaimTemplateName": "t"}]
        else:
            spec["resourceClaims"] = [{"name": "r", "resourceClaimName": "mine"}]
        waiting: Json = {"name": "waiting", "namespace": "a", "uid": "uid-waiting"}
        pod: Json = {"metadata": waiting, "spec": spec}
        if "resourceClaimTemplateName" in spec["resourceClaims"][0] and self._one_in(2):
            pod["status"] = {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "mine"}]}
        return pod

    def _nodes(self, name: str) -> Json:
        labels = {HOST: name}
        zone = self._pick("1", "2", None)
        labels |= {} if zone is None else {ZONE: zone}
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
        return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}

    def _deviceclasses(self, name: str) -> Json:
        spec = {"selectors": [{"cel": {"expression": self._model()}}]} if self._one_in(2) else {}
        return {"metadata": {"name": name}, "spec": spec}

    def _model(self) -> str:
        return f'device.attributes["{DRIVER}"].model == "{self._pick("a", "b")}"'

    def _resourceslices(self, name: str) -> Json:
        pool = {"name": name, "generation": 1, "resourceSliceCount": self._pick(1, 1, 1, 2)}
        spec: Json = {"driver": DRIVER, "pool": pool}
        spec["devices"] = [self._device(i) for i in range(self._pick(0, 1, 1, 2))]
        where = self._pick("node", "node", "all", "zone")
        if where == "node":
            spec["nodeName"] = self._pick(*self._names("nodes"))
        elif where == "all":
            spec["allNodes"] = True
        else:
            zone = {"key": ZONE, "operator": "In", "values": [self._pick("1", "2")]}
            spec["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
        return {"metadata": {"name": name}, "spec": spec}

    def _device(self, index: int) -> Json:
        device: Json = {
            "name": f"d{index}",
            "attributes": {"model": {"string": self._pick("a", "b")}},
        }
        if self._one_in(4):
            device["taints"] = [{"key": "k", "effect": self._pick("NoSchedule", "NoExecute")}]
        return device

    def _resourceclaims(self, name: str) -> Json:
        exactly: Json = {"deviceClassName": "gpu"}
        if self._one_in(4):
            exactly["allocationMode"] = "All"
        else:
            exactly["count"] = self._pick(1, 1, 2)
        if self._one_in(3):
            exactly["selectors"] = [{"cel": {"expression": self._model()}}]
        if self._one_in(4):
            exactly["tolerations"] = [{"key": "k", "operator": "Exists"}]
        metadata: Json = {"name": name, "namespace": "a", "resourceVersion": "1"}
        if name == "mine":  # also made from a template: it belongs to the pod
            owner = {"kind": "Pod", "name": "waiting", "uid": "uid-waiting", "controller": True}
            metadata["ownerReferences"] = [{"apiVersion": "v1", **owner}]
        status = self._allocated() if self._one_in(4 if name == "mine" else 1.5) else {}
        if status and (name != "mine" or self._one_in(3)):
            status["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "uid-p"}]
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        return {"metadata": metadata, "spec": spec, "status": status}

    def _allocated(self) -> Json:
        """Return the status of a claim that holds a device, which can be used on one node."""
        result = {
            "request": "r",
            "driver": DRIVER,
            "pool": self._pick(*"xyz"),
            "device": self._pick("d0", "d1"),
        }
        host = {"key": "metadata.name", "operator": "In", "values": [self._pick(*"lmn")]}
        selector = {"nodeSelectorTerms": [{"matchFields": [host]}]}
        return {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}}

    def _change_waiting(self, pod: Json) -> None:
        """Note the claim that was made for the pod, which is all that changes of it."""
        pod["status"] = {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "mine"}]}

    def _protected(self, kind: str, name: str) -> bool:
        """Whether a finalizer keeps the object: a claim that is reserved for a pod."""
        if kind != "resourceclaims":
            return False
        return bool(self.before[kind][name].get("status", {}).get("reservedFor"))

    def _updated(self, kind: str, name: str, held: Json) -> Json:
        drawn = self._draw(kind, name)
        if kind == "resourceclaims":
            # The spec is immutable; devices are given back, or others are allocated.
            return {**held, "status": self._pick({}, deepcopy(drawn["status"]))}
        if kind == "resourceslices":
            return {**held, "spec": held["spec"] | {"devices": drawn["spec"]["devices"]}}
        return drawn
