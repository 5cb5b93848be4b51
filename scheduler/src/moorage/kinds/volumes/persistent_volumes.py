"""PersistentVolume and PersistentVolumeClaim.

Mirrors kubernetes v1.36 pkg/apis/core/v1/defaults.go, pkg/apis/core/validation, and the admission
plugins DefaultStorageClass, StorageObjectInUseProtection and PersistentVolumeClaimResize.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.api.resources import ResourceType
from moorage.api.volume import CLAIM_PROTECTION, VOLUME_PROTECTION
from moorage.kinds import status
from moorage.kinds.cells import AGE, NAME, UNSET, column, wide
from moorage.kinds.fields import (
    defaults,
    rules,
)
from moorage.kinds.kind import Context, FieldError, Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, attach, child, items, objects, put_finalizer, text
from moorage.kinds.values.default_class import default_class
from moorage.kinds.values.quantities import nano_of
from moorage.kinds.values.warnings import of_annotations, of_claim, of_expressions, of_volume
from moorage.kinds.volumes.classes import DEFAULT_CLASS
from moorage.kinds.volumes.sources import check_initiator
from moorage.kinds.volumes.volume_rules import (
    CLASS_ANNOTATION,
    check_claim_change,
    check_claim_spec,
    check_claim_status,
    check_volume_change,
    check_volume_spec,
)

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
SOURCE_DEFAULTS = {
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "iscsi": {"iscsiInterface": "default"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""Defaults of sources that pods and persistent volumes share, for empty texts too."""
AZURE_DISK = {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False}


def default_claim_spec(spec: Json) -> None:
    """Default the spec of a persistent volume claim in place."""
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"


default_claim = defaults(
    lambda obj: default_claim_spec(attach(obj, "spec")),
    empty={"status.phase": "Pending"},
)
"""Default a persistent volume claim, in place."""


_give_class = default_class(
    "storageclasses",
    marked=DEFAULT_CLASS,
    field="storageClassName",
    older=CLASS_ANNOTATION,
)


def _admit_claim(obj: Json, ctx: Context, resource: ResourceType) -> None:
    _give_class(obj, ctx, resource)
    put_finalizer(obj, CLAIM_PROTECTION)


_SOURCES = ("dataSource", "dataSourceRef")
_OLD_SOURCES = frozenset(
    {("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")}
)
"""What ``dataSource`` could name before ``dataSourceRef``, as (API group, kind)."""


def settle_sources(spec: Json, before: Obj) -> None:
    """Give both fields of a claim's data source the same contents, in place.

    Without a reference, a source of any kind but the first two is dropped, as an old server did.
    ``before`` is the spec that is updated, empty for a new claim; a claim that has a source keeps
    the fields. Rule mirrored: kubernetes v1.36 pkg/api/persistentvolumeclaim/util.go
    (EnforceDataSourceBackwardsCompatibility, NormalizeDataSources), and DropDisabledFields for a
    reference into another namespace.
    """
    if all(before.get(name) is None for name in _SOURCES):
        if text(spec, "dataSourceRef", "namespace"):  # gate CrossNamespaceVolumeDataSource is off
            del spec["dataSourceRef"]
        named = child(spec, "dataSource")
        kept = (text(named, "apiGroup"), text(named, "kind")) in _OLD_SOURCES
        if spec.get("dataSourceRef") is None and not kept:
            spec.pop("dataSource", None)
    source, reference = (spec.get(name) for name in _SOURCES)
    if reference is None and source is not None:
        spec["dataSourceRef"] = dict(source)
    elif source is None and reference is not None and not text(reference, "namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


def _create_claim(obj: Json, ctx: Context, resource: ResourceType) -> None:
    settle_sources(attach(obj, "spec"), {})


def _update_claim(new: Json, old: Json, ctx: Context) -> None:
    settle_sources(attach(new, "spec"), child(old, "spec"))
    _check_expansion(new, old, ctx)


def _check_expansion(new: Json, old: Json, ctx: Context) -> None:
    """Refuse to expand a claim that is not bound, or whose class does not allow it."""
    was, now = (
        nano_of(child(each, "spec", "resources", "requests").get("storage")) or 0
        for each in (old, new)
    )
    if now <= was:
        return
    name = text(old, "metadata", "name")
    if text(old, "status", "phase") != "Bound":
        why = "Only bound persistent volume claims can be expanded"
        raise status.forbidden(resources.PERSISTENT_VOLUME_CLAIMS, name, why)
    found = ctx.lookup("storageclasses", None, _class_of(old)) if _class_of(old) else None
    if found is None or found.get("allowVolumeExpansion") is not True:
        why = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions "
            "the pvc must support resize"
        )
        raise status.forbidden(resources.PERSISTENT_VOLUME_CLAIMS, name, why)


def _admit_volume(obj: Json, ctx: Context, resource: ResourceType) -> None:
    put_finalizer(obj, VOLUME_PROTECTION)


def _class_of(obj: Obj) -> str:
    """Storage class of a volume or claim; the old annotation takes precedence."""
    annotations = child(obj, "metadata", "annotations")
    if CLASS_ANNOTATION in annotations:
        return str(annotations[CLASS_ANNOTATION])
    return text(obj, "spec", "storageClassName")


def _attributes_class(obj: Obj) -> str:
    found = child(obj, "spec").get("volumeAttributesClassName")
    return UNSET if found is None else str(found)


def _phase(obj: Obj) -> str:
    deleted = text(obj, "metadata", "deletionTimestamp")
    return "Terminating" if deleted else text(obj, "status", "phase")


def _modes_of(obj: Obj, part: str) -> str:
    modes = items(obj, part, "accessModes")
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _claim_of(obj: Obj) -> str:
    claim = child(obj, "spec", "claimRef")
    return f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else ""


def _bound_size(obj: Obj) -> str:
    size = str(child(obj, "status", "capacity").get("storage", "0"))
    return size if text(obj, "spec", "volumeName") else ""


def _bound_modes(obj: Obj) -> str:
    return _modes_of(obj, "status") if text(obj, "spec", "volumeName") else ""


_CLASSES = (
    column("StorageClass", _class_of, "Its storage class"),
    column("VolumeAttributesClass", _attributes_class, "Its volume attributes class"),
)
_MODE = wide("VolumeMode", "spec.volumeMode", "Filesystem or Block", empty=UNSET)

_ANNOTATIONS = {
    CLASS_ANNOTATION: 'deprecated since v1.8; use "storageClassName" attribute instead',
}


def _initiator(obj: Obj, where: str) -> list[FieldError]:
    name = text(obj, "metadata", "name")
    return check_initiator(child(obj, "spec"), name, "metadata.name")


def _warn_of_volume(obj: Obj) -> list[str]:
    warnings, spec = of_annotations(obj, _ANNOTATIONS), child(obj, "spec")
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle":
        warnings.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        )
    for index, term in enumerate(objects(spec, "nodeAffinity", "required", "nodeSelectorTerms")):
        warnings += of_expressions(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    return warnings + of_volume(spec, "spec")


def _warn_of_claim(obj: Obj) -> list[str]:
    return of_annotations(obj, _ANNOTATIONS) + of_claim(child(obj, "spec"), "spec")


VOLUME = ServedKind(
    resource=resources.PERSISTENT_VOLUMES,
    shown_when_deleted=True,
    acted_on_by="the volume controller, the scheduler",
    columns=(
        NAME,
        column("Capacity", "spec.capacity.storage", "Size of the volume", empty="0"),
        column("Access Modes", lambda obj: _modes_of(obj, "spec"), "Ways it can be mounted"),
        column(
            "Reclaim Policy",
            "spec.persistentVolumeReclaimPolicy",
            "What happens to it when its claim goes",
        ),
        column("Status", _phase, "Phase of the volume"),
        column("Claim", _claim_of, "Claim it belongs to"),
        *_CLASSES,
        column("Reason", "status.reason", "Why it failed"),
        AGE,
        _MODE,
    ),
    defaults=defaults(
        unset={
            "spec.volumeMode": "Filesystem",
            "spec.hostPath?.type": "",
            **{f"spec.azureDisk?.{name}": value for name, value in AZURE_DISK.items()},
        },
        empty={
            "status.phase": "Pending",
            "spec.persistentVolumeReclaimPolicy": "Retain",
            "spec.claimRef?.kind": "PersistentVolumeClaim",
            "spec.claimRef?.apiVersion": "v1",
            **{
                f"spec.{source}?.{name}": value
                for source, given in SOURCE_DEFAULTS.items()
                for name, value in given.items()
            },
        },
    ),
    rules=rules(("spec", check_volume_spec), _initiator),
    admit_new=_admit_volume,
    change=check_volume_change,
    warn=_warn_of_volume,
)
CLAIM = ServedKind(
    resource=resources.PERSISTENT_VOLUME_CLAIMS,
    shown_when_deleted=True,
    acted_on_by="the volume controller, the scheduler",
    columns=(
        NAME,
        column("Status", _phase, "Phase of the claim"),
        column("Volume", "spec.volumeName", "Volume it is bound to"),
        column("Capacity", _bound_size, "Size of that volume"),
        column("Access Modes", _bound_modes, "Ways it can be mounted"),
        *_CLASSES,
        AGE,
        _MODE,
    ),
    defaults=default_claim,
    admit_new=_admit_claim,
    on_create=_create_claim,
    on_update=_update_claim,
    rules=rules(("spec", check_claim_spec)),
    change=check_claim_change,
    check_status=check_claim_status,
    warn=_warn_of_claim,
)
KINDS = (VOLUME, CLAIM)
