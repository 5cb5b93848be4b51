"""The rules of each source of a pod's volume.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (validateVolumeSource and the
functions that it calls).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.api.names import dns_subdomain_faults
from moorage.kinds.fields import (
    Rule,
    driver_name,
    each,
    if_present,
    name_rule,
    needed,
    one_of,
    rules,
    within,
)
from moorage.kinds.kind import FieldError, forbidden, invalid, required
from moorage.kinds.pod.environment import OF_FILES, check_field_ref, check_resource_ref
from moorage.kinds.tree import Json, objects, text
from moorage.kinds.values.quantities import check_quantity, nano_of
from moorage.kinds.volumes.sources import MANY, SHARED, path_inside
from moorage.kinds.volumes.volume_rules import check_claim_template

_mode = if_present(within(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive"))


def _file_path(value: Any, where: str) -> list[FieldError]:
    path = value or ""
    errors = path_inside(path, where)
    if path.startswith("..") and not path.startswith("../"):
        errors.append(invalid(where, path, "must not start with '..'"))
    return errors


_key_to_path = rules(("key", needed()), ("path", needed()), ("path", _file_path), ("mode", _mode))
_keys = ("items", each(_key_to_path))


def _shown_file(file: Json, where: str) -> list[FieldError]:
    path, ref, amount = text(file, "path"), file.get("fieldRef"), file.get("resourceFieldRef")
    errors = needed()(path, f"{where}.path") + _file_path(path, f"{where}.path")
    if ref is not None:
        errors += check_field_ref(ref, f"{where}.fieldRef", OF_FILES)
        if amount is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(where, "resource", detail))
    elif amount is not None:
        errors += check_resource_ref(amount, f"{where}.resourceFieldRef", volume=True)
    else:
        errors.append(required(where, "one of fieldRef and resourceFieldRef is required"))
    return errors + _mode(file.get("mode"), f"{where}.mode")


def _shown_files(source: Json, where: str) -> list[FieldError]:
    return [error for file in objects(source, "items") for error in _shown_file(file, where)]


_TOKEN_SECONDS = 600, 2**32


def _token(token: Json, where: str, field: str) -> list[FieldError]:
    seconds, errors = token.get("expirationSeconds") or 0, []
    least, most = _TOKEN_SECONDS
    if seconds < least:
        detail = "may not specify a duration less than 10 minutes"
        errors.append(invalid(f"{where}.expirationSeconds", seconds, detail))
    if seconds > most:
        detail = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(f"{where}.expirationSeconds", seconds, detail))
    # The path of these two errors is upstream's.
    path = text(token, "path")
    return errors + (_file_path(path, f"{field}.path") if path else [required(f"{field}.path")])


def _projected(source: Json, field: str) -> list[FieldError]:
    errors = _mode(source.get("defaultMode"), f"{field}.defaultMode")
    paths: set[str] = set()
    for index, projection in enumerate(objects(source, "sources")):
        where = f"{field}.sources[{index}]"
        sources = [key for key, value in projection.items() if value is not None]
        for key in sources:
            errors += _projection(projection[key], f"{where}.{key}", field, key)
        for key in ("secret", "configMap", "downwardAPI"):
            part = projection.get(key) or {}
            for path in [text(entry, "path") for entry in objects(part, "items")]:
                if path and path in paths:
                    shown = path if key == "downwardAPI" else text(part, "name")
                    errors.append(invalid(field, shown, "conflicting duplicate paths"))
                paths.add(path)
        if len(sources) > 1:
            errors.append(forbidden(where, MANY))
    return errors


def _projection(part: Json, where: str, field: str, key: str) -> list[FieldError]:
    if key in ("secret", "configMap"):
        errors = needed()(part.get("name"), f"{where}.name")
        return errors + rules(_keys)(part, where)
    if key == "downwardAPI":
        return _shown_files(part, where)
    return _token(part, where, field) if key == "serviceAccountToken" else []


def _empty_directory(source: Json, where: str) -> list[FieldError]:
    size, place = source.get("sizeLimit"), f"{where}.sizeLimit"
    if size is None:
        return []
    nano = nano_of(size)
    if nano is None:
        return check_quantity(size, place)
    detail = "SizeLimit field must be a valid resource quantity"
    return [forbidden(place, detail)] if nano < 0 else []


_secret_ref = if_present(rules(("name", name_rule(dns_subdomain_faults, empty="required"))))
_some_secret = if_present(rules(("name", needed())))
_OF_PODS: Final[Mapping[str, Rule]] = {
    "emptyDir": _empty_directory,
    "gitRepo": rules(("repository", needed()), ("directory", path_inside)),
    "secret": rules(("secretName", needed()), ("defaultMode", _mode), _keys),
    "persistentVolumeClaim": rules(("claimName", needed())),
    "cinder": rules(SHARED["cinder"], ("secretRef", _some_secret)),
    "downwardAPI": rules(("defaultMode", _mode), _shown_files),
    "configMap": rules(("name", needed()), ("defaultMode", _mode), _keys),
    "storageos": rules(SHARED["storageos"], ("secretRef", _some_secret)),
    "projected": _projected,
    "csi": rules(("driver", driver_name), ("nodePublishSecretRef", _secret_ref)),
    "ephemeral": rules(
        ("volumeClaimTemplate", needed()),
        ("volumeClaimTemplate", if_present(check_claim_template)),
    ),
    "image": rules(
        ("pullPolicy", one_of("Always", "IfNotPresent", "Never", empty="accepted")),
    ),
}
_ORDER: Final = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs"),
    *("quobyte", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile", "vsphereVolume"),
    *("photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO"),
    *("csi", "ephemeral", "image"),
)
SOURCES: Final = {name: _OF_PODS.get(name) or SHARED[name] for name in _ORDER}
"""The rule of each source by its name, in upstream's order: of several, the first counts."""
