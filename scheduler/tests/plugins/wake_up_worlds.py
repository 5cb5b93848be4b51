"""Random small clusters with a waiting pod, and one random change of an object; from one seed."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from moorage.base.rng import Random, Streams

Json = dict[str, Any]
Objects = dict[str, dict[str, Json]]
"""Manifests by kind (a field of `RecordedObjects`) and by name."""

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DRIVER = "csi.example"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
KINDS = (
    "nodes",
    "pods",
    "namespaces",
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "csistoragecapacities",
)


class World:
    """A cluster, a pod that waits in namespace a, and a change.

    Attributes
    ----------
    before, after
        The objects before and after the change.
    waiting
        The waiting pod before and after the change: the change may be one of the pod itself.
    kind, name
        The object that changed; "waiting" for the pod itself.
    """

    kinds: tuple[str, ...] = KINDS
    """The kinds of objects that are drawn."""
    changes: tuple[str, ...] = ("nodes", "nodes", "pods", "pods", "waiting", *KINDS[2:])
    """The kinds of which one is drawn for the change."""

    def __init__(self, seed: int) -> None:
        self._rng: Random = Streams(seed).stream("wake-ups")
        self.before: Objects = {kind: {} for kind in self.kinds}
        for kind in self.kinds:
            for name in self._names(kind):
                if self._one_in(1.3):
                    self.before[kind][name] = self._draw(kind, name)
        waiting = self._waiting()
        self.after = deepcopy(self.before)
        self.waiting = (waiting, waiting)
        self.kind, self.name = self._change(waiting)

    # --- drawing --------------------------------------------------------------------------------

    def _one_in(self, count: float) -> bool:
        return self._rng.random() * count < 1

    def _pick(self, *values: Any) -> Any:
        return self._rng.choice(values)

    def _names(self, kind: str) -> list[str]:
        letters = {"pods": "pqrs", "nodes": "lmn", "csinodes": "lmn", "namespaces": "ab"}
        return {"storageclasses": ["late"], "csidrivers": [DRIVER]}.get(
            kind, list(letters.get(kind, "xyz"))
        )

    def _draw(self, kind: str, name: str) -> Json:
        made: Json = getattr(self, f"_{kind}")(name)
        made["metadata"]["uid"] = f"uid-{name}"
        return made

    def _nodes(self, name: str) -> Json:
        labels = {HOST: name}
        for key, values in ((ZONE, ("1", "2", None)), ("disk", ("ssd", "hdd", None))):
            value = self._pick(*values)
            labels |= {} if value is None else {key: value}
        taint = {"key": "k", "effect": self._pick("NoSchedule", "NoExecute", "PreferNoSchedule")}
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "taints": [taint] if self._one_in(4) else [],
                "unschedulable": self._one_in(6),
            },
            "status": {
                "allocatable": {
                    "cpu": self._pick("1", "2"),
                    "memory": "8Gi",
                    "pods": self._pick("1", "2", "5"),
                }
            },
        }

    def _pods(self, name: str) -> Json:
        found = self._pod(name, self._pick("a", "b"))
        found["spec"]["nodeName"] = self._pick(*self._names("nodes"))
        if self._one_in(8):
            found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return found

    def _waiting(self) -> Json:
        return self._pod("waiting", "a", spread=True)

    def _pod(self, name: str, namespace: str, *, spread: bool = False) -> Json:
        container: Json = {"name": "c", "resources": {"requests": self._requests()}}
        if self._one_in(5):
            container["ports"] = [{"hostPort": self._pick(80, 81), "containerPort": 80}]
        spec: Json = {"containers": [container], "schedulerName": "default-scheduler"}
        spec["affinity"] = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            if self._one_in(4):
                terms = [self._term() for _ in range(self._pick(1, 1, 2))]
                spec["affinity"][kind] = {REQUIRED: terms}
        if self._one_in(4):
            spec["nodeSelector"] = {"disk": "ssd"}
        if self._one_in(5):
            spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
        if spread and self._one_in(3):
            spec["topologySpreadConstraints"] = [self._rule() for _ in range(self._pick(1, 1, 2))]
        if self._one_in(3):
            spec["volumes"] = [self._volume(i) for i in range(self._pick(1, 1, 2))]
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": {"app": self._pick("u", "v")},
        }
        return {"metadata": metadata, "spec": spec}

    def _requests(self) -> Json:
        return {} if self._one_in(3) else {"cpu": self._pick("500m", "1", "2")}

    def _term(self) -> Json:
        term: Json = {
            "topologyKey": self._pick(ZONE, HOST),
            "labelSelector": {"matchLabels": {"app": self._pick("u", "v")}},
        }
        if self._one_in(3):
            term["namespaceSelector"] = {"matchLabels": {"env": "prod"}}
        elif self._one_in(4):
            term["namespaces"] = [self._pick("a", "b")]
        return term

    def _rule(self) -> Json:
        return {
            "maxSkew": 1,
            "topologyKey": self._pick(ZONE, HOST),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": self._pick("u", "v")}},
            "nodeTaintsPolicy": self._pick("Honor", "Ignore"),
            "nodeAffinityPolicy": self._pick("Honor", "Honor", "Ignore"),
        }

    def _volume(self, index: int) -> Json:
        name = f"v{index}"
        if self._one_in(4):
            disk = {"pdName": self._pick("d", "e"), "readOnly": self._one_in(3)}
            return {"name": name, "gcePersistentDisk": disk}
        return {"name": name, "persistentVolumeClaim": {"claimName": self._pick(*"xyz")}}

    def _namespaces(self, name: str) -> Json:
        return {"metadata": {"name": name, "labels": {"env": self._pick("prod", "dev")}}}

    def _persistentvolumes(self, name: str) -> Json:
        spec: Json = {
            "storageClassName": "late",
            "capacity": {"storage": self._pick("1Gi", "2Gi")},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": DRIVER, "volumeHandle": name},
        }
        labels = {}
        if self._one_in(3):
            zone = {"key": ZONE, "operator": "In", "values": [self._pick("1", "2")]}
            spec["nodeAffinity"] = {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
            }
        if self._one_in(3):
            labels[ZONE] = self._pick("1", "2")
        if self._one_in(2):
            spec["claimRef"] = {"namespace": "a", "name": name, "uid": f"uid-{name}"}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def _persistentvolumeclaims(self, name: str) -> Json:
        bound = self._one_in(2)
        done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if bound else {}
        return {
            "metadata": {"name": name, "namespace": "a", **done},
            "spec": {
                "storageClassName": "late",
                "accessModes": [self._pick("ReadWriteOnce", "ReadWriteOncePod")],
                "resources": {"requests": {"storage": self._pick("1Gi", "2Gi")}},
                **({"volumeName": name} if bound else {}),
            },
            "status": {"phase": "Bound" if bound else "Pending"},
        }

    def _storageclasses(self, name: str) -> Json:
        made: Json = {
            "metadata": {"name": name},
            "provisioner": DRIVER,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        if self._one_in(3):
            zone = {"key": ZONE, "values": [self._pick("1", "2")]}
            made["allowedTopologies"] = [{"matchLabelExpressions": [zone]}]
        return made

    def _csinodes(self, name: str) -> Json:
        driver: Json = {"name": DRIVER, "nodeID": name}
        if not self._one_in(4):
            driver["allocatable"] = {"count": self._pick(1, 2)}
        drivers = [] if self._one_in(6) else [driver]
        return {"metadata": {"name": name}, "spec": {"drivers": drivers}}

    def _csidrivers(self, name: str) -> Json:
        return {"metadata": {"name": name}, "spec": {"storageCapacity": self._one_in(2)}}

    def _csistoragecapacities(self, name: str) -> Json:
        zone = {} if self._one_in(3) else {"matchLabels": {ZONE: self._pick("1", "2")}}
        return {
            "metadata": {"name": name, "namespace": "kube-system"},
            "storageClassName": "late",
            "nodeTopology": zone,
            "capacity": self._pick("500Mi", "1Gi", "2Gi"),
        }

    # --- changing -------------------------------------------------------------------------------

    def _change(self, waiting: Json) -> tuple[str, str]:
        kind = self._pick(*self.changes)
        if kind == "waiting":
            changed = deepcopy(waiting)
            self._change_waiting(changed)
            self.waiting = (waiting, changed)
            return kind, kind
        name = self._pick(*self._names(kind))
        held = self.after[kind].get(name)
        if held is None:
            self.after[kind][name] = self._draw(kind, name)
        elif self._one_in(3) and not self._protected(kind, name):
            del self.after[kind][name]
        else:
            self.after[kind][name] = self._updated(kind, name, held)
        return kind, name

    def _change_waiting(self, pod: Json) -> None:
        if self._one_in(2):
            pod["metadata"]["labels"] = {"app": self._pick("u", "v", "w")}
        else:
            more = {"key": "k", "operator": "Exists", "effect": "NoSchedule"}
            pod["spec"].setdefault("tolerations", []).append(more)

    def _protected(self, kind: str, name: str) -> bool:
        """Whether a finalizer keeps the object: a claim that a pod on a node uses."""
        if kind != "persistentvolumeclaims":
            return False
        pods = [pod["spec"] for pod in self.before["pods"].values()]
        return any(
            volume.get("persistentVolumeClaim", {}).get("claimName") == name
            for spec in pods
            if spec.get("nodeName")
            for volume in spec.get("volumes", ())
        )

    def _updated(self, kind: str, name: str, held: Json) -> Json:
        """Return another version; of a pod, a part that may change."""
        drawn = self._draw(kind, name)
        if kind == "csistoragecapacities":
            return {**held, "capacity": drawn["capacity"]}  # the rest is immutable
        if kind == "persistentvolumeclaims":
            if "volumeName" in held["spec"]:  # a bound claim stays bound, and may only grow
                return {**held, "spec": held["spec"] | {"resources": drawn["spec"]["resources"]}}
            drawn["spec"]["accessModes"] = held["spec"]["accessModes"]  # immutable
        if kind != "pods":
            return drawn
        changed = deepcopy(held)
        which = self._pick("labels", "end", "less")
        if which == "labels":
            changed["metadata"]["labels"] = drawn["metadata"]["labels"]
        elif which == "end":
            changed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        else:
            changed["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
        return changed
