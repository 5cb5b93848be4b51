"""The rules of each source of a pod's volume.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (validateVolumeSource and the
functions that it calls).
"""

from __future__ import annotations

import re
from typing import Any, Final

from moorage.api.names import dns_label_faults, dns_subdomain_faults
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
from moorage.kinds.kind import FieldError, forbidden, invalid, not_supported, required
from moorage.kinds.pod.environment import OF_FILES, check_field_ref, check_resource_ref
from moorage.kinds.tree import Json, objects, strings, text
from moorage.kinds.values.quantities import check_quantity, nano_of
from moorage.kinds.volumes.volume_rules import check_claim_template, host_path, nfs_share

_mode = if_present(within(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive"))
_partition = within(0, 255, "must be between 1 and 255, inclusive")
_lun = within(0, 255, "must be between 0 and 255, inclusive")


def path_inside(value: Any, where: str) -> list[FieldError]:
    """Check a path inside a volume: it is relative, and does not go up."""
    path, errors = value or "", []
    if path.startswith("/"):
        errors.append(invalid(where, path, "must be a relative path"))
    if ".." in path.split("/"):
        errors.append(invalid(where, path, "must not contain '..'"))
    return errors


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
            errors.append(forbidden(where, _MANY))
    return errors


def _projection(part: Json, where: str, field: str, key: str) -> list[FieldError]:
    if key in ("secret", "configMap"):
        errors = needed()(part.get("name"), f"{where}.name")
        return errors + rules(_keys)(part, where)
    if key == "downwardAPI":
        return _shown_files(part, where)
    return _token(part, where, field) if key == "serviceAccountToken" else []


_QUALIFIED: Final = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[0-9A-Za-z.-]+:[^,;*&$|\s]+"),
    "eui": re.compile(r"eui.[0-9A-Za-z]{16}"),
    "naa": re.compile(r"naa.[0-9A-Za-z]{32}"),
}


def _qualified(name: str, where: str) -> list[FieldError]:
    """Check the name of an iSCSI target or initiator."""
    form = _QUALIFIED.get(name[:3])
    if form is None:
        return [invalid(where, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if form.fullmatch(name) else [invalid(where, name, "must be valid format")]


def _iscsi(source: Json, where: str) -> list[FieldError]:
    name, initiator = text(source, "iqn"), source.get("initiatorName")
    errors = needed()(source.get("targetPortal"), f"{where}.targetPortal")
    errors += _qualified(name, f"{where}.iqn") if name else [required(f"{where}.iqn")]
    errors += _lun(source.get("lun"), f"{where}.lun")
    authenticates = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if authenticates and source.get("secretRef") is None:
        errors.append(required(f"{where}.secretRef"))
    if initiator is not None:
        errors += _qualified(initiator, f"{where}.initiatorname")
    return errors


def _fibre_channel(source: Json, where: str) -> list[FieldError]:
    targets, ids = strings(source, "targetWWNs"), strings(source, "wwids")
    errors, field = [], f"{where}.targetWWNs"
    if not targets and not ids:
        errors.append(required(field, "must specify either targetWWNs or wwids, but not both"))
    if targets and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(field, targets, detail))
    if targets and source.get("lun") is None:
        errors.append(required(f"{where}.lun", "lun is required if targetWWNs is specified"))
    elif targets:
        errors += _lun(source.get("lun"), f"{where}.lun")
    return errors


_MANAGED: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/"
_BLOB: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def _azure_uri(source: Json, where: str) -> list[FieldError]:
    uri, kind = text(source, "diskURI"), source.get("kind")
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        return [not_supported(f"{where}.diskURI", uri, (f"{_MANAGED}disks/{{disk-id}}",))]
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        return [not_supported(f"{where}.diskURI", uri, (_BLOB,))]
    return []


def _options(source: Json, where: str) -> list[FieldError]:
    detail = "kubernetes.io and k8s.io namespaces are reserved"
    return [
        invalid(f"{where}.options[{name}]", name, detail)
        for name in sorted(source.get("options") or {})
        if f".{name.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io"))
    ]


def _empty_directory(source: Json, where: str) -> list[FieldError]:
    size, place = source.get("sizeLimit"), f"{where}.sizeLimit"
    if size is None:
        return []
    nano = nano_of(size)
    if nano is None:
        return check_quantity(size, place)
    detail = "SizeLimit field must be a valid resource quantity"
    return [forbidden(place, detail)] if nano < 0 else []


def _flocker(source: Json, where: str) -> list[FieldError]:
    name, uuid = text(source, "datasetName"), text(source, "datasetUUID")
    errors = []
    if not name and not uuid:
        errors.append(required(where, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid(where, "resource", detail))
    if "/" in name:
        errors.append(invalid(f"{where}.datasetName", name, "must not contain '/'"))
    return errors


_PAIRS: Final = "must be a host:port pair or multiple pairs separated by commas"
_MANY: Final = "may not specify more than 1 volume type"
_secret_ref = if_present(rules(("name", name_rule(dns_subdomain_faults, empty="required"))))
SOURCES: Final[dict[str, Rule]] = {
    "emptyDir": _empty_directory,
    "hostPath": host_path,
    "gitRepo": rules(("repository", needed()), ("directory", path_inside)),
    "gcePersistentDisk": rules(("pdName", needed()), ("partition", _partition)),
    "awsElasticBlockStore": rules(("volumeID", needed()), ("partition", _partition)),
    "secret": rules(("secretName", needed()), ("defaultMode", _mode), _keys),
    "nfs": nfs_share,
    "iscsi": _iscsi,
    "glusterfs": rules(("endpoints path", needed())),
    "flocker": _flocker,
    "persistentVolumeClaim": rules(("claimName", needed())),
    "rbd": rules(("monitors image", needed())),
    "cinder": rules(("volumeID", needed()), ("secretRef", if_present(rules(("name", needed()))))),
    "cephfs": rules(("monitors", needed())),
    "quobyte": rules(("registry", needed(_PAIRS)), ("volume", needed())),
    "downwardAPI": rules(("defaultMode", _mode), _shown_files),
    "fc": _fibre_channel,
    "flexVolume": rules(("driver", needed()), _options),
    "configMap": rules(("name", needed()), ("defaultMode", _mode), _keys),
    "azureFile": rules(("secretName shareName", needed())),
    "vsphereVolume": rules(("volumePath", needed())),
    "photonPersistentDisk": rules(("pdID", needed())),
    "portworxVolume": rules(("volumeID", needed())),
    "azureDisk": rules(
        ("diskName diskURI", needed()),
        ("cachingMode", one_of("None", "ReadOnly", "ReadWrite", empty="absent")),
        ("kind", one_of("Dedicated", "Managed", "Shared", empty="absent")),
        _azure_uri,
    ),
    "storageos": rules(
        ("volumeName", name_rule(dns_label_faults, empty="required")),
        ("volumeNamespace", name_rule(dns_label_faults)),
    ),
    "projected": _projected,
    "scaleIO": rules(("gateway system volumeName", needed())),
    "csi": rules(("driver", driver_name), ("nodePublishSecretRef", _secret_ref)),
    "ephemeral": rules(
        ("volumeClaimTemplate", needed()),
        ("volumeClaimTemplate", if_present(check_claim_template)),
    ),
    "image": rules(
        ("pullPolicy", one_of("Always", "IfNotPresent", "Never", empty="accepted")),
    ),
}
"""The rule of each source by its name, in upstream's order: of several, the first counts."""


def check_source(volume: Json, where: str) -> list[FieldError]:
    """Check the one source of a volume; of several, only the first is looked into."""
    sources = [name for name in SOURCES if volume.get(name) is not None]
    if not sources:
        return [required(where, "must specify a volume type")]
    first, *more = sources
    # The path of the errors of this one source is upstream's.
    shown = "persistentDisk" if first == "gcePersistentDisk" else first
    errors = SOURCES[first](volume[first], f"{where}.{shown}")
    return errors + [forbidden(f"{where}.{name}", _MANY) for name in more]
