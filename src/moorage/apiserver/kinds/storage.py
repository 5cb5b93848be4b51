"""The kinds of ``storage.k8s.io``: storage classes, and the objects that CSI drivers publish.

Mirrors kubernetes v1.36 pkg/apis/storage/{v1/defaults.go,validation}.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.apiserver.built_in import resource_type
from moorage.apiserver.kind import Column, FieldError, Obj, duplicate, forbidden, required
from moorage.apiserver.kinds.cells import AGE, NAME, NONE, UNSET, column, count, flag, name_of
from moorage.apiserver.kinds.fields import (
    defaults,
    each,
    each_one_of,
    given,
    kept,
    needed,
    one_of,
    rules,
    within,
)
from moorage.apiserver.kinds.quantities import canonical_quantity, check_quantity
from moorage.apiserver.kinds.selectors import check_label_selector
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import Json, child, items, objects, text
from moorage.apiserver.kinds.warnings import of_expressions, of_labels

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
"""Annotation of the class for claims that name none."""


def _class_name(obj: Obj, now_ns: int) -> str:
    is_default = child(obj, "metadata", "annotations").get(DEFAULT_CLASS) == "true"
    return f"{name_of(obj)} (default)" if is_default else name_of(obj)


def _policy(obj: Obj) -> str:
    return text(obj, "reclaimPolicy") or "Delete"


def _mode(obj: Obj) -> str:
    return text(obj, "volumeBindingMode") or "Immediate"


def _closed(name: str, value: Any) -> FieldError:
    return forbidden(name, f"updates to {name} are forbidden.")


_class_closed = kept("parameters provisioner reclaimPolicy", _closed)
_class_kept = kept("volumeBindingMode")


def _class_change(new: Obj, old: Obj) -> list[FieldError]:
    return _class_closed(new, old) + _class_kept(new, old)


def _topology_keys(driver: Json, where: str) -> list[FieldError]:
    errors, seen = [], set[str]()
    for key in items(driver, "topologyKeys"):
        if key in seen:
            errors.append(duplicate(f"{where}.topologyKeys", key))
        seen.add(key)
    return errors


_driver = rules(("name nodeID", needed()), _topology_keys, ("allocatable.count", within(0)))


def _audiences(obj: Obj) -> str:
    found = objects(obj, "spec", "tokenRequests")
    return ",".join(text(each, "audience") for each in found) if found else UNSET


def _modes(obj: Obj) -> str:
    return ",".join(str(mode) for mode in items(obj, "spec", "volumeLifecycleModes"))


def _attaches(obj: Obj) -> bool:
    return child(obj, "spec").get("attachRequired") is not False


def _canonical_sizes(obj: Obj) -> None:
    for key in ("capacity", "maximumVolumeSize"):
        if obj.get(key) is not None:
            obj[key] = canonical_quantity(obj[key])


def _source(source: Json | None, where: str) -> list[FieldError]:
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    found = [each for each in (source or {}).values() if each]
    if len(found) == 1:
        return []
    return [forbidden(where, detail) if found else required(where, detail)]


def _warn_of_class(obj: Obj) -> list[str]:
    keys = [
        (f"allowedTopologies[{i}].matchLabelExpressions[{j}]", text(each, "key"))
        for i, term in enumerate(objects(obj, "allowedTopologies"))
        for j, each in enumerate(objects(term, "matchLabelExpressions"))
    ]
    return of_labels(keys, named=False)


def _warn_of_capacity(obj: Obj) -> list[str]:
    topology = child(obj, "nodeTopology")
    keys = [(f"nodeTopology.matchLabels.{key}", key) for key in child(topology, "matchLabels")]
    return of_expressions(topology, "nodeTopology") + of_labels(keys, named=False)


STORAGE_CLASS = ServedKind(
    resource=resources.STORAGE_CLASSES,
    acted_on_by="the volume controller, the scheduler",
    columns=(
        Column("Name", "string", "name", NAME.description, cell=_class_name),
        column("Provisioner", "provisioner", "Who makes the volumes"),
        column("ReclaimPolicy", _policy, "What happens to a volume when its claim goes"),
        column("VolumeBindingMode", _mode, "When claims are bound"),
        flag("AllowVolumeExpansion", "allowVolumeExpansion", "Whether claims may grow"),
        AGE,
    ),
    defaults=defaults(unset={"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
    rules=rules(
        ("provisioner", needed()),
        ("reclaimPolicy", one_of("Delete", "Retain")),
        ("volumeBindingMode", one_of("Immediate", "WaitForFirstConsumer")),
        (
            "allowedTopologies",
            each(rules(("matchLabelExpressions", each(rules(("values key", needed())))))),
        ),
    ),
    change=_class_change,
    warn=_warn_of_class,
)
VOLUME_ATTRIBUTES_CLASS = ServedKind(
    resource=resource_type("storage.k8s.io/v1", "volumeattributesclasses"),
    columns=(NAME, column("DriverName", "driverName", "Who changes the volumes"), AGE),
    rules=rules(
        ("driverName", needed()),
        ("parameters", needed("must contain at least one key/value pair")),
    ),
    change=kept("driverName parameters", _closed),
)
CSI_NODE = ServedKind(
    resource=resources.CSI_NODES,
    acted_on_by="the scheduler",
    columns=(
        NAME,
        count("Drivers", lambda obj: len(objects(obj, "spec", "drivers")), "Drivers on the node"),
        AGE,
    ),
    defaults=defaults(unset={"spec.drivers": []}),
    rules=rules(("spec.drivers", each(_driver, unique="name"))),
)
CSI_DRIVER = ServedKind(
    resource=resources.CSI_DRIVERS,
    acted_on_by="the scheduler",
    columns=(
        NAME,
        flag("AttachRequired", _attaches, "Volumes have to be attached"),
        flag("PodInfoOnMount", "spec.podInfoOnMount", "The driver is told about the pod"),
        flag("StorageCapacity", "spec.storageCapacity", "The driver publishes capacities"),
        column("TokenRequests", _audiences, "Audiences of the tokens it asks for"),
        flag(
            "RequiresRepublish", "spec.requiresRepublish", "Volumes are published again and again"
        ),
        column("Modes", _modes, "Kinds of volumes the driver serves", empty=NONE),
        AGE,
    ),
    defaults=defaults(
        unset={
            "spec.attachRequired": True,
            "spec.podInfoOnMount": False,
            "spec.storageCapacity": False,
            "spec.fsGroupPolicy": "ReadWriteOnceWithFSType",
            "spec.requiresRepublish": False,
            "spec.seLinuxMount": False,
        },
        empty={"spec.volumeLifecycleModes": ["Persistent"]},
    ),
    rules=rules(
        ("spec.fsGroupPolicy", one_of("File", "None", "ReadWriteOnceWithFSType")),
        ("spec.volumeLifecycleModes", each_one_of("Ephemeral", "Persistent")),
    ),
    change=kept("spec.attachRequired spec.volumeLifecycleModes"),
)
CSI_STORAGE_CAPACITY = ServedKind(
    resource=resources.CSI_STORAGE_CAPACITIES,
    acted_on_by="the scheduler",
    columns=(
        NAME,
        column("StorageClassName", "storageClassName", "Storage class the capacity is for"),
        column("Capacity", "capacity", "Space that is left", empty=UNSET),
    ),
    defaults=_canonical_sizes,
    rules=rules(
        ("nodeTopology", check_label_selector),
        ("storageClassName", needed()),
        ("capacity maximumVolumeSize", given(check_quantity)),
    ),
    change=kept("nodeTopology storageClassName"),
    warn=_warn_of_capacity,
)
VOLUME_ATTACHMENT = ServedKind(
    resource=resources.VOLUME_ATTACHMENTS,
    acted_on_by="the scheduler",
    columns=(
        NAME,
        column("Attacher", "spec.attacher", "Driver that attaches the volume"),
        column("PV", "spec.source.persistentVolumeName", "Volume to attach"),
        column("Node", "spec.nodeName", "Node to attach it to"),
        flag("Attached", "status.attached", "Whether it is attached"),
        AGE,
    ),
    defaults=defaults(unset={"status.attached": False}),
    open_status=(),
    rules=rules(("spec.attacher spec.nodeName", needed()), ("spec.source", _source)),
    change=kept("spec"),
)
KINDS = (
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
)
