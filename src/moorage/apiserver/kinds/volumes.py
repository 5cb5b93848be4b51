"""PersistentVolume and PersistentVolumeClaim.

Mirrors kubernetes v1.36 pkg/apis/core/v1/defaults.go, pkg/apis/core/validation, and the admission
plugins DefaultStorageClass, StorageObjectInUseProtection and PersistentVolumeClaimResize.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.api.resources import ResourceType
from moorage.api.volume import CLAIM_PROTECTION, VOLUME_PROTECTION
from moorage.apiserver import status
from moorage.apiserver.kind import Context, FieldError, Obj, forbidden, not_supported, required
from moorage.apiserver.kinds.cells import AGE, NAME, UNSET, column, wide
from moorage.apiserver.kinds.default_class import default_class
from moorage.apiserver.kinds.fields import (
    defaults,
    each_one_of,
    each_value,
    kept,
    one_of,
    quantities,
    rules,
    sole,
)
from moorage.apiserver.kinds.metadata import immutable
from moorage.apiserver.kinds.quantities import check_size, default_resources, nano_of
from moorage.apiserver.kinds.selectors import check_label_selector, check_node_selector
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.storage import DEFAULT_CLASS
from moorage.apiserver.kinds.tree import Json, attach, child, items, objects, put_finalizer, text
from moorage.apiserver.kinds.warnings import of_annotations, of_claim, of_expressions, of_volume

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
# Every other field of a persistent volume's spec is a source of storage.
_NOT_SOURCES = (
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
)
_CLAIM_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)
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
    default_resources(spec.get("resources"))


default_claim = defaults(
    lambda obj: default_claim_spec(attach(obj, "spec")),
    quantities("status.capacity", "status.allocatedResources"),
    empty={"status.phase": "Pending"},
)
"""Default a persistent volume claim, in place."""


_give_class = default_class(
    "storageclasses",
    marked=DEFAULT_CLASS,
    field="storageClassName",
    older=_CLASS_ANNOTATION,
)


def _prepare_claim(obj: Json, ctx: Context, resource: ResourceType) -> None:
    _give_class(obj, ctx, resource)
    put_finalizer(obj, CLAIM_PROTECTION)


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


def _prepare_volume(obj: Json, ctx: Context, resource: ResourceType) -> None:
    put_finalizer(obj, VOLUME_PROTECTION)


def _one_pod(modes: list[str] | None, where: str) -> list[FieldError]:
    if "ReadWriteOncePod" in (modes or ()) and len(modes or ()) > 1:
        return [forbidden(where, "may not use ReadWriteOncePod with other access modes")]
    return []


def _some_mode(modes: list[str] | None, where: str) -> list[FieldError]:
    return [] if modes else [required(where, "at least 1 access mode is required")]


_access = rules(
    ("accessModes", _some_mode),
    ("accessModes", each_one_of(*_MODES)),
    ("accessModes", _one_pod),
    ("volumeMode", one_of("Block", "Filesystem", empty="accepted")),
)


def _only_storage(capacity: Json | None, where: str) -> list[FieldError]:
    if not capacity:
        return [required(where)]
    return [] if set(capacity) == {"storage"} else [not_supported(where, capacity, ("storage",))]


def _sources(spec: Json) -> Json:
    return {key: spec[key] for key in sorted(spec) if key not in _NOT_SOURCES}


_a_source = sole(None, "must specify a volume type", "may not specify more than 1 volume type")


def _affinity(spec: Json, where: str) -> list[FieldError]:
    affinity, field = spec.get("nodeAffinity"), f"{where}.nodeAffinity"
    if affinity is None:
        local = spec.get("local") is not None
        return [required(field, "Local volume requires node affinity")] if local else []
    if affinity.get("required") is None:
        return [required(f"{field}.required", "must specify required node constraints")]
    return check_node_selector(affinity["required"], f"{field}.required")


def _volume_change(new: Obj, old: Obj) -> list[FieldError]:
    spec, before = child(new, "spec"), child(old, "spec")
    errors = []
    if _sources(spec) != _sources(before):
        detail = "spec.persistentvolumesource is immutable after creation"
        errors.append(forbidden("spec.persistentvolumesource", detail))
    errors += kept("spec.volumeMode")(new, old)
    affinity = before.get("nodeAffinity")
    if affinity is not None and spec.get("nodeAffinity") != affinity:
        errors.append(immutable("spec.nodeAffinity", spec.get("nodeAffinity")))
    return errors


def _claim_request(requests: Json | None, where: str) -> list[FieldError]:
    field = "spec.resources[storage]"
    if "storage" not in (requests or {}):
        return [required(field)]
    return check_size((requests or {})["storage"], field)


def _claim_change(new: Obj, old: Obj) -> list[FieldError]:
    spec, before = dict(child(new, "spec")), dict(child(old, "spec"))
    if not text(before, "volumeName"):
        # Binding sets the volume, and a default class may arrive late.
        spec.pop("volumeName", None)
        before.pop("volumeName", None)
        if before.get("storageClassName") is None:
            spec.pop("storageClassName", None)
    elif text(old, "status", "phase") == "Bound":
        was = nano_of(child(before, "resources", "requests").get("storage"))
        now = nano_of(child(spec, "resources", "requests").get("storage"))
        if was is not None and now is not None and now < was:
            detail = "field can not be less than previous value"
            return [forbidden("spec.resources.requests.storage", detail)]
        for part in (spec, before):
            part.pop("resources", None)
            part.pop("volumeAttributesClassName", None)
    return [] if spec == before else [forbidden("spec", _CLAIM_IMMUTABLE)]


def _class_of(obj: Obj) -> str:
    """Storage class of a volume or claim; the old annotation takes precedence."""
    annotations = child(obj, "metadata", "annotations")
    if _CLASS_ANNOTATION in annotations:
        return str(annotations[_CLASS_ANNOTATION])
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
    _CLASS_ANNOTATION: 'deprecated since v1.8; use "storageClassName" attribute instead',
}


def _warn_of_volume(obj: Obj) -> list[str]:
    found, spec = of_annotations(obj, _ANNOTATIONS), child(obj, "spec")
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle":
        found.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        )
    for index, term in enumerate(objects(spec, "nodeAffinity", "required", "nodeSelectorTerms")):
        found += of_expressions(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    return found + of_volume(spec, "spec")


def _warn_of_claim(obj: Obj) -> list[str]:
    return of_annotations(obj, _ANNOTATIONS) + of_claim(child(obj, "spec"), "spec")


VOLUME = ServedKind(
    resource=resources.PERSISTENT_VOLUMES,
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
        quantities("spec.capacity"),
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
    rules=rules(
        (
            "spec",
            rules(
                _access,
                ("capacity", _only_storage),
                ("capacity", each_value(check_size)),
                lambda spec, where: _a_source(_sources(spec), where),
                ("persistentVolumeReclaimPolicy", one_of("Delete", "Recycle", "Retain")),
                _affinity,
            ),
        )
    ),
    on_create=_prepare_volume,
    change=_volume_change,
    warn=_warn_of_volume,
)
CLAIM = ServedKind(
    resource=resources.PERSISTENT_VOLUME_CLAIMS,
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
    on_create=_prepare_claim,
    on_update=_check_expansion,
    rules=rules(
        ("spec", _access),
        ("spec.selector", check_label_selector),
        ("spec.resources.requests", _claim_request),
    ),
    change=_claim_change,
    warn=_warn_of_claim,
)
KINDS = (VOLUME, CLAIM)
