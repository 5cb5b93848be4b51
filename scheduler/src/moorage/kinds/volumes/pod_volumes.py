"""The rules of a pod's volumes, and of the places where containers mount them.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidateVolumes,
ValidateVolumeMounts, ValidateVolumeDevices).
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.kinds.fields import each, name_rule, one_of
from moorage.kinds.kind import FieldError, Obj, forbidden, invalid, required
from moorage.kinds.tree import Json, child, objects, text
from moorage.kinds.volumes.pod_sources import SOURCES
from moorage.kinds.volumes.sources import check_initiator, check_source, path_inside

_UNIQUE = "must be unique"
_propagation = one_of("Bidirectional", "HostToContainer", "None")
_recursive = one_of("Disabled", "Enabled", "IfPossible")
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
    privileged = child(container, "securityContext").get("privileged") is True
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
        errors += _check_propagation(mount, field, privileged=privileged)
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
    # The paths of these errors are upstream's.
    errors += path_inside(whole, f"{field}.volumeMounts.subPath")
    return errors + path_inside(expression, f"{field}.volumeMounts.subPathExpr")


def _check_propagation(mount: Json, field: str, *, privileged: bool) -> list[FieldError]:
    """Check how mounts spread; the paths of the errors are upstream's."""
    spreads, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    place, errors = f"{field}.volumeMounts.mountPropagation", []
    if spreads is not None:
        errors += _propagation(spreads, place)
        if spreads == "Bidirectional" and not privileged:
            detail = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden(place, detail))
    if recursive in (None, "Disabled"):
        return errors
    place = f"{field}.volumeMounts.recursiveReadOnly"
    if recursive not in ("Enabled", "IfPossible"):
        return errors + _recursive(recursive, place)
    if mount.get("readOnly") is not True:
        errors.append(forbidden(place, "may only be specified when readOnly is true"))
    if spreads not in (None, "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        errors.append(forbidden(place, detail))
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


def _volume(volume: Json, where: str) -> list[FieldError]:
    errors = check_source(volume, where, SOURCES)
    return errors + check_initiator(volume, text(volume, "name"), f"{where}.name")


check_volumes = each(_volume, unique="name", key=_name)
"""Check the volumes of a pod: names unique, one source each."""


def check_own_volumes(pod: Obj) -> list[FieldError]:
    """Check what holds for the volumes and claims of a pod, but not for those of a template.

    The claims that controllers make for a pod have its name, and images are named.
    """
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
        if volume.get("image") is not None and not text(volume, "image", "reference"):
            errors.append(required(f"{where}.image.reference"))
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


def check_shared_disks(spec: Json, where: str) -> list[FieldError]:
    """Refuse a disk that several pods of a workload would write, since one node may write it.

    Notes
    -----
    kubernetes v1.36 ValidateReadOnlyPersistentDisks. A daemon set has no number of replicas and
    counts as many.
    """
    if spec.get("replicas", 2) <= 1:
        return []
    detail = (
        "must be true for replicated pods > 1; GCE PD can only be mounted on multiple machines if "
        "it is read-only"
    )
    return [
        invalid(f"{where}.template.spec.volumes[{index}].gcePersistentDisk.readOnly", False, detail)
        for index, volume in enumerate(objects(spec, "template", "spec", "volumes"))
        if (disk := volume.get("gcePersistentDisk")) is not None and not disk.get("readOnly")
    ]
