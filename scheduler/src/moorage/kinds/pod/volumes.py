"""The rules of a pod's volumes, and of the places where containers mount them.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidateVolumes,
ValidateVolumeMounts, ValidateVolumeDevices).
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.kinds.fields import driver_name, each, if_present, name_rule, needed, rules, sole
from moorage.kinds.kind import FieldError, Obj, invalid, required
from moorage.kinds.tree import Json, child, objects, text
from moorage.kinds.values.quantities import check_quantity
from moorage.kinds.volumes.volume_rules import check_claim_template, host_path, nfs_share

_UNIQUE = "must be unique"
_name = name_rule(dns_label_faults, empty="required")


def _mountable_volumes(spec: Json) -> dict[str, bool]:
    """Return the names of a pod's volumes, and whether each is of a persistent volume claim."""
    return {
        text(volume, "name"): any(
            volume.get(key) is not None for key in ("persistentVolumeClaim", "ephemeral")
        )
        for volume in objects(spec, "volumes")
    }


def check_mounts(container: Json, field: str, spec: Json) -> list[FieldError]:
    """Check the mounts of a container, and its block devices.

    Parameters
    ----------
    container
        The container.
    field
        Its path.
    spec
        The spec of its pod.
    """
    volumes = _mountable_volumes(spec)
    mounts, devices = objects(container, "volumeMounts"), objects(container, "volumeDevices")
    used = {text(each, "name"): text(each, "devicePath") for each in devices}
    errors, paths = [], set[str]()
    for index, mount in enumerate(mounts):
        where, path = f"{field}.volumeMounts[{index}]", text(mount, "mountPath")
        errors += _check_volume(mount, where, volumes)
        if not path:
            errors.append(required(f"{where}.mountPath"))
        elif path in paths:
            errors.append(invalid(f"{where}.mountPath", path, _UNIQUE))
        paths.add(path)
        errors += _check_overlap(mount, where, ("mountPath", used, "volumeDevices"))
        errors += _check_sub_paths(mount, field, where)
    mounted = {text(each, "name"): text(each, "mountPath") for each in mounts}
    return errors + _check_devices(devices, f"{field}.volumeDevices", volumes, mounted)


def _check_volume(use: Json, where: str, volumes: Mapping[str, bool]) -> list[FieldError]:
    name = text(use, "name")
    if not name:
        return [required(f"{where}.name")]
    return [] if name in volumes else [FieldError("FieldValueNotFound", f"{where}.name", name)]


def _check_overlap(
    use: Json, where: str, others: tuple[str, Mapping[str, str], str]
) -> list[FieldError]:
    """Refuse a volume, and a path, that is mounted and a block device as well."""
    key, used, which = others
    name, path, errors = text(use, "name"), text(use, key), []
    if name in used:
        errors.append(invalid(f"{where}.name", name, f"must not already exist in {which}"))
    if path in used.values():
        detail = f"must not already exist as a path in {which}"
        errors.append(invalid(f"{where}.{key}", path, detail))
    return errors


def _check_sub_paths(mount: Json, field: str, where: str) -> list[FieldError]:
    errors = []
    whole, expression = text(mount, "subPath"), text(mount, "subPathExpr")
    if whole and expression:
        detail = "subPathExpr and subPath are mutually exclusive"
        errors.append(invalid(f"{where}.subPathExpr", expression, detail))
    for key, path in (("subPath", whole), ("subPathExpr", expression)):
        # The path of the error is upstream's.
        place = f"{field}.volumeMounts.{key}"
        if path.startswith("/"):
            errors.append(invalid(place, path, "must be a relative path"))
        if ".." in path.split("/"):
            errors.append(invalid(place, path, "must not contain '..'"))
    return errors


def _check_devices(
    devices: list[Json], field: str, volumes: Mapping[str, bool], mounted: Mapping[str, str]
) -> list[FieldError]:
    errors, names, paths = [], set[str](), set[str]()
    for index, device in enumerate(devices):
        where, name = f"{field}[{index}]", text(device, "name")
        path, place = text(device, "devicePath"), f"{field}[{index}].devicePath"
        if name in names:
            errors.append(invalid(f"{where}.name", name, _UNIQUE))
        names.add(name)
        if volumes.get(name) is False:
            detail = "can only use volume source type of PersistentVolumeClaim for block mode"
            errors.append(invalid(f"{where}.name", name, detail))
        errors += _check_volume(device, where, volumes)
        if not path:
            errors.append(required(place))
        if path in paths:
            errors.append(invalid(place, path, _UNIQUE))
        if ".." in path.split("/"):
            errors.append(invalid(place, path, "can not contain backsteps ('..')"))
        else:
            paths.add(path)
        errors += _check_overlap(device, where, ("devicePath", mounted, "volumeMounts"))
    return errors


# Volume source -> its required field.
_NEEDED = {
    "persistentVolumeClaim": "claimName",
    "configMap": "name",
    "secret": "secretName",
    "gcePersistentDisk": "pdName",
    "awsElasticBlockStore": "volumeID",
    "ephemeral": "volumeClaimTemplate",
}


def _first_source(volume: Json, field: str) -> list[FieldError]:
    source = next((key for key in volume if key != "name" and volume[key] is not None), "")
    name = _NEEDED.get(source)
    return needed()(volume[source].get(name), f"{field}.{source}.{name}") if name else []


check_volumes = each(
    rules(
        sole(
            None,
            "must specify a volume type",
            "may not specify more than 1 volume type",
            skipped=("name",),
        ),
        _first_source,
        ("emptyDir.sizeLimit", if_present(check_quantity)),
        ("ephemeral.volumeClaimTemplate", if_present(check_claim_template)),
        ("csi", if_present(rules(("driver", driver_name)))),
        ("hostPath", if_present(host_path)),
        ("nfs", if_present(nfs_share)),
    ),
    unique="name",
    key=_name,
)
"""Check the volumes of a pod: names unique, one source each."""


def check_made_claims(pod: Obj) -> list[FieldError]:
    """Check the names of the claims that controllers make for a pod, which have its name."""
    name, spec = text(pod, "metadata", "name"), child(pod, "spec")
    volumes, errors = objects(spec, "volumes"), []
    claim_names = {
        f"{name}-{text(each, 'name')}" for each in volumes if each.get("ephemeral") is not None
    }
    for index, volume in enumerate(volumes):
        where, own = f"spec.volumes[{index}]", text(volume, "name")
        if volume.get("ephemeral") is not None and own:
            full = f"{name}-{own}"
            errors += [
                invalid(f"{where}.name", own, f'PVC name "{full}": {fault}')
                for fault in dns_subdomain_faults(full)
            ]
        used = text(volume, "persistentVolumeClaim", "claimName")
        if used in claim_names:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{where}.persistentVolumeClaim.claimName", used, detail))
    for index, claim in enumerate(objects(spec, "resourceClaims")):
        where, own = f"spec.resourceClaims[{index}].name", text(claim, "name")
        full = f"{name}-{own}"
        if claim.get("resourceClaimTemplateName") is not None and not dns_label_faults(own):
            errors += [
                invalid(where, full, f"final ResourceClaim name: {fault}")
                for fault in dns_subdomain_faults(full)
            ]
    return errors
