"""Rules about what pods bring to a node besides themselves: volumes and devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from moorage.api.quantity import parse_quantity
from moorage_lab.fault_sim.history import History, Obj, name_of, node_of
from moorage_lab.fault_sim.invariants.invariant import Invariant
from moorage_lab.fault_sim.invariants.on_node import any_term_selects
from moorage_lab.fault_sim.invariants.write_case import WriteCase

SINGLE = "ReadWriteOncePod"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"


def claims_of(pod: Obj) -> Iterator[str]:
    """Yield the names of the volume claims of a pod, those that are made for it included."""
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield str(volume["persistentVolumeClaim"]["claimName"])
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}"


def _volumes(case: WriteCase) -> Iterable[str]:
    """Look for claims without a volume that the node of the pod reaches."""
    node = case.node
    if node is None:
        return
    claims = case.history.server_objects("persistentvolumeclaims")
    volumes = case.history.server_objects("persistentvolumes")
    classes = case.history.server_objects("storageclasses.storage.k8s.io")
    for name in claims_of(case.pod):
        claim = claims.get((case.pod["metadata"]["namespace"], name))
        where = f"{name_of(case.pod)} on {node_of(case.pod)}: claim {name}"
        if claim is None:
            yield f"{where} does not exist"
        elif volume_name := claim["spec"].get("volumeName"):
            volume = volumes.get(("", volume_name))
            if volume is None:
                yield f"{where} is bound to {volume_name}, which does not exist"
            elif not _reaches(_migrated(volume, case), node) or not _in_zone(volume, node):
                yield f"{where} is bound to {volume_name}, which the node does not reach"
        elif not _can_be_bound(claim, classes, volumes, node) and not _can_be_provisioned(
            claim, classes, node, case.history
        ):
            yield f"{where} is not bound, and no volume can be bound to it"


def _reaches(volume: Obj, node: Obj) -> bool:
    required = volume["spec"].get("nodeAffinity", {}).get("required")
    if required is None:
        return True
    return any_term_selects(required["nodeSelectorTerms"], node)


def _migrated(volume: Obj, case: WriteCase) -> Obj:
    """Return a volume with the zones of a driver, where a driver has taken over on the node."""
    name = case.node["metadata"]["name"] if case.node is not None else ""
    of_node = case.history.server_objects("csinodes.storage.k8s.io").get(("", name), {})
    migrated = of_node.get("metadata", {}).get("annotations", {}).get(_MIGRATED, "")
    if _EBS not in migrated.split(",") or "awsElasticBlockStore" not in volume["spec"]:
        return volume
    text = msgspec.json.encode(volume["spec"]).replace(_ZONES[0].encode(), _EBS_ZONE.encode())
    return {**volume, "spec": msgspec.json.decode(text)}


def _can_be_bound(
    claim: Obj, classes: dict[tuple[str, str], Obj], volumes: dict[tuple[str, str], Obj], node: Obj
) -> bool:
    storage_class = classes.get(("", claim["spec"].get("storageClassName") or ""))
    if storage_class is None or storage_class.get("volumeBindingMode") != "WaitForFirstConsumer":
        return False  # the volume controller binds it, before any pod may go on
    size = parse_quantity(claim["spec"]["resources"]["requests"]["storage"])
    return any(
        volume["spec"].get("storageClassName") == storage_class["metadata"]["name"]
        and not volume["spec"].get("claimRef")
        and volume.get("status", {}).get("phase", "Available") == "Available"
        and parse_quantity(volume["spec"]["capacity"]["storage"]) >= size
        and _reaches(volume, node)
        for volume in volumes.values()
    )


def _in_zone(volume: Obj, node: Obj) -> bool:
    """Return whether a node with a zone or region is in one of those of the volume's labels."""
    has = node["metadata"].get("labels", {})
    zones = volume["metadata"].get("labels", {})
    if not any(key in has for key in _ZONES):
        return True
    return all(has.get(key) in zones[key].split("__") for key in _ZONES if key in zones)


_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_EBS, _EBS_ZONE = "kubernetes.io/aws-ebs", "topology.ebs.csi.aws.com/zone"
_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def _can_be_provisioned(
    claim: Obj, classes: dict[tuple[str, str], Obj], node: Obj, history: History
) -> bool:
    """Return whether a driver can make a volume for a claim that waits for its first pod."""
    storage_class = classes.get(("", claim["spec"].get("storageClassName") or ""))
    if storage_class is None or storage_class.get("volumeBindingMode") != "WaitForFirstConsumer":
        return False
    if storage_class["provisioner"] == _NO_PROVISIONER:
        return False
    labels = node["metadata"].get("labels", {})
    allowed = storage_class.get("allowedTopologies")
    if allowed and not any(_all_in(term, labels) for term in allowed):
        return False
    drivers = history.server_objects("csidrivers.storage.k8s.io")
    if (
        not drivers.get(("", storage_class["provisioner"]), {})
        .get("spec", {})
        .get("storageCapacity")
    ):
        return True
    size = parse_quantity(claim["spec"]["resources"]["requests"]["storage"])
    return any(
        each["storageClassName"] == storage_class["metadata"]["name"]
        and each["nodeTopology"]["matchLabels"].items() <= labels.items()
        and parse_quantity(each["capacity"]) >= size
        for each in history.server_objects("csistoragecapacities.storage.k8s.io").values()
    )


def _all_in(term: Obj, labels: dict[str, str]) -> bool:
    return all(labels.get(each["key"]) in each["values"] for each in term["matchLabelExpressions"])


def _disks(case: WriteCase) -> Iterable[str]:
    """Look for two pods of a node with one disk; only readers may share it."""
    mine = dict(_disks_of(case.pod))
    for other in case.others() if mine else ():
        if node_of(other) != node_of(case.pod):
            continue
        for disk, reads in _disks_of(other):
            if disk in mine and not (reads and mine[disk]):
                yield f"{name_of(case.pod)} and {name_of(other)} have disk {disk}"


def _disks_of(pod: Obj) -> Iterator[tuple[str, bool]]:
    """Yield each disk of a pod, and whether the pod only reads it."""
    for each in pod["spec"].get("volumes") or ():
        if disk := each.get("gcePersistentDisk"):
            yield disk["pdName"], bool(disk.get("readOnly"))


def _single_user(case: WriteCase) -> Iterable[str]:
    """Look for two pods with a claim of one pod; a pod counts until its node is gone, as upstream.

    kube-scheduler counts the users of a claim on the nodes of its snapshot (snapshot.go).
    """
    claims = case.history.server_objects("persistentvolumeclaims")
    namespace = case.pod["metadata"]["namespace"]
    mine = {
        name
        for name in claims_of(case.pod)
        if SINGLE in claims.get((namespace, name), {}).get("spec", {}).get("accessModes", ())
    }
    for other in case.others() if mine else ():
        if node_of(other) not in case.history.nodes:
            continue
        if other["metadata"]["namespace"] == namespace and mine & set(claims_of(other)):
            yield f"{name_of(case.pod)} and {name_of(other)} use a claim of one pod"


def _volume_limit(case: WriteCase) -> Iterable[str]:
    """Count the volumes of a driver on the node, each once, against the node's limit."""
    node = case.node
    mine = set(claims_of(case.pod))
    if node is None or not mine:
        return
    known = case.history.server_objects("csinodes.storage.k8s.io").get(
        ("", node["metadata"]["name"]), {}
    )
    claims = case.history.server_objects("persistentvolumeclaims")
    volumes = case.history.server_objects("persistentvolumes")
    for driver in known.get("spec", {}).get("drivers") or ():
        limit = (driver.get("allocatable") or {}).get("count")
        if limit is None:
            continue
        attached = dict.fromkeys(_still_attached(case, node, driver["name"]))
        users = [pod for pod in case.others() if node_of(pod) == node["metadata"]["name"]]
        for pod in (*users, case.pod):
            for name in claims_of(pod):
                claim = claims.get((pod["metadata"]["namespace"], name), {})
                bound = claim.get("spec", {}).get("volumeName", "")
                source = volumes.get(("", bound), {}).get("spec", {}).get("csi")
                if source is not None and source["driver"] == driver["name"]:
                    attached[source["volumeHandle"]] = None
        if len(attached) > limit:
            yield f"{node['metadata']['name']}: {len(attached)} volumes of {limit} are attached"


def _still_attached(case: WriteCase, node: Obj, driver: str) -> Iterator[str]:
    """Yield the volumes that are attached to a node, whether a pod uses them or not."""
    volumes = case.history.server_objects("persistentvolumes")
    for each in case.history.server_objects("volumeattachments.storage.k8s.io").values():
        spec = each["spec"]
        if (spec["nodeName"], spec["attacher"]) == (node["metadata"]["name"], driver):
            name = spec["source"].get("persistentVolumeName", "")
            source = volumes.get(("", name), {}).get("spec", {}).get("csi", {})
            yield str(source.get("volumeHandle", name))


def _device_once(case: WriteCase) -> Iterable[str]:
    """No device is allocated to two claims."""
    owners: dict[tuple[str, str, str], str] = {}
    for (_, name), claim in case.history.server_objects("resourceclaims.resource.k8s.io").items():
        for device in devices_of(claim):
            if device in owners:
                yield f"device {device} belongs to claims {owners[device]} and {name}"
            owners[device] = name


def devices_of(claim: Obj) -> Iterator[tuple[str, str, str]]:
    """Yield driver, pool and name of each device that is allocated to a claim."""
    devices = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results") or ()
    for each in devices:
        yield each["driver"], each["pool"], each["device"]


def resource_claims_of(pod: Obj) -> Iterator[str]:
    """Yield the names of the resource claims that a pod names itself."""
    for each in pod["spec"].get("resourceClaims") or ():
        if each.get("resourceClaimName"):
            yield str(each["resourceClaimName"])


def _reserved(case: WriteCase) -> Iterable[str]:
    """Look for claims of a bound pod that are not allocated, or not reserved for the pod."""
    claims = case.history.server_objects("resourceclaims.resource.k8s.io")
    for name in resource_claims_of(case.pod) if case.write.by != "nobody" else ():
        claim = claims.get((case.pod["metadata"]["namespace"], name), {})
        status = claim.get("status", {})
        users = [each["uid"] for each in status.get("reservedFor") or ()]
        if not status.get("allocation") or case.pod["metadata"]["uid"] not in users:
            yield f"{name_of(case.pod)} is bound, and claim {name} is not reserved for it"


ATTACHED: tuple[Invariant[WriteCase], ...] = (
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
