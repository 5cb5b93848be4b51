"""The subjects of rejections because of volumes: the claim, its volume, its StorageClass.

Which claim it is, is tried: the plugin is asked again about the pod with one volume at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.api.quantity import canonical, parse_quantity
from moorage.api.selectors import compile_node_selector
from moorage.api.volume import PersistentVolume, PersistentVolumeClaim
from moorage.engine.inquiry import Inquiry
from moorage.explain.rejections import Rejection
from moorage.explain.words import listed, terms_text
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.volume_pods import volumes_of

_ZONE_LABELS: Final = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
ONE_POD: Final = "ReadWriteOncePod"
"""The access mode of a claim for one pod, which is also in the reason of a rejection for it."""
_NOT_INSTALLED: Final = "is not installed"
_STORAGE: Final = "storage"
_ROWS_MOST: Final = 8
_USERS_MOST: Final = 16
"""Rows, and pods of each, that are tried to name the users of a disk; guesses."""


def volume_facts(rejection: Rejection) -> str:
    """Return the claims whose volumes cannot be used on these rows, and why."""
    gone = list(_gone(rejection))
    if gone:
        return " and ".join(gone)
    facts = [
        _fact(rejection, claim, " ".join(reasons)) for claim, reasons in _rejected_claims(rejection)
    ]
    return " and ".join(fact for fact in facts if fact)


def volumes_may_come(inquiry: Inquiry, reasons: Iterable[str]) -> bool:
    """Whether all reasons are about volumes or storage that may still come to a node."""
    text = list(reasons)
    if not text or not all("to bind" in each or "free storage" in each for each in text):
        return False
    listers, pod = inquiry.snapshot.listers, inquiry.attempt.pod
    for each in volumes_of(pod).claims:
        claim = listers.persistent_volume_claims.get(each.name_for(pod.name), pod.namespace)
        if claim is None or claim.spec.volume_name:
            continue
        found = listers.storage_classes.get(claim.spec.storage_class_name or "")
        if found is not None and found.allowed_topologies:
            return False  # the class makes volumes elsewhere only
    return True


def _gone(rejection: Rejection) -> Iterator[str]:
    """Yield what PreFilter did not find: claims of the pod, or their volumes."""
    if len(rejection.rows):
        return
    listers, pod = rejection.inquiry.snapshot.listers, rejection.inquiry.attempt.pod
    text = " ".join(rejection.reasons)
    for each in volumes_of(pod).claims:
        name = each.name_for(pod.name)
        claim = listers.persistent_volume_claims.get(name, pod.namespace)
        if claim is None:
            if f'"{name}" not found' in text:
                yield f"its claim {name}, which does not exist in namespace {pod.namespace}"
            elif f'create the persistentvolumeclaim "{name}"' in text:
                yield f"its claim {name} of volume {each.volume}, which has not been created yet"
            continue
        volume = claim.spec.volume_name
        if "is being deleted" in text and f'"{name}"' in text:
            yield f"its claim {name}, which is being deleted"
        elif f"PVC {pod.namespace}/{name} was not created for pod" in text:
            yield f"its claim {name}, which was not made for this pod"
        elif volume and (f'"{volume}" not found' in text or f'persistentvolume "{volume}"' in text):
            yield f"its claim {name}, whose volume {volume} does not exist"


def _rejected_claims(
    rejection: Rejection,
) -> Iterator[tuple[PersistentVolumeClaim, tuple[str, ...]]]:
    """Yield the claims for which alone the plugin rejects these rows, with its reasons."""
    claims = list(_claims(rejection))
    for name, claim in claims:
        if len(claims) == 1:
            yield claim, rejection.reasons
            continue
        reasons = rejection.again(_with_volume(rejection.pod, name))
        if reasons:
            yield claim, reasons


def _claims(rejection: Rejection) -> Iterator[tuple[str, PersistentVolumeClaim]]:
    """Yield the claims of the pod that exist, each with the name of its volume in the pod."""
    listers, pod = rejection.inquiry.snapshot.listers, rejection.inquiry.attempt.pod
    for each in volumes_of(pod).claims:
        name = each.name_for(pod.name)
        claim = listers.persistent_volume_claims.get(name, pod.namespace)
        if claim is not None:
            yield each.volume, claim


def _with_volume(pod: Pod, name: str) -> Pod:
    volumes = [each for each in pod.spec.volumes if each.name == name]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=volumes))


def _fact(rejection: Rejection, claim: PersistentVolumeClaim, reason: str) -> str:
    listers = rejection.inquiry.snapshot.listers
    volume = listers.persistent_volumes.get(claim.spec.volume_name)
    its = f"its claim {claim.name}"
    if "unbound immediate" in reason:
        return _unbound(rejection)
    if "non-existent pv" in reason:
        return f"{its}, whose volume {claim.spec.volume_name} does not exist"
    if "node affinity" in reason and volume is not None:
        return f"{its}, whose volume {volume.name} is for nodes with {_nodes_of(rejection, volume)}"
    if "volume zone" in reason and volume is not None:
        return f"{its}, whose volume {volume.name} is in {_zones_of(volume)}"
    its += f" (StorageClass {claim.spec.storage_class_name})"
    if "to bind" in reason:
        made, why = _class_words(rejection, claim), _unsuitable(rejection, claim)
        return f"{its}, for which these nodes have no free volume{made}{why}"
    if "free storage" in reason:
        return f"{its}, for which these nodes have too little storage left"
    return ""


def _nodes_of(rejection: Rejection, volume: PersistentVolume) -> str:
    affinity = volume.spec.node_affinity
    if affinity is None or not affinity.required:
        return "its labels"
    table, matcher = rejection.inquiry.snapshot.table, compile_node_selector(affinity.required)
    nodes = table.nodes[: rejection.inquiry.snapshot.num_nodes]
    there = any(matcher.matches_node(each.metadata.labels, each.name) for each in nodes)
    return (
        terms_text(affinity.required)
        if there
        else f"{terms_text(affinity.required)}, and none exists"
    )


def _zones_of(volume: PersistentVolume) -> str:
    labels = volume.metadata.labels
    return listed(f"{key} {labels[key]}" for key in _ZONE_LABELS if key in labels)


def _class_words(rejection: Rejection, claim: PersistentVolumeClaim) -> str:
    """Return that a class makes volumes elsewhere only; "" for a class that makes none."""
    listers = rejection.inquiry.snapshot.listers
    found = listers.storage_classes.get(claim.spec.storage_class_name or "")
    if found is None or found.provisioner.endswith("no-provisioner"):
        return ""
    return ", and where the class makes none"


def _unsuitable(rejection: Rejection, claim: PersistentVolumeClaim) -> str:
    """Return why the free volumes of a claim's class do not suit; "" where there are none."""
    volumes = rejection.inquiry.snapshot.listers.persistent_volumes.all()
    name = claim.spec.storage_class_name or ""
    free = [
        each.spec
        for each in volumes
        if each.spec.storage_class_name == name and each.spec.claim_ref is None
    ]
    modes = set(claim.spec.access_modes)
    suitable = [each for each in free if modes <= set(each.access_modes)]
    if free and not suitable:
        return f" with {', '.join(claim.spec.access_modes)}"
    wanted = claim.spec.resources.requests.get(_STORAGE, "0")
    sizes = [each.capacity.get(_STORAGE, "0") for each in suitable]
    largest = max(sizes, key=parse_quantity, default="")
    if largest and parse_quantity(largest) < parse_quantity(wanted):
        return f" (it requests {canonical(wanted)}, the largest free one has {canonical(largest)})"
    return ""


# --- claims that PreFilter rejects ----------------------------------------------------------------


def _unbound(rejection: Rejection) -> str:
    """Return the claims that have no volume, and what they wait for."""
    unbound = [claim for _, claim in _claims(rejection) if not claim.spec.volume_name]
    return listed(f"its claim {_waiting(rejection, claim)}" for claim in unbound)


def _waiting(rejection: Rejection, claim: PersistentVolumeClaim) -> str:
    name = claim.spec.storage_class_name
    if not name:
        return f"{claim.name}, which has no StorageClass and no volume"
    if rejection.inquiry.snapshot.listers.storage_classes.get(name) is None:
        return f"{claim.name}, whose StorageClass {name} does not exist"
    return f"{claim.name}, to which StorageClass {name} has bound no volume yet"


# --- volumes that other pods use ------------------------------------------------------------------


def volume_use_facts(rejection: Rejection) -> str:
    """Return the claim or disk that another pod uses, or the limit that is reached."""
    text = "; ".join(rejection.reasons)
    if ONE_POD in text:
        return " and ".join(_single_pod_claims(rejection))
    if "no available disk" in text:
        return f"a disk that {_users_of_disks(rejection) or 'other pods use'} on these nodes"
    gone = list(_gone(rejection))
    if gone:
        return " and ".join(gone)
    if "max volume count" in text:
        return _limit(rejection)
    if _NOT_INSTALLED in text:
        drivers = [each for each in sorted(set(_drivers(rejection))) if f"{each} CSI" in text]
        return f"the CSI driver {listed(drivers)}, which is not installed on these nodes"
    return ""


def drivers_may_come(inquiry: Inquiry, reasons: Iterable[str]) -> bool:
    """Whether all reasons are about CSI drivers that may still be installed on a node."""
    del inquiry
    text = list(reasons)
    return bool(text) and all(_NOT_INSTALLED in each for each in text)


def _users_of_disks(rejection: Rejection) -> str:
    """Return the pods of a few rows without which the plugin takes their row, and "use"."""
    snapshot, names = rejection.inquiry.snapshot, list[str]()
    for row in rejection.rows[:_ROWS_MOST].tolist():
        alone = msgspec.structs.replace(rejection, rows=np.array([row]))
        users = [each for each in snapshot.pods(row) if each.pod.spec.volumes]
        for user in users[:_USERS_MOST]:
            with snapshot.trial() as trial:
                trial.remove_pod(user.uid)
                if not alone.again():
                    names.append(user.key)
    if not names:
        return ""
    plural, use = ("s", "use") if len(names) > 1 else ("", "uses")
    return f"pod{plural} {listed(sorted(names))} {use}"


def _single_pod_claims(rejection: Rejection) -> Iterator[str]:
    """Yield the claims that only one pod may use, with the pods that use them."""
    for _, claim in _claims(rejection):
        if ONE_POD in claim.spec.access_modes:
            users = users_of(rejection.inquiry.snapshot, claim)
            has = listed(f"pod {user.key}" for user in users) or "another pod"
            yield f"its claim {claim.name}, which only one pod may use and {has} has"


def users_of_claims(snapshot: Snapshot, pod: PodInfo) -> list[PodInfo]:
    """Return the pods on nodes that use a claim of a pod which only one pod may use."""
    pods = []
    for each in volumes_of(pod).claims:
        name = each.name_for(pod.name)
        claim = snapshot.listers.persistent_volume_claims.get(name, pod.namespace)
        if claim is not None and ONE_POD in claim.spec.access_modes:
            pods += users_of(snapshot, claim)
    return pods


def users_of(snapshot: Snapshot, claim: PersistentVolumeClaim) -> list[PodInfo]:
    """Return the pods on nodes that use a claim, by name."""
    pods = []
    for node_name in snapshot.volume_pods.nodes_of_claim((claim.namespace, claim.name)):
        for each in snapshot.volume_pods.on_node(node_name).values():
            names = {used.name_for(each.name) for used in volumes_of(each).claims}
            if each.namespace == claim.namespace and claim.name in names:
                pods.append(each)
    return sorted(pods, key=lambda each: each.key)


def _limit(rejection: Rejection) -> str:
    snapshot, drivers = rejection.inquiry.snapshot, sorted(set(_drivers(rejection)))
    most = 0
    for row in rejection.rows.tolist():
        csi_node = snapshot.listers.csi_nodes.get(snapshot.names[row])
        for each in () if csi_node is None else csi_node.spec.drivers:
            if each.name in drivers and each.allocatable is not None:
                most = max(most, each.allocatable.count or 0)
    of = f" of {listed(drivers)}" if drivers else ""
    if rejection.never:
        number = len(list(_drivers(rejection)))
        return f"the number of volumes{of} (it has {number}, these nodes take at most {most})"
    at_most = f", at most {most}" if most else ""
    return f"the number of volumes{of} (each node has as many as it takes{at_most})"


def _drivers(rejection: Rejection) -> Iterable[str]:
    """Yield the CSI drivers of the pod's claims."""
    listers = rejection.inquiry.snapshot.listers
    for _, claim in _claims(rejection):
        volume = listers.persistent_volumes.get(claim.spec.volume_name)
        if volume is not None and volume.spec.csi is not None:
            yield volume.spec.csi.driver
        elif volume is None:
            found = listers.storage_classes.get(claim.spec.storage_class_name or "")
            if found is not None:
                yield found.provisioner
