"""The volume plugins equal their scalar reference, fresh and kept up to date by increments.

Covers rejections and reasons of Filter on random clusters, before and after random changes and
inside trials. PreFilter's rejections are in the recordings and in test_volume_binding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.api.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.base.rng import Streams
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Code
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_lab.fault_sim.reference import volumes as reference
from scheduler.tests.plugins.builders import Rejections, make, node

NAMES = ("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits")
DRIVERS = ("d1.example", "d2.example")


class World:
    """A random cluster with volumes, changed step by step."""

    def __init__(self, seed: int) -> None:
        self.draw = Streams(seed).stream("world")
        self.snapshot = Snapshot()
        self.listers = self.snapshot.listers
        self.placed: dict[str, list[Pod]] = {}
        self.count = 0
        for index in range(self.draw.randint(1, 6)):
            self.add_node(f"n{index}")
        for name, provisioner, capacity in (
            ("static", "kubernetes.io/no-provisioner", None),
            ("one", DRIVERS[0], True),
            ("two", DRIVERS[1], False),
        ):
            self.add_class(name, provisioner)
            driver = {"metadata": {"name": provisioner}, "spec": {"storageCapacity": capacity}}
            self.listers.csi_drivers.put(from_dict(CSIDriver, driver))
        for _ in range(10):
            self.add_volume()
        for _ in range(8):
            self.add_claim()
        for _ in range(6):
            self.place()

    def pick(self, *choices: Any) -> Any:
        return self.draw.choice(choices)

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def add_node(self, name: str) -> None:
        keys = (reference.ZONE, reference.BETA_ZONE, reference.REGION, "rack")
        labels = {key: self.pick("a", "b", "c") for key in keys if self.pick(True, True, False)}
        self.snapshot.table.add_node(node(name, labels=labels))
        if self.pick(True, True, False):
            self.add_csi_node(name)

    def add_csi_node(self, name: str) -> None:
        drivers = [
            {"name": driver, "allocatable": self.pick(None, {"count": self.pick(0, 1, 2, 3)})}
            for driver in (*DRIVERS, "pd.csi.storage.gke.io")
        ]
        self.listers.csi_nodes.put(
            from_dict(CSINode, {"metadata": {"name": name}, "spec": {"drivers": drivers}})
        )

    def add_class(self, name: str, provisioner: str) -> None:
        term = {"matchLabelExpressions": [{"key": "rack", "values": [self.pick("a", "b"), "c"]}]}
        body = {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": self.pick([], [term], [term, {}]),
        }
        self.listers.storage_classes.put(from_dict(StorageClass, body))

    def _add_capacity(self) -> None:
        body = {
            "metadata": {"name": self.name("capacity")},
            "storageClassName": self.pick("one", "two"),
            "nodeTopology": self.pick(None, {}, {"matchLabels": {"rack": self.pick("a", "b")}}),
            "capacity": self.pick(None, "1Gi", "2Gi"),
            "maximumVolumeSize": self.pick(None, None, "1Gi", "1073741823500m"),
        }
        self.listers.csi_storage_capacities.put(from_dict(CSIStorageCapacity, body))

    def add_volume(self) -> str:
        """Add a volume; sizes differ, because the order of equals is not specified."""
        name = self.name("pv")
        item = {"key": self.pick("rack", reference.ZONE), "operator": "In", "values": ["a"]}
        other = {"key": "rack", "operator": self.pick("Exists", "DoesNotExist")}
        terms = [{"matchExpressions": [item]}, {"matchExpressions": [other]}]
        labels = {reference.ZONE: self.pick("a", "a__b", "c__ a", "a__")}
        spec = {
            "capacity": {"storage": f"{self.pick(0, 1024, 2048) + self.count}Mi"},
            "accessModes": self.pick(["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"]),
            "storageClassName": self.pick("static", "static", "one"),
            "volumeMode": self.pick("Filesystem", "Filesystem", "Filesystem", "Block"),
        }
        if self.pick(True, False):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms[: self.pick(1, 1, 2)]}}
        if self.pick(True, False):
            handle = f"handle-{self.pick(1, 2, 3, 4)}"
            spec["csi"] = {"driver": self.pick(*DRIVERS), "volumeHandle": handle}
        body = {
            "metadata": {"name": name, "labels": self.pick({}, labels)},
            "spec": spec,
            "status": {"phase": self.pick("Available", "Available", "Available", "Released")},
        }
        self.listers.persistent_volumes.put(from_dict(PersistentVolume, body))
        return name

    def add_claim(self) -> None:
        name = self.name("c")
        spec: dict[str, Any] = {
            "accessModes": [self.pick("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod")],
            "resources": {"requests": {"storage": self.pick("512Mi", "1Gi", "2Gi")}},
            "storageClassName": self.pick("static", "static", "one", "two"),
        }
        annotations = {}
        kind = self.pick("bound", "wait", "wait", "wait", "reserved", "selected")
        if kind == "bound":
            spec["volumeName"] = self.add_volume()
            annotations["pv.kubernetes.io/bind-completed"] = "yes"
        elif kind == "selected":
            annotations[reference.SELECTED] = self.pick(*self.snapshot.names)
        elif kind == "reserved":
            volume = self.listers.persistent_volumes.get(self.add_volume())
            reference_ = {"namespace": "default", "name": name, "uid": self.pick("", name, "x")}
            body = {"claimRef": reference_, "storageClassName": spec["storageClassName"]}
            self.listers.persistent_volumes.put(changed(volume, PersistentVolume, body))
        metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
        body = {"metadata": metadata, "spec": spec}
        self.listers.persistent_volume_claims.put(from_dict(PersistentVolumeClaim, body))

    def pod(self) -> Pod:
        names = [claim.name for claim in self.listers.persistent_volume_claims.all()]
        self.draw.shuffle(names)
        volumes: list[dict[str, Any]] = [
            {"name": f"v{index}", "persistentVolumeClaim": {"claimName": each}}
            for index, each in enumerate(names[: self.pick(0, 1, 1, 2, 3)])
        ]
        read_only = self.pick(True, False)
        disks: list[dict[str, Any]] = [
            {"gcePersistentDisk": {"pdName": self.pick("x", "y"), "readOnly": read_only}},
            {"awsElasticBlockStore": {"volumeID": self.pick("vol-1", "vol-2")}},
            {"iscsi": {"iqn": self.pick("q", "r"), "readOnly": read_only}},
            {
                "rbd": {
                    "monitors": self.pick(["m"], ["n"], ["m", "n"]),
                    "pool": "p",
                    "image": self.pick("i", "j"),
                    "readOnly": read_only,
                }
            },
        ]
        if self.pick(True, False, False):
            volumes.append({"name": "disk", **self.pick(*disks)})
        name = self.name("p")
        return from_dict(
            Pod,
            {
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"volumes": volumes},
            },
        )

    def place(self) -> None:
        name, pod = self.pick(*self.snapshot.names), self.pod()
        self.snapshot.table.add_pod(pod, name)
        self.placed.setdefault(name, []).append(pod)

    def _unplace(self) -> None:
        used = sorted(name for name, pods in self.placed.items() if pods)
        if used:
            pods = self.placed[self.pick(*used)]
            self.snapshot.table.remove_pod(pods.pop(self.draw.randrange(len(pods))).metadata.uid)

    def _attach(self) -> None:
        names = [volume.name for volume in self.listers.persistent_volumes.all()]
        body = {
            "metadata": {"name": f"attachment{self.pick(1, 2, 3, 4, 5)}"},
            "spec": {
                "attacher": self.pick(*DRIVERS),
                "source": {"persistentVolumeName": self.pick(*names, "gone")},
                "nodeName": self.pick(*self.snapshot.names),
            },
        }
        self.listers.volume_attachments.put(from_dict(VolumeAttachment, body))

    def _drop_volume(self) -> None:
        volumes = list(self.listers.persistent_volumes.all())
        self.listers.persistent_volumes.remove(self.pick(*volumes))

    def _reserve_volume(self) -> None:
        volume = self.pick(*self.listers.persistent_volumes.all())
        ref = self.pick(None, {"namespace": "default", "name": "other", "uid": "u"})
        spec = {"claimRef": ref}
        self.listers.persistent_volumes.put(changed(volume, PersistentVolume, spec))

    def _relabel(self) -> None:
        self.add_node(self.pick(*self.snapshot.names))

    def _drop_node(self) -> None:
        if self.snapshot.num_nodes > 1:
            name = self.pick(*self.snapshot.names)
            self.snapshot.table.remove_node(name)
            self.placed.pop(name, None)

    def change(self) -> None:
        steps: list[Callable[[], Any]] = [
            self.place,
            self._unplace,
            self._attach,
            self.add_volume,
            self.add_claim,
            self._add_capacity,
            self._drop_volume,
            self._reserve_volume,
            self._relabel,
            lambda: self.add_node(self.name("late")),
            self._drop_node,
            lambda: self.add_csi_node(self.pick(*self.snapshot.names)),
            lambda: self.add_class("one", DRIVERS[0]),
        ]
        self.draw.choice(steps)()


def changed(obj: Any, kind: type[Any], spec: dict[str, Any]) -> Any:
    body = msgspec.to_builtins(obj)
    body["spec"] = {**body["spec"], **spec}
    return from_dict(kind, body)


def expected(world: World, asked: Pod) -> dict[str, Rejections]:
    listers, found = world.listers, {name: Rejections() for name in NAMES}
    everywhere = [pod for pods in world.placed.values() for pod in pods]
    for row, name in enumerate(world.snapshot.names):
        here, on_node = world.snapshot.node(row), world.placed.get(name, [])
        rejections = {
            "VolumeBinding": reference.binding(asked, here, listers),
            "VolumeRestrictions": reference.restrictions(asked, on_node, everywhere, listers),
            "NodeVolumeLimits": reference.limits(asked, here, on_node, listers),
        }
        if all(v.name for v in bound_volumes(world, asked)):
            rejections["VolumeZone"] = reference.zone(asked, here, listers)
        for plugin, rejection in rejections.items():
            if rejection is not None:
                found[plugin][name] = rejection
    return found


def bound_volumes(world: World, asked: Pod) -> list[Any]:
    claims = reference.claims(asked, world.listers)
    names = [claim.spec.volume_name for claim in claims if claim.spec.volume_name]
    return [world.listers.persistent_volumes.get(name) for name in names]


def answers(made: dict[str, Any], snapshot: Snapshot, asked: Pod) -> dict[str, Rejections]:
    found, info = {}, PodInfo(asked)
    for name, (plugin, reasons) in made.items():
        state = CycleState()
        _, status = plugin.pre_filter(state, info, snapshot)
        found[name] = Rejections()
        if status.code is Code.SKIP:
            continue
        assert status.ok, status
        answer = plugin.filter(state, info, snapshot.all())
        for row, node_name in enumerate(snapshot.names):
            if answer is not None and answer.code_n[row]:
                code = Code(int(answer.code_n[row])).text
                found[name][node_name] = (code, reasons.reasons(int(answer.reason_n[row])))
            few = plugin.filter(state, info, snapshot.rows([row]))
            ours = 0 if few is None else int(few.code_n[0])
            assert ours == (0 if answer is None else int(answer.code_n[row])), (name, node_name)
    return found


def all_made(snapshot: Snapshot) -> dict[str, Any]:
    return {name: make(name, snapshot) for name in NAMES}


@pytest.mark.parametrize("seed", range(60))
def test_answers_equal_the_reference_after_every_change(seed):
    world = World(seed)
    kept = all_made(world.snapshot)
    for _ in range(12):
        asked = world.pod()
        if all(volume is not None for volume in bound_volumes(world, asked)):
            wanted = expected(world, asked)
            assert answers(kept, world.snapshot, asked) == wanted
            assert answers(all_made(world.snapshot), world.snapshot, asked) == wanted
        for _ in range(3):
            world.change()


@pytest.mark.parametrize("seed", range(20))
def test_answers_follow_a_trial_and_its_undo(seed):
    world = World(seed)
    kept = all_made(world.snapshot)
    asked, extra = world.pod(), world.pod()
    before = answers(kept, world.snapshot, asked)
    row = world.draw.randrange(world.snapshot.num_nodes)
    name = world.snapshot.names[row]
    with world.snapshot.trial() as trial:
        trial.add_pod(PodInfo(extra), row)
        pods = world.placed.setdefault(name, [])
        pods.append(extra)
        if all(volume is not None for volume in bound_volumes(world, asked)):
            assert answers(kept, world.snapshot, asked) == expected(world, asked)
        pods.remove(extra)
    assert answers(kept, world.snapshot, asked) == before
