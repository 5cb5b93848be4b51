"""The classes of ``storage.k8s.io``, and VolumeAttachment; `csi` has the other kinds.

Mirrors kubernetes v1.36 pkg/apis/storage/{v1/defaults.go,validation}.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api import resources
from moorage.api.names import dns_subdomain_faults, qualified_name_faults
from moorage.kinds.built_in import resource_type
from moorage.kinds.cells import AGE, NAME, column, flag, name_of
from moorage.kinds.fields import (
    defaults,
    driver_name,
    name_rule,
    needed,
    one_of,
    rules,
    unchanging,
)
from moorage.kinds.kind import (
    Column,
    FieldError,
    Obj,
    forbidden,
    invalid,
    required,
    too_long,
)
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, objects, text
from moorage.kinds.values.selectors import check_topologies
from moorage.kinds.values.warnings import of_labels
from moorage.kinds.volumes.volume_rules import check_inline_volume

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
"""Annotation of the class for claims that name none."""
_PARAMETERS_MAX = 512
_PARAMETERS_SIZE_MAX = 256 * 1024
_MESSAGE_SIZE_MAX = 1024


def _class_name(obj: Obj, now_ns: int) -> str:
    is_default = child(obj, "metadata", "annotations").get(DEFAULT_CLASS) == "true"
    return f"{name_of(obj)} (default)" if is_default else name_of(obj)


def _policy(obj: Obj) -> str:
    return text(obj, "reclaimPolicy") or "Delete"


def _mode(obj: Obj) -> str:
    return text(obj, "volumeBindingMode") or "Immediate"


def _closed(name: str, value: Any) -> FieldError:
    return forbidden(name, f"updates to {name} are forbidden.")


_class_closed = unchanging("parameters provisioner reclaimPolicy", _closed)
_class_kept = unchanging("volumeBindingMode")


def _class_change(new: Obj, old: Obj) -> list[FieldError]:
    return _class_closed(new, old) + _class_kept(new, old)


def _provisioner(name: str | None, where: str) -> list[FieldError]:
    if not name:
        return [required(where)]
    return [invalid(where, name, fault) for fault in qualified_name_faults(name.lower())]


def _parameters(parameters: Json | None, where: str) -> list[FieldError]:
    """Check the parameters of a class: at most 512, of at most 256 KiB together."""
    found = parameters or {}
    if len(found) > _PARAMETERS_MAX:
        return [too_long(where, _PARAMETERS_MAX)]
    errors = [invalid(where, "", "field can not be empty.")] if "" in found else []
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in found.items())
    return (
        [*errors, too_long(where, _PARAMETERS_SIZE_MAX)] if size > _PARAMETERS_SIZE_MAX else errors
    )


def _source(source: Json | None, where: str) -> list[FieldError]:
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    sources = {key: value for key, value in (source or {}).items() if value is not None}
    if len(sources) != 1:
        return [forbidden(where, detail) if sources else required(where, detail)]
    volume = sources.get("persistentVolumeName")
    if volume is None:
        return check_inline_volume(sources["inlineVolumeSpec"], f"{where}.inlineVolumeSpec")
    field = f"{where}.persistentVolumeName"
    empty = [] if volume else [required(field, "must specify non empty persistentVolumeName")]
    return empty + [invalid(field, volume, fault) for fault in dns_subdomain_faults(volume)]


def _attachment_status(obj: Json, where: str) -> list[FieldError]:
    status, errors = child(obj, "status"), []
    size = sum(
        len(key.encode()) + len(str(value).encode())
        for key, value in child(status, "attachmentMetadata").items()
    )
    if size > _PARAMETERS_SIZE_MAX:
        errors.append(too_long("status.attachmentMetadata", _PARAMETERS_SIZE_MAX))
    return errors + [
        too_long(f"status.{key}.message", _MESSAGE_SIZE_MAX)
        for key in ("attachError", "detachError")
        if len(text(status, key, "message").encode()) > _MESSAGE_SIZE_MAX
    ]


def _warn_of_class(obj: Obj) -> list[str]:
    keys = [
        (f"allowedTopologies[{i}].matchLabelExpressions[{j}]", text(each, "key"))
        for i, term in enumerate(objects(obj, "allowedTopologies"))
        for j, each in enumerate(objects(term, "matchLabelExpressions"))
    ]
    return of_labels(keys, with_name=False)


STORAGE_CLASS = ServedKind(
    resource=resources.STORAGE_CLASSES,
    acted_on_by="the volume controller, the scheduler",
    columns=(
        Column("Name", "string", "name", NAME.description, cell=_class_name),
        column("Provisioner", "provisioner", "Who makes the volumes"),
        column("ReclaimPolicy", _policy, "What happens to a volume when its claim goes"),
        column("VolumeBindingMode", _mode, "When claims are bound"),
        flag(
            "AllowVolumeExpansion",
            "allowVolumeExpansion",
            "Whether claims may grow",
            type_="string",
        ),
        AGE,
    ),
    defaults=defaults(unset={"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
    rules=rules(
        ("provisioner", _provisioner),
        ("parameters", _parameters),
        ("reclaimPolicy", one_of("Delete", "Retain", empty="accepted")),
        ("volumeBindingMode", one_of("Immediate", "WaitForFirstConsumer")),
        ("allowedTopologies", check_topologies),
    ),
    change=_class_change,
    warn=_warn_of_class,
)
VOLUME_ATTRIBUTES_CLASS = ServedKind(
    resource=resource_type("storage.k8s.io/v1", "volumeattributesclasses"),
    columns=(NAME, column("DriverName", "driverName", "Who changes the volumes"), AGE),
    rules=rules(
        ("driverName", _provisioner),
        ("parameters", _parameters),
        ("parameters", needed("must contain at least one key/value pair")),
    ),
    change=unchanging("driverName parameters", _closed),
)
VOLUME_ATTACHMENT = ServedKind(
    resource=resources.VOLUME_ATTACHMENTS,
    needs_version=True,
    acted_on_by="the scheduler",
    columns=(
        NAME,
        msgspec.structs.replace(
            column("Attacher", "spec.attacher", "Driver that attaches the volume"), format="name"
        ),
        column("PV", "spec.source.persistentVolumeName", "Volume to attach"),
        column("Node", "spec.nodeName", "Node to attach it to"),
        flag("Attached", "status.attached", "Whether it is attached"),
        AGE,
    ),
    defaults=defaults(unset={"status.attached": False}),
    open_status=(),
    rules=rules(
        ("spec.attacher", driver_name),
        ("spec.source", _source),
        ("spec.nodeName", name_rule(dns_subdomain_faults, empty="refused")),
        _attachment_status,
    ),
    change=unchanging("spec"),
    check_status=lambda new, old: _attachment_status(new, ""),
)
KINDS = (
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
    VOLUME_ATTACHMENT,
)
