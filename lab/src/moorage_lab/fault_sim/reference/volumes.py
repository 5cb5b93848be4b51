"""The four volume plugins for one node at a time, straight from the scheduling spec.

Slow and plain on purpose; the oracle of attempts and the property tests hold the plugins equal to
it. Nothing here uses the plugins' own helpers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from moorage.api.node import Node
from moorage.api.pod import Pod, Volume
from moorage.api.quantity import NANO, parse_quantity
from moorage.snapshot.listers import Listers
from moorage_lab.fault_sim.reference.filters import UNRESOLVABLE, Verdict, term_matches

_RESOLVABLE: Final = "Unschedulable"

SELECTED: Final = "volume.kubernetes.io/selected-node"


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Return the name of the claim of a volume; None for a volume without one."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def claims(pod: Pod, listers: Listers) -> list[Any]:
    """Return the claims of a pod that exist."""
    names = (claim_name(pod, volume) for volume in pod.spec.volumes)
    found = (listers.persistent_volume_claims.get(n, pod.namespace) for n in names if n is not None)
    return [claim for claim in found if claim is not None]


def request(claim: Any) -> int:
    """Return the bytes that a claim asks for, in billionths."""
    return parse_quantity(claim.spec.resources.requests.get("storage", 0))


def size(volume: Any) -> int:
    """Return the bytes of a volume, in billionths."""
    return parse_quantity(volume.spec.capacity.get("storage", 0))


def is_bound(claim: Any) -> bool:
    """Return whether a claim has its volume."""
    completed = "pv.kubernetes.io/bind-completed" in claim.metadata.annotations
    return bool(claim.spec.volume_name) and completed


# -- VolumeBinding ---------------------------------------------------------------------------------


def reaches(volume: Any, node: Node) -> bool:
    """Return whether a volume can be used on a node."""
    if volume.spec.node_affinity is None or volume.spec.node_affinity.required is None:
        return True
    return any(
        term_matches(term, node) for term in volume.spec.node_affinity.required.node_selector_terms
    )


def binding(pod: Pod, node: Node, listers: Listers) -> Verdict:
    """Judge a pod whose claims are bound or wait for it."""
    mine = claims(pod, listers)
    reasons: set[str] = set()
    for claim in (each for each in mine if is_bound(each)):
        volume = listers.persistent_volumes.get(claim.spec.volume_name)
        if volume is None:
            reasons.add("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
            break
        if not reaches(volume, node):
            reasons.add("node(s) didn't match PersistentVolume's node affinity")
            break
    fault = waiting([each for each in mine if not is_bound(each)], node, listers)
    if fault is not None:
        reasons.add(fault)
    order = (
        "node(s) didn't match PersistentVolume's node affinity",
        "node(s) didn't find available persistent volumes to bind",
        "node(s) did not have enough free storage",
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    )
    return (UNRESOLVABLE, tuple(text for text in order if text in reasons)) if reasons else None


def waiting(delayed: Sequence[Any], node: Node, listers: Listers) -> str | None:
    """Return why claims that wait for a pod get no volume on a node; None if they do."""
    provision, match = [], []
    for claim in delayed:
        selected = claim.metadata.annotations.get(SELECTED)
        if selected is None:
            match.append(claim)
        elif selected != node.name:
            return "node(s) didn't find available persistent volumes to bind"
        else:
            provision.append(claim)
    chosen: set[str] = set()
    for claim in sorted(match, key=request):
        volume = matched(claim, node, listers, chosen)
        if volume is None:
            provision.append(claim)
        else:
            chosen.add(volume.name)
    for claim in provision:
        fault = provisioned(claim, node, listers)
        if fault is not None:
            return fault
    return None


def matched(claim: Any, node: Node, listers: Listers, chosen: set[str]) -> Any:
    """Return the volume that a claim gets on a node."""
    best = None
    for volume in listers.persistent_volumes.all():
        ref = volume.spec.claim_ref
        if volume.spec.storage_class_name != claim.spec.storage_class_name or volume.name in chosen:
            continue
        reserved = ref is not None and (ref.namespace, ref.name) == (claim.namespace, claim.name)
        reserved = reserved and ref is not None and ref.uid in ("", claim.metadata.uid)
        if (ref is not None and not reserved) or size(volume) < request(claim):
            continue
        if (volume.spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
            continue
        if reserved:
            return volume if reaches(volume, node) else None
        fits = volume.status.phase == "Available" and reaches(volume, node)
        fits = fits and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        if claim.spec.selector is not None:
            wanted = claim.spec.selector.match_labels.items()
            fits = fits and wanted <= volume.metadata.labels.items()
        if fits and (best is None or size(volume) < size(best)):
            best = volume
    return best


def provisioned(claim: Any, node: Node, listers: Listers) -> str | None:
    """Return why no volume can be made for a claim on a node; None if one can."""
    of_class: Any = listers.storage_classes.get(claim.spec.storage_class_name)
    allowed = not of_class.allowed_topologies or any(
        term.match_label_expressions
        and all(
            node.metadata.labels.get(item.key) in item.values
            for item in term.match_label_expressions
        )
        for term in of_class.allowed_topologies
    )
    if of_class.provisioner == "kubernetes.io/no-provisioner" or not allowed:
        return "node(s) didn't find available persistent volumes to bind"
    driver = listers.csi_drivers.get(of_class.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return None
    for capacity in listers.csi_storage_capacities.all():
        limit = capacity.maximum_volume_size or capacity.capacity
        topology = capacity.node_topology
        if capacity.storage_class_name != of_class.name or topology is None or limit is None:
            continue
        here = topology.match_labels.items() <= node.metadata.labels.items()
        if here and math.ceil(parse_quantity(limit) / NANO) >= math.ceil(request(claim) / NANO):
            return None
    return "node(s) did not have enough free storage"


# -- VolumeZone ------------------------------------------------------------------------------------

BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
ZONE: Final = "topology.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
REGION: Final = "topology.kubernetes.io/region"


def zone(pod: Pod, node: Node, listers: Listers) -> Verdict:
    """Judge the zones of bound volumes, by VolumeZone."""
    labels = node.metadata.labels
    if not labels.keys() & {BETA_ZONE, ZONE, BETA_REGION, REGION}:
        return None
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        claim: Any = listers.persistent_volume_claims.get(
            volume.persistent_volume_claim.claim_name, pod.namespace
        )
        if not claim.spec.volume_name:
            continue
        bound: Any = listers.persistent_volumes.get(claim.spec.volume_name)
        for key in (BETA_ZONE, BETA_REGION, ZONE, REGION):
            if key not in bound.metadata.labels:
                continue
            wanted = [part.strip() for part in bound.metadata.labels[key].split("__")]
            newer = {BETA_ZONE: ZONE, BETA_REGION: REGION}.get(key, key)
            found = labels.get(key, labels.get(newer))
            if "" not in wanted and found not in wanted:
                return (UNRESOLVABLE, ("node(s) had no available volume zone",))
    return None


# -- VolumeRestrictions ----------------------------------------------------------------------------


def clash(one: Volume, other: Volume) -> bool:
    """Return whether two volumes must not be on one node."""
    for field, same in (
        ("gce_persistent_disk", ("pd_name",)),
        ("iscsi", ("iqn",)),
        ("aws_elastic_block_store", ("volume_id",)),
        ("rbd", ("pool", "image")),
    ):
        a, b = getattr(one, field), getattr(other, field)
        if a is None or b is None or any(getattr(a, n) != getattr(b, n) for n in same):
            continue
        if field == "rbd" and not set(a.monitors) & set(b.monitors):
            continue
        if field == "aws_elastic_block_store" or not (a.read_only and b.read_only):
            return True
    return False


def restrictions(
    pod: Pod, on_node: Sequence[Pod], everywhere: Sequence[Pod], listers: Listers
) -> Verdict:
    """Judge disks and claims that others use, by VolumeRestrictions."""
    for mine in pod.spec.volumes:
        if any(clash(mine, theirs) for other in on_node for theirs in other.spec.volumes):
            return (_RESOLVABLE, ("node(s) had no available disk",))
    used = {
        (other.namespace, volume.persistent_volume_claim.claim_name)
        for other in everywhere
        for volume in other.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    for claim in claims(pod, listers):
        if "ReadWriteOncePod" in claim.spec.access_modes and (claim.namespace, claim.name) in used:
            text = (
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access "
                "mode already in-use by another pod"
            )
            return (_RESOLVABLE, (text,))
    return None


# -- NodeVolumeLimits ------------------------------------------------------------------------------


def attached(pod: Pod, listers: Listers, *, csi_node: bool) -> dict[tuple[str, str], str]:
    """Return the driver of each volume that a pod attaches, by driver and handle."""
    by_volume: dict[tuple[str, str], str] = {}
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            if volume.gce_persistent_disk is not None and csi_node:
                disk = volume.gce_persistent_disk.pd_name
                handle = f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{disk}"
                by_volume["pd.csi.storage.gke.io", handle] = "pd.csi.storage.gke.io"
            continue
        claim = listers.persistent_volume_claims.get(name, pod.namespace)
        if claim is None:
            continue
        bound = listers.persistent_volumes.get(claim.spec.volume_name)
        if bound is not None:
            if bound.spec.csi is not None:
                by_volume[bound.spec.csi.driver, bound.spec.csi.volume_handle] = (
                    bound.spec.csi.driver
                )
            continue
        of_class = listers.storage_classes.get(claim.spec.storage_class_name or "")
        if of_class is not None:
            by_volume[of_class.provisioner, f"new-{pod.namespace}/{name}"] = of_class.provisioner
    return by_volume


def limits(pod: Pod, node: Node, on_node: Sequence[Pod], listers: Listers) -> Verdict:
    """Judge the number of attached volumes, by NodeVolumeLimits."""
    csi_node = listers.csi_nodes.get(node.name)
    new = attached(pod, listers, csi_node=csi_node is not None)
    if not new or csi_node is None:
        return None
    here: dict[tuple[str, str], str] = {}
    for other in on_node:
        here |= attached(other, listers, csi_node=True)
    drivers = list(here.values())
    extra = set()
    for each in listers.volume_attachments.all():
        name = each.spec.source.persistent_volume_name
        volume = listers.persistent_volumes.get(name or "")
        if each.spec.node_name == node.name and volume is not None and volume.spec.csi is not None:
            extra.add((each.spec.attacher, volume.spec.csi.volume_handle))
    drivers += [driver for driver, handle in extra if (driver, handle) not in here]
    for driver in csi_node.spec.drivers:
        fresh = sum(1 for key, name in new.items() if name == driver.name and key not in here)
        limit = None if driver.allocatable is None else driver.allocatable.count
        if limit is not None and fresh and drivers.count(driver.name) + fresh > limit:
            return (_RESOLVABLE, ("node(s) exceed max volume count",))
    return None
