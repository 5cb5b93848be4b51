"""The rules of the sources of storage that persistent volumes and pods' volumes share.

Place in the flow: `volume_rules` adds what only persistent volumes have, and `pod_sources`
what only pods have. Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go
(validateVolumeSource, ValidatePersistentVolumeSpec and the functions that they call).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from moorage.api.names import dns_label_faults
from moorage.kinds.fields import Rule, name_rule, needed, one_of, rules, within
from moorage.kinds.kind import FieldError, forbidden, invalid, not_supported, required
from moorage.kinds.tree import Json, strings, text

MANY: Final = "may not specify more than 1 volume type"
_TENANT_LENGTH_MAX: Final = 64
_DOTS: Final = "must not contain '..'"
_partition = within(0, 255, "must be between 1 and 255, inclusive")
_lun = within(0, 255, "must be between 0 and 255, inclusive")


def _path_without_dots(path: str | None, where: str) -> list[FieldError]:
    """Check a path of a host: it is given, and does not go up."""
    if not path:
        return [required(where)]
    return [invalid(where, path, _DOTS)] if ".." in path.split("/") else []


def path_inside(value: Any, where: str) -> list[FieldError]:
    """Check a path inside a volume: it is relative, and does not go up."""
    path, errors = value or "", []
    if path.startswith("/"):
        errors.append(invalid(where, path, "must be a relative path"))
    if ".." in path.split("/"):
        errors.append(invalid(where, path, _DOTS))
    return errors


def _absolute(path: str | None, where: str) -> list[FieldError]:
    errors = [] if path else [required(where)]
    if not (path or "").startswith("/"):
        errors.append(invalid(where, path or "", "must be an absolute path"))
    return errors


_PATH_TYPES: Final = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File"),
    *("FileOrCreate", "Socket"),
)
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
_PAIR: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")


def _quobyte(source: Json, where: str) -> list[FieldError]:
    registry, tenant = text(source, "registry"), text(source, "tenant")
    errors = []
    if not registry:
        errors.append(required(f"{where}.registry", _PAIRS))
    elif len(tenant) > _TENANT_LENGTH_MAX:
        detail = f"must be a UUID and may not exceed a length of {_TENANT_LENGTH_MAX} characters"
        errors.append(required(f"{where}.tenant", detail))
    elif not all(_PAIR.fullmatch(pair) for pair in registry.split(",")):
        errors.append(invalid(f"{where}.registry", registry, _PAIRS))
    return errors + needed()(source.get("volume"), f"{where}.volume")


SHARED: Final[Mapping[str, Rule]] = {
    "awsElasticBlockStore": rules(("volumeID", needed()), ("partition", _partition)),
    "azureDisk": rules(
        ("diskName diskURI", needed()),
        ("cachingMode", one_of("None", "ReadOnly", "ReadWrite", empty="absent")),
        ("kind", one_of("Dedicated", "Managed", "Shared", empty="absent")),
        _azure_uri,
    ),
    "azureFile": rules(("secretName shareName", needed())),
    "cephfs": rules(("monitors", needed())),
    "cinder": rules(("volumeID", needed())),
    "fc": _fibre_channel,
    "flexVolume": rules(("driver", needed()), _options),
    "flocker": _flocker,
    "gcePersistentDisk": rules(("pdName", needed()), ("partition", _partition)),
    "glusterfs": rules(("endpoints path", needed())),
    "hostPath": rules(("path", _path_without_dots), ("type", one_of(*_PATH_TYPES, empty="absent"))),
    "iscsi": _iscsi,
    "local": rules(("path", _path_without_dots)),
    "nfs": rules(("server", needed()), ("path", _absolute)),
    "photonPersistentDisk": rules(("pdID", needed())),
    "portworxVolume": rules(("volumeID", needed())),
    "quobyte": _quobyte,
    "rbd": rules(("monitors image", needed())),
    "scaleIO": rules(("gateway system volumeName", needed())),
    "storageos": rules(
        ("volumeName", name_rule(dns_label_faults, empty="required")),
        ("volumeNamespace", name_rule(dns_label_faults)),
    ),
    "vsphereVolume": rules(("volumePath", needed())),
}
"""The rule of each source by its name."""


_NAMES_LENGTH_MAX: Final = 64


def check_initiator(holder: Json, name: str, where: str) -> list[FieldError]:
    """Check the length of the name of an iSCSI volume whose initiator has a name.

    Parameters
    ----------
    holder
        What has the source as one of its fields.
    name, where
        The name of the volume, and its path.
    """
    source = holder.get("iscsi")
    if source is None or source.get("initiatorName") is None:
        return []
    if len(f"{name}:{text(source, 'targetPortal')}") <= _NAMES_LENGTH_MAX:
        return []
    detail = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under "
        f"{_NAMES_LENGTH_MAX} characters if iscsi.initiatorName is specified."
    )
    return [invalid(where, name, detail)]


def check_source(volume: Json, where: str, sources: Mapping[str, Rule]) -> list[FieldError]:
    """Check the one source of a volume; of several, only the first is looked into.

    Parameters
    ----------
    volume, where
        What has the source as one of its fields, and its path.
    sources
        The rule of each source by its name, in upstream's order.
    """
    names = [name for name in sources if volume.get(name) is not None]
    if not names:
        return [required(where, "must specify a volume type")]
    first, *more = names
    # The path of the errors of this one source is upstream's.
    shown = "persistentDisk" if first == "gcePersistentDisk" else first
    errors = sources[first](volume[first], f"{where}.{shown}")
    return errors + [forbidden(f"{where}.{name}", MANY) for name in more]
