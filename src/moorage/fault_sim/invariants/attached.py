"""Rules about what pods bring to a node besides themselves: volumes and devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from moorage.api.quantity import parse_quantity
from moorage.fault_sim.history import History, Obj, name_of, node_of
from moorage.fault_sim.invariants.invariant import Invariant
from moorage.fault_sim.invariants.on_node import any_term_selects
from moorage.fault_sim.invariants.seen import Seen

SINGLE = "ReadWriteOncePod"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"


def claims_of(pod: Obj) -> Iterator[str]:
    """Yield the names of the volume claims of a pod."""
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield str(volume["persistentVolumeClaim"]["claimName"])


def _volumes(seen: Seen) -> Iterable[str]:
    """Look for claims without a volume that the node of the pod reaches."""
    node = seen.node
    if node is None:
        return
    claims = seen.history.server_objects("persistentvolumeclaims")
    volumes = seen.history.server_objects("persistentvolumes")
    classes = seen.history.server_objects("storageclasses.storage.k8s.io")
    for name in claims_of(seen.pod):
        claim = claims.get((seen.pod["metadata"]["namespace"], name))
        where = f"{name_of(seen.pod)} on {node_of(seen.pod)}: claim {name}"
        if claim is None:
            yield f"{where} does not exist"
        elif volume_name := claim["spec"].get("volumeName"):
            volume = volumes.get(("", volume_name))
            if volume is None:
                yield f"{where} is bound to {volume_name}, which does not exist"
            elif not _reaches(_migrated(volume, seen), node) or not _in_zone(volume, node):
                yield f"{where} is bound to {volume_name}, which the node does not reach"
        elif not _can_be_bound(claim, classes, volumes, node) and not _can_be_made(
            claim, classes, node, seen.history
        ):
            yield f"{where} is not bound, and no volume can be bound to it"


def _reaches(volume: Obj, node: Obj) -> bool:
    required = volume["spec"].get("nodeAffinity", {}).get("required")
    if required is None:
        return True
    return any_term_selects(required["nodeSelectorTerms"], node)


def _migrated(volume: Obj, seen: Seen) -> Obj:
    """Return a volume with the zones of a driver, where a driver has taken over on the node."""
    name = seen.node["metadata"]["name"] if seen.node is not None else ""
    of_node = seen.history.server_objects("csinodes.storage.k8s.io").get(("", name), {})
    told = of_node.get("metadata", {}).get("annotations", {}).get(_MIGRATED, "")
    if _EBS not in told.split(",") or "awsElasticBlockStore" not in volume["spec"]:
        return volume
    text = msgspec.json.encode(volume["spec"]).replace(_ZONES[0].encode(), _EBS_ZONE.encode())
    return {**volume, "spec": msgspec.json.decode(text)}


def _can_be_bound(
    claim: Obj, classes: dict[tuple[str, str], Obj], volumes: dict[tuple[str, str], Obj], node: Obj
) -> bool:
    found = classes.get(("", claim["spec"].get("storageClassName") or ""))
    if found is None or found.get("volumeBindingMode") != "WaitForFirstConsumer":
        return False  # the volume controller binds it, before any pod may go on
    wanted = parse_quantity(claim["spec"]["resources"]["requests"]["storage"])
    return any(
        volume["spec"].get("storageClassName") == found["metadata"]["name"]
        and not volume["spec"].get("claimRef")
        and volume.get("status", {}).get("phase", "Available") == "Available"
        and parse_quantity(volume["spec"]["capacity"]["storage"]) >= wanted
        and _reaches(volume, node)
        for volume in volumes.values()
    )


def _in_zone(volume: Obj, node: Obj) -> bool:
    """Return whether a node with a zone or region is in one of those of the volume's labels."""
    has = node["metadata"].get("labels", {})
    wanted = volume["metadata"].get("labels", {})
    if not any(key in has for key in _ZONES):
        return True
    return all(has.get(key) in wanted[key].split("__") for key in _ZONES if key in wanted)


_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_EBS, _EBS_ZONE = "kubernetes.io/aws-ebs", "topology.ebs.csi.aws.com/zone"
_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def _can_be_made(
    claim: Obj, classes: dict[tuple[str, str], Obj], node: Obj, history: History
) -> bool:
    """Return whether a driver can make a volume for a claim that waits for its first pod."""
    found = classes.get(("", claim["spec"].get("storageClassName") or ""))
    if found is None or found.get("volumeBindingMode") != "WaitForFirstConsumer":
        return False
    if found["provisioner"] == _NO_PROVISIONER:
        return False
    labels = node["metadata"].get("labels", {})
    allowed = found.get("allowedTopologies")
    if allowed and not any(_all_in(term, labels) for term in allowed):
        return False
    drivers = history.server_objects("csidrivers.storage.k8s.io")
    if not drivers.get(("", found["provisioner"]), {}).get("spec", {}).get("storageCapacity"):
        return True
    wanted = parse_quantity(claim["spec"]["resources"]["requests"]["storage"])
    return any(
        each["storageClassName"] == found["metadata"]["name"]
        and each["nodeTopology"]["matchLabels"].items() <= labels.items()
        and parse_quantity(each["capacity"]) >= wanted
        for each in history.server_objects("csistoragecapacities.storage.k8s.io").values()
    )


def _all_in(term: Obj, labels: dict[str, str]) -> bool:
    return all(labels.get(each["key"]) in each["values"] for each in term["matchLabelExpressions"])


def _disks(seen: Seen) -> Iterable[str]:
    """Look for two pods of a node with one disk; only readers may share it."""
    mine = dict(_disks_of(seen.pod))
    for other in seen.others() if mine else ():
        if node_of(other) != node_of(seen.pod):
            continue
        for disk, reads in _disks_of(other):
            if disk in mine and not (reads and mine[disk]):
                yield f"{name_of(seen.pod)} and {name_of(other)} have disk {disk}"


def _disks_of(pod: Obj) -> Iterator[tuple[str, bool]]:
    """Yield each disk of a pod, and whether the pod only reads it."""
    for each in pod["spec"].get("volumes") or ():
        if found := each.get("gcePersistentDisk"):
            yield found["pdName"], bool(found.get("readOnly"))


def _single_user(seen: Seen) -> Iterable[str]:
    claims = seen.history.server_objects("persistentvolumeclaims")
    namespace = seen.pod["metadata"]["namespace"]
    mine = {
        name
        for name in claims_of(seen.pod)
        if SINGLE in claims.get((namespace, name), {}).get("spec", {}).get("accessModes", ())
    }
    for other in seen.others() if mine else ():
        if other["metadata"]["namespace"] == namespace and mine & set(claims_of(other)):
            yield f"{name_of(seen.pod)} and {name_of(other)} use a claim of one pod"


def _volume_limit(seen: Seen) -> Iterable[str]:
    """Count the volumes of a driver on the node, each once, against the node's limit."""
    node = seen.node
    mine = set(claims_of(seen.pod))
    if node is None or not mine:
        return
    known = seen.history.server_objects("csinodes.storage.k8s.io").get(
        ("", node["metadata"]["name"]), {}
    )
    claims = seen.history.server_objects("persistentvolumeclaims")
    volumes = seen.history.server_objects("persistentvolumes")
    for driver in known.get("spec", {}).get("drivers") or ():
        limit = (driver.get("allocatable") or {}).get("count")
        if limit is None:
            continue
        attached = dict.fromkeys(_left_attached(seen, node, driver["name"]))
        users = [pod for pod in seen.others() if node_of(pod) == node["metadata"]["name"]]
        for pod in (*users, seen.pod):
            for name in claims_of(pod):
                claim = claims.get((pod["metadata"]["namespace"], name), {})
                bound = claim.get("spec", {}).get("volumeName", "")
                source = volumes.get(("", bound), {}).get("spec", {}).get("csi")
                if source is not None and source["driver"] == driver["name"]:
                    attached[source["volumeHandle"]] = None
        if len(attached) > limit:
            yield f"{node['metadata']['name']}: {len(attached)} volumes of {limit} are attached"


def _left_attached(seen: Seen, node: Obj, driver: str) -> Iterator[str]:
    """Yield the volumes that are attached to a node, whether a pod uses them or not."""
    volumes = seen.history.server_objects("persistentvolumes")
    for each in seen.history.server_objects("volumeattachments.storage.k8s.io").values():
        spec = each["spec"]
        if (spec["nodeName"], spec["attacher"]) == (node["metadata"]["name"], driver):
            name = spec["source"].get("persistentVolumeName", "")
            source = volumes.get(("", name), {}).get("spec", {}).get("csi", {})
            yield str(source.get("volumeHandle", name))


def _device_once(seen: Seen) -> Iterable[str]:
    """No device is allocated to two claims."""
    owners: dict[tuple[str, str, str], str] = {}
    for (_, name), claim in seen.history.server_objects("resourceclaims.resource.k8s.io").items():
        for device in devices_of(claim):
            if device in owners:
                yield f"device {device} belongs to claims {owners[device]} and {name}"
            owners[device] = name


def devices_of(claim: Obj) -> Iterator[tuple[str, str, str]]:
    """Yield driver, pool and name of each device that is allocated to a claim."""
    found = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results") or ()
    for each in found:
        yield each["driver"], each["pool"], each["device"]


def resource_claims_of(pod: Obj) -> Iterator[str]:
    """Yield the names of the resource claims that a pod names itself."""
    for each in pod["spec"].get("resourceClaims") or ():
        if each.get("resourceClaimName"):
            yield str(each["resourceClaimName"])


def _reserved(seen: Seen) -> Iterable[str]:
    """Look for claims of a bound pod that are not allocated, or not reserved for the pod."""
    claims = seen.history.server_objects("resourceclaims.resource.k8s.io")
    for name in resource_claims_of(seen.pod) if seen.write.by != "nobody" else ():
        claim = claims.get((seen.pod["metadata"]["namespace"], name), {})
        status = claim.get("status", {})
        users = [each["uid"] for each in status.get("reservedFor") or ()]
        if not status.get("allocation") or seen.pod["metadata"]["uid"] not in users:
            yield f"{name_of(seen.pod)} is bound, and claim {name} is not reserved for it"


ATTACHED: tuple[Invariant[Seen], ...] = (
    Invariant(
        "volumes",
        "A node reaches the volumes of its pods.",
        "a pod is bound before its claim (kubernetes#70180)",
        _volumes,
    ),
    Invariant("disks", "A disk has one writer on a node.", "two pods write", _disks),
    Invariant(
        "single-user", "A ReadWriteOncePod claim has one pod.", "two pods write", _single_user
    ),
    Invariant(
        "volume-limit",
        "No node has more volumes than it can attach.",
        "volumes of pods under way are not counted (kubernetes#126502)",
        _volume_limit,
    ),
    Invariant("device-once", "A device belongs to one claim.", "double allocation", _device_once),
    Invariant(
        "reserved",
        "A bound pod's claims are allocated and reserved for it.",
        "a pod starts without its devices",
        _reserved,
    ),
)
