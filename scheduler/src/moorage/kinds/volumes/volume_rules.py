"""The rules of persistent volumes, their claims, and the claim templates of pods.

Place in the flow: `volumes` and `pod.containers` use them. Mirrors kubernetes v1.36
pkg/apis/core/validation/validation.go (ValidatePersistentVolume and its neighbours).
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, Final

from moorage.api.names import (
    dns_label_faults,
    dns_subdomain_faults,
    is_native_resource,
    qualified_name_faults,
)
from moorage.kinds.fields import (
    Rule,
    driver_name,
    each_one_of,
    each_value,
    if_present,
    name_rule,
    needed,
    one_of,
    rules,
    unchanging,
)
from moorage.kinds.kind import FieldError, Obj, forbidden, invalid, not_supported, required
from moorage.kinds.metadata import check_template_metadata, immutable
from moorage.kinds.tree import Json, child, text
from moorage.kinds.values.quantities import check_size, nano_of
from moorage.kinds.values.selectors import check_label_selector, check_node_selector
from moorage.kinds.volumes.sources import SHARED, check_source

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""The older form of ``storageClassName``."""
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
_RESIZES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_CLAIM_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)


def _one_pod(modes: list[str] | None, where: str) -> list[FieldError]:
    if "ReadWriteOncePod" in (modes or ()) and len(set(modes or ()) & set(ACCESS_MODES)) > 1:
        return [forbidden(where, "may not use ReadWriteOncePod with other access modes")]
    return []


_subdomain = name_rule(dns_subdomain_faults)
_common = rules(
    ("accessModes", each_one_of(*ACCESS_MODES)),
    ("accessModes", _one_pod),
    ("volumeMode", one_of("Block", "Filesystem", empty="absent")),
    ("storageClassName", _subdomain),
)


def _only_storage(capacity: Json | None, where: str) -> list[FieldError]:
    errors = [] if capacity else [required(where)]
    if set(capacity or ()) != {"storage"}:
        errors.append(not_supported(where, capacity, ("storage",)))
    return errors


def _sources_of(spec: Json) -> Json:
    """Return the sources of storage of a persistent volume; a valid one has one."""
    return {key: spec[key] for key in sorted(spec) if key not in _NOT_SOURCES}


_secret = if_present(
    rules(
        ("name", name_rule(dns_subdomain_faults, empty="required")),
        ("namespace", name_rule(dns_label_faults, empty="required")),
    )
)
_secret_of_cluster = if_present(rules(("name namespace", needed())))


def _endpoints(source: Json, where: str) -> list[FieldError]:
    namespace, field = source.get("endpointsNamespace"), f"{where}.endpointsNamespace"
    if namespace is None:
        return []
    if not namespace:
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        return [invalid(field, namespace, detail)]
    return [invalid(field, namespace, fault) for fault in dns_label_faults(namespace)]


_OF_VOLUMES: Mapping[str, Rule] = {
    "azureFile": rules(SHARED["azureFile"], ("secretNamespace", if_present(needed()))),
    "cinder": rules(SHARED["cinder"], ("secretRef", _secret_of_cluster)),
    "csi": rules(
        ("driver", driver_name),
        ("volumeHandle", needed()),
        (
            "controllerPublishSecretRef controllerExpandSecretRef nodePublishSecretRef "
            "nodeExpandSecretRef",
            _secret,
        ),
    ),
    "glusterfs": rules(SHARED["glusterfs"], _endpoints),
    "iscsi": rules(SHARED["iscsi"], ("secretRef", if_present(rules(("name", needed()))))),
    "storageos": rules(SHARED["storageos"], ("secretRef", _secret_of_cluster)),
}
_ORDER = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs"),
    *("rbd", "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile"),
    *("vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO", "local"),
    *("storageos", "csi"),
)
_SOURCES = {name: _OF_VOLUMES.get(name) or SHARED[name] for name in _ORDER}


def _source(spec: Json, where: str) -> list[FieldError]:
    errors = check_source(spec, where, _SOURCES)
    path = posixpath.normpath(text(spec, "hostPath", "path") or ".")
    # Two slashes at the start stay for POSIX, and are one for Go.
    if path in ("/", "//") and text(spec, "persistentVolumeReclaimPolicy") == "Recycle":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden(f"{where}.persistentVolumeReclaimPolicy", detail))
    return errors


def _affinity(spec: Json, where: str) -> list[FieldError]:
    affinity, field = spec.get("nodeAffinity"), f"{where}.nodeAffinity"
    if affinity is None:
        local = spec.get("local") is not None
        return [required(field, "Local volume requires node affinity")] if local else []
    if affinity.get("required") is None:
        return [required(f"{field}.required", "must specify required node constraints")]
    return check_node_selector(affinity["required"], f"{field}.required")


def _attributes_class(spec: Json, where: str) -> list[FieldError]:
    name, field = spec.get("volumeAttributesClassName"), f"{where}.volumeAttributesClassName"
    if name is None:
        return []
    errors = [] if name else [required(field, "an empty string is disallowed")]
    errors += _subdomain(name, field)
    if spec.get("csi") is None:
        detail = "has to be specified when using volumeAttributesClassName"
        errors.append(required(f"{where}.csi", detail))
    return errors


check_volume_spec: Rule = rules(
    ("accessModes", needed()),
    _common,
    ("capacity", _only_storage),
    ("capacity", each_value(check_size)),
    ("persistentVolumeReclaimPolicy", one_of("Delete", "Recycle", "Retain", empty="accepted")),
    _affinity,
    _source,
    _attributes_class,
)
"""Check the spec of a persistent volume."""


_INLINE = "may not be specified in the context of inline volumes"


def _of_inline(spec: Json, where: str) -> list[FieldError]:
    names = ("claimRef", "capacity", "nodeAffinity", "storageClassName")
    errors = [
        forbidden(f"{where}.{name}", _INLINE)
        for name in (*names, "volumeAttributesClassName")
        if spec.get(name)
    ]
    if spec.get("csi") is None:
        detail = "has to be specified in the context of inline volumes"
        errors.append(required(f"{where}.csi", detail))
    for name, only, words in (
        ("persistentVolumeReclaimPolicy", "Retain", "may only be"),
        ("volumeMode", "Filesystem", "may not specify volumeMode other than"),
    ):
        if spec.get(name) not in (None, "", only):
            detail = f"{words} {only} in the context of inline volumes"
            errors.append(forbidden(f"{where}.{name}", detail))
    return errors


check_inline_volume: Rule = rules(("accessModes", needed()), _common, _of_inline, _source)
"""Check the spec of a volume that is written into its attachment."""


_STABLE_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def _same_affinity(new: Any, old: Any) -> bool:
    """Whether two affinities are the same, where a stable label may replace its beta label."""
    if isinstance(new, dict) and isinstance(old, dict):
        return new.keys() == old.keys() and all(
            _same_affinity(new[name], old[name]) for name in old
        )
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(_same_affinity, new, old))
    return new == old or (isinstance(old, str) and _STABLE_LABELS.get(old) == new)


def check_volume_change(new: Obj, old: Obj) -> list[FieldError]:
    """Check what may change of a persistent volume; the paths are upstream's."""
    spec, before = child(new, "spec"), child(old, "spec")
    sources, were = _sources_of(spec), _sources_of(before)
    if child(were, "csi") and "controllerExpandSecretRef" not in were["csi"]:
        # It may be added.
        csi = {**child(sources, "csi")}
        csi.pop("controllerExpandSecretRef", None)
        sources = {**sources, "csi": csi} if "csi" in sources else sources
    errors = []
    if sources != were:
        detail = "spec.persistentvolumesource is immutable after creation"
        errors.append(forbidden("spec.persistentvolumesource", detail))
    errors += unchanging("volumeMode")(spec, before)
    affinity, name = before.get("nodeAffinity"), "volumeAttributesClassName"
    if affinity is not None and not _same_affinity(spec.get("nodeAffinity"), affinity):
        detail = "field is immutable, except for updating from beta label to GA"
        errors.append(invalid("nodeAffinity", spec.get("nodeAffinity"), detail))
    if before.get(name) is not None and spec.get(name) is None:
        errors.append(forbidden(f"spec.{name}", "update from non-nil value to nil is forbidden"))
    return errors


def _storage(spec: Json, where: str) -> list[FieldError]:
    requests, field = child(spec, "resources", "requests"), f"{where}.resources[storage]"
    if "storage" not in requests:
        return [required(field)]
    return check_size(requests["storage"], field)


def _data_source(source: Json, where: str) -> list[FieldError]:
    errors = needed()(source.get("name"), f"{where}.name")
    errors += needed()(source.get("kind"), f"{where}.kind")
    group, kind = text(source, "apiGroup"), text(source, "kind")
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(where, kind, detail))
    errors += _subdomain(group, f"{where}.apiGroup")
    return errors + name_rule(dns_label_faults)(text(source, "namespace"), f"{where}.namespace")


def _sources_agree(spec: Json, where: str) -> list[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return []
    if text(reference, "namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
        return [invalid(where, f"{where}.dataSource", detail)]
    if any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        return [invalid(where, f"{where}.dataSource", "must match dataSourceRef")]
    return []


check_claim_spec: Rule = rules(
    ("accessModes", needed("at least 1 access mode is required")),
    ("selector", check_label_selector),
    _common,
    _storage,
    ("dataSource dataSourceRef", if_present(_data_source)),
    _sources_agree,
    ("volumeAttributesClassName", _subdomain),
)
"""Check the spec of a claim."""
check_claim_template: Rule = rules(
    ("metadata", check_template_metadata), ("spec", check_claim_spec)
)
"""Check the template of a claim, in a pod."""


def check_claim_change(new: Obj, old: Obj) -> list[FieldError]:
    """Check what may change of a claim: its volume, once; its size and attributes, when bound."""
    spec, before = dict(child(new, "spec")), dict(child(old, "spec"))
    errors = _check_class_annotation(new, old)
    if not text(before, "volumeName"):
        spec.pop("volumeName", None)
        before.pop("volumeName", None)
    if _may_get_class(spec, old):
        spec.pop("storageClassName")
    was = nano_of(child(before, "resources", "requests").get("storage")) or 0
    now = nano_of(child(spec, "resources", "requests").get("storage")) or 0
    attributes = "volumeAttributesClassName"
    if text(old, "status", "phase") == "Bound":
        spec["resources"] = _with_storage(spec, child(before, "resources"))
        if spec.get(attributes) is not None:
            _put(spec, attributes, before.get(attributes))
    if spec != before:
        errors.append(forbidden("spec", _CLAIM_IMMUTABLE))
    granted = nano_of(child(old, "status", "capacity").get("storage")) or 0
    if now < was and now <= granted:
        detail = "field can not be less than status.capacity"
        errors.append(forbidden("spec.resources.requests.storage", detail))
    errors += unchanging("volumeMode")(child(new, "spec"), child(old, "spec"))
    return errors + _check_attributes_change(new, old)


def _put(spec: Json, key: str, value: Any) -> None:
    spec.pop(key)
    if value is not None:
        spec[key] = value


def _with_storage(spec: Json, before: Json) -> Json:
    """Return the resources of a claim with the storage that it requested before."""
    resources = dict(child(spec, "resources"))
    if resources.get("requests") is not None and "storage" in child(before, "requests"):
        storage = before["requests"]["storage"]
        resources["requests"] = {**resources["requests"], "storage": storage}
    return resources


def _may_get_class(spec: Json, old: Obj) -> bool:
    """Whether a claim without a class gets one, which its annotation does not contradict."""
    if child(old, "spec").get("storageClassName") is not None:
        return False
    name = spec.get("storageClassName")
    annotated = child(old, "metadata", "annotations").get(CLASS_ANNOTATION)
    return name is not None and annotated in (None, name)


def _check_class_annotation(new: Obj, old: Obj) -> list[FieldError]:
    after, before = (
        child(each, "metadata", "annotations").get(CLASS_ANNOTATION) for each in (new, old)
    )
    moved = before is not None and _may_get_class(child(new, "spec"), old)
    if after == before or (moved and after is None):
        return []
    return [immutable(f"metadata.annotations[{CLASS_ANNOTATION}]", after or "")]


def _check_attributes_change(new: Obj, old: Obj) -> list[FieldError]:
    key = "volumeAttributesClassName"
    before, after = child(old, "spec").get(key), child(new, "spec").get(key)
    if before is None or after:
        return []
    what = "nil" if after is None else "an empty string"
    return [forbidden(f"spec.{key}", f"update from non-nil value to {what} is forbidden")]


def check_claim_status(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check the status of a claim: amounts, and the states of a resize."""
    status, errors = child(new, "status"), []
    for name, value in child(status, "capacity").items():
        nano = nano_of(value)
        if nano is not None and nano < 0:
            detail = "must be a valid resource quantity"
            errors.append(invalid(f"status.capacity[{name}]", value, detail))
    for name, state in child(status, "allocatedResourceStatuses").items():
        field = "status.allocatedResourceStatus"
        errors += _resized_name(name, field)
        if state not in _RESIZES:
            errors.append(not_supported(field, name, _RESIZES))
    for name, value in child(status, "allocatedResources").items():
        field = "status.allocatedResources"
        faults, nano = _resized_name(name, field), nano_of(value)
        if not faults and nano is not None and nano < 0:
            detail = "must be a valid resource quantity"
            faults = [invalid(f"{field}[{name}]", value, detail)]
        errors += faults
    return errors


def _resized_name(name: str, field: str) -> list[FieldError]:
    faults = qualified_name_faults(name)
    if faults:
        return [invalid(field, name, fault) for fault in faults]
    if is_native_resource(name) and name != "storage":
        return [not_supported(field, name, ("storage",))]
    return []
