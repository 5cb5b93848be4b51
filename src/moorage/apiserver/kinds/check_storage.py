"""Rules of volumes, claims, storage classes and objects that CSI drivers publish.

Place in the flow: validation, after defaulting. Mirrors kubernetes v1.36
pkg/apis/core/validation (volumes and claims) and pkg/apis/storage/validation.
"""

from __future__ import annotations

from moorage.apiserver.kind import (
    FieldError,
    Obj,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apiserver.kinds.check_resources import NOT_ZERO, check_quantity, nano_of
from moorage.apiserver.kinds.check_scheduling import check_label_selector, check_node_selector
from moorage.apiserver.kinds.metadata import immutable
from moorage.apiserver.kinds.tree import Json, child, items, objects, text

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")

# Every other field of a persistent volume's spec is a source of storage.
_NOT_SOURCES = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)
_CLAIM_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)


def check_volume(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a persistent volume."""
    spec = child(new, "spec")
    errors = _check_modes(spec, "spec")
    capacity = child(spec, "capacity")
    if not capacity:
        errors.append(required("spec.capacity"))
    elif set(capacity) != {"storage"}:
        errors.append(not_supported("spec.capacity", capacity, ("storage",)))
    for name, value in capacity.items():
        errors += _check_size(value, f"spec.capacity[{name}]")
    sources = _sources(spec)
    if not sources:
        errors.append(required("spec", "must specify a volume type"))
    detail = "may not specify more than 1 volume type"
    errors += [forbidden(f"spec.{key}", detail) for key in sources[1:]]
    policy = text(spec, "persistentVolumeReclaimPolicy")
    policies = ("Delete", "Recycle", "Retain")
    if policy not in policies:
        errors.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, policies))
    errors += _check_volume_affinity(spec)
    if old is not None:
        before = child(old, "spec")
        if {key: spec[key] for key in sources} != {key: before[key] for key in _sources(before)}:
            detail = "spec.persistentvolumesource is immutable after creation"
            errors.append(forbidden("spec.persistentvolumesource", detail))
        if spec.get("volumeMode") != before.get("volumeMode"):
            errors.append(immutable("spec.volumeMode", spec.get("volumeMode")))
        affinity = before.get("nodeAffinity")
        if affinity is not None and spec.get("nodeAffinity") != affinity:
            errors.append(immutable("spec.nodeAffinity", spec.get("nodeAffinity")))
    return errors


def _sources(spec: Json) -> list[str]:
    return sorted(key for key in spec if key not in _NOT_SOURCES)


def _check_volume_affinity(spec: Json) -> list[FieldError]:
    affinity = spec.get("nodeAffinity")
    if affinity is None:
        if spec.get("local") is not None:
            return [required("spec.nodeAffinity", "Local volume requires node affinity")]
        return []
    if affinity.get("required") is None:
        detail = "must specify required node constraints"
        return [required("spec.nodeAffinity.required", detail)]
    return check_node_selector(affinity["required"], "spec.nodeAffinity.required")


def _check_modes(spec: Json, field: str) -> list[FieldError]:
    errors = []
    modes = items(spec, "accessModes")
    if not modes:
        errors.append(required(f"{field}.accessModes", "at least 1 access mode is required"))
    unknown = [mode for mode in modes if mode not in ACCESS_MODES]
    errors += [not_supported(f"{field}.accessModes", mode, ACCESS_MODES) for mode in unknown]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        errors.append(forbidden(f"{field}.accessModes", detail))
    mode = text(spec, "volumeMode")
    if mode and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{field}.volumeMode", mode, VOLUME_MODES))
    return errors


def _check_size(value: object, field: str) -> list[FieldError]:
    errors = check_quantity(value, field)
    if not errors and nano_of(value) == 0:
        errors.append(invalid(field, str(value), NOT_ZERO))
    return errors


def check_claim(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a persistent volume claim."""
    spec = child(new, "spec")
    errors = _check_modes(spec, "spec")
    errors += check_label_selector(spec.get("selector"), "spec.selector")
    requests = child(spec, "resources", "requests")
    if "storage" not in requests:
        errors.append(required("spec.resources[storage]"))
    else:
        errors += _check_size(requests["storage"], "spec.resources[storage]")
    if old is not None:
        errors += _check_claim_update(new, old)
    return errors


def _check_claim_update(new: Obj, old: Obj) -> list[FieldError]:
    spec, before = dict(child(new, "spec")), dict(child(old, "spec"))
    if not text(before, "volumeName"):
        # Binding sets the volume, and a default class may arrive late.
        spec.pop("volumeName", None)
        before.pop("volumeName", None)
        if before.get("storageClassName") is None:
            spec.pop("storageClassName", None)
    elif text(old, "status", "phase") == "Bound":
        errors = _check_growth(spec, before)
        if errors:
            return errors
        for part in (spec, before):
            part.pop("resources", None)
            part.pop("volumeAttributesClassName", None)
    return [] if spec == before else [forbidden("spec", _CLAIM_IMMUTABLE)]


def _check_growth(spec: Json, before: Json) -> list[FieldError]:
    was = nano_of(child(before, "resources", "requests").get("storage"))
    now = nano_of(child(spec, "resources", "requests").get("storage"))
    if was is not None and now is not None and now < was:
        detail = "field can not be less than previous value"
        return [forbidden("spec.resources.requests.storage", detail)]
    return []


def check_storage_class(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a storage class; most of it may never change."""
    errors = []
    if not text(new, "provisioner"):
        errors.append(required("provisioner"))
    policy, policies = text(new, "reclaimPolicy"), ("Delete", "Retain")
    if policy not in policies:
        errors.append(not_supported("reclaimPolicy", policy, policies))
    mode, modes = text(new, "volumeBindingMode"), ("Immediate", "WaitForFirstConsumer")
    if mode not in modes:
        errors.append(not_supported("volumeBindingMode", mode, modes))
    for index, term in enumerate(objects(new, "allowedTopologies")):
        for place, entry in enumerate(objects(term, "matchLabelExpressions")):
            where = f"allowedTopologies[{index}].matchLabelExpressions[{place}]"
            if not items(entry, "values"):
                errors.append(required(f"{where}.values"))
            if not text(entry, "key"):
                errors.append(required(f"{where}.key"))
    if old is not None:
        kept = ("parameters", "provisioner", "reclaimPolicy")
        changed = [field for field in kept if new.get(field) != old.get(field)]
        errors += [forbidden(field, f"updates to {field} are forbidden.") for field in changed]
        if new.get("volumeBindingMode") != old.get("volumeBindingMode"):
            errors.append(immutable("volumeBindingMode", mode))
    return errors


def check_csi_driver(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a CSI driver: enumerated values, and immutable fields."""
    spec = child(new, "spec")
    errors = []
    policy = text(spec, "fsGroupPolicy")
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    if policy not in policies:
        errors.append(not_supported("spec.fsGroupPolicy", policy, policies))
    modes = ("Ephemeral", "Persistent")
    unknown = [mode for mode in items(spec, "volumeLifecycleModes") if mode not in modes]
    errors += [not_supported("spec.volumeLifecycleModes", mode, modes) for mode in unknown]
    if old is not None:
        before = child(old, "spec")
        kept = ("attachRequired", "volumeLifecycleModes")
        changed = [name for name in kept if spec.get(name) != before.get(name)]
        errors += [immutable(f"spec.{name}", spec.get(name)) for name in changed]
    return errors


def check_csi_node(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a CSI node: drivers by unique name, each with a node id."""
    errors = []
    seen: set[str] = set()
    for index, driver in enumerate(objects(new, "spec", "drivers")):
        where = f"spec.drivers[{index}]"
        name = text(driver, "name")
        if not name:
            errors.append(required(f"{where}.name"))
        elif name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        if not text(driver, "nodeID"):
            errors.append(required(f"{where}.nodeID"))
        keys = items(driver, "topologyKeys")
        for place, key in enumerate(keys):
            if key in keys[:place]:
                errors.append(duplicate(f"{where}.topologyKeys", key))
        count = child(driver, "allocatable").get("count")
        if count is not None and count < 0:
            detail = "must be greater than or equal to 0"
            errors.append(invalid(f"{where}.allocatable.count", count, detail))
    return errors


def check_storage_capacity(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a storage capacity."""
    errors = check_label_selector(new.get("nodeTopology"), "nodeTopology")
    if not text(new, "storageClassName"):
        errors.append(required("storageClassName"))
    for name in ("capacity", "maximumVolumeSize"):
        if new.get(name) is not None:
            errors += check_quantity(new[name], name)
    if old is not None:
        for name in ("nodeTopology", "storageClassName"):
            if new.get(name) != old.get(name):
                errors.append(immutable(name, new.get(name)))
    return errors


def check_attachment(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a volume attachment."""
    spec = child(new, "spec")
    errors = [required(f"spec.{name}") for name in ("attacher", "nodeName") if not text(spec, name)]
    source = child(spec, "source")
    given = [name for name in ("persistentVolumeName", "inlineVolumeSpec") if source.get(name)]
    if not given:
        detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        errors.append(required("spec.source", detail))
    elif len(given) > 1:
        detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        errors.append(forbidden("spec.source", detail))
    if old is not None and spec != child(old, "spec"):
        errors.append(immutable("spec", spec))
    return errors
