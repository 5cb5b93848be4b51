"""Answers about claims: a probe pod that needs nothing but the claim is explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from moorage.api.claims import PodResourceClaim
from moorage.api.devices import ResourceClaim
from moorage.api.meta import ObjectMeta
from moorage.api.pod import (
    PersistentVolumeClaimVolume,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
)
from moorage.api.volume import PersistentVolumeClaim
from moorage.base.errors import NotFoundError
from moorage.explain.answer import Explanation, Where
from moorage.explain.explaining import explain
from moorage.explain.words import listed
from moorage.explain.workloads.answer import ObjectExplanation
from moorage.explain.workloads.explaining import Answering, explain_pods
from moorage.explain.workloads.folding import PLAIN
from moorage.service.core import Core

_PROBE = "probe-of-a-claim"


def explain_resource_claim(core: Core, namespace: str, name: str) -> Answering:
    """Explain a ResourceClaim: its devices, or what refuses them.

    Raises
    ------
    NotFoundError
        There is no such claim.
    """
    claim = core.snapshot.listers.resource_claims.get(name, namespace)
    if claim is None:
        raise NotFoundError(404, "NotFound", f'resourceclaims "{name}" not found in {namespace}')
    users = _users(core, namespace, lambda pod: name in _claim_names(pod))
    wanted = PodResourceClaim(name="claim", resource_claim_name=name)
    probe = _probe(core, namespace, PodSpec(resource_claims=[wanted]))
    sentence = _allocated(claim) or _unallocated(explain(core, probe, PLAIN), users)
    return _with_users(core, users, ("resourceclaim", namespace, name), sentence)


def explain_volume_claim(core: Core, namespace: str, name: str) -> Answering:
    """Explain a PersistentVolumeClaim: its volume, for what it waits, or what refuses it.

    Raises
    ------
    NotFoundError
        There is no such claim.
    """
    claim = core.snapshot.listers.persistent_volume_claims.get(name, namespace)
    if claim is None:
        raise NotFoundError(
            404, "NotFound", f'persistentvolumeclaims "{name}" not found in {namespace}'
        )
    users = _users(core, namespace, lambda pod: name in _volume_names(pod))
    source = PersistentVolumeClaimVolume(claim_name=name)
    volume = Volume(name="data", persistent_volume_claim=source)
    explanation = explain(core, _probe(core, namespace, PodSpec(volumes=[volume])), PLAIN)
    sentence = _volume_sentence(core, claim, explanation, users)
    return _with_users(core, users, ("persistentvolumeclaim", namespace, name), sentence)


def _with_users(
    core: Core, users: Sequence[Pod], object_: tuple[str, str, str], sentence: str
) -> Answering:
    """Return the answer with the pods that use the claim, by stage and cause."""
    type_, namespace, name = object_
    answer: ObjectExplanation = yield from explain_pods(
        core, users, type_=type_, namespace=namespace, name=name
    )
    return msgspec.structs.replace(answer, sentence=sentence)


def _probe(core: Core, namespace: str, spec: PodSpec) -> Pod:
    """Return a pod that needs nothing but a claim."""
    scheduler_name = next(iter(core.profiles))
    metadata = ObjectMeta(name=_PROBE, namespace=namespace, uid=_PROBE)
    spec = msgspec.structs.replace(spec, scheduler_name=scheduler_name)
    return Pod(metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


def _users(core: Core, namespace: str, uses: Callable[[Pod], bool]) -> list[Pod]:
    pods = (pod for pod in core.store.all_pods() if pod.metadata.namespace == namespace)
    return sorted((pod for pod in pods if uses(pod)), key=lambda each: each.key)


def _claim_names(pod: Pod) -> set[str]:
    """Return the names of the resource claims of a pod, those made from templates as well."""
    names = {each.resource_claim_name for each in pod.spec.resource_claims}
    templates = {each.resource_claim_name for each in pod.status.resource_claim_statuses}
    return {each for each in (*names, *templates) if each}


def _volume_names(pod: Pod) -> set[str]:
    sources = (each.persistent_volume_claim for each in pod.spec.volumes)
    ephemeral = {f"{pod.name}-{each.name}" for each in pod.spec.volumes if each.ephemeral}
    return {each.claim_name for each in sources if each is not None} | ephemeral


# --- resource claims ------------------------------------------------------------------------------


def _allocated(claim: ResourceClaim) -> str:
    """Return which devices a claim has; "" for none."""
    allocation = claim.status.allocation
    if allocation is None:
        return ""
    devices = [f"{each.pool}/{each.device}" for each in allocation.devices.results]
    pods = [each.name for each in claim.status.reserved_for]
    word = "device" if len(devices) == 1 else "devices"
    users = f", reserved for {listed(pods)}" if pods else ", reserved for no pod"
    return f"is allocated: {word} {listed(devices)}{users}"


def _unallocated(explanation: Explanation, users: Sequence[Pod]) -> str:
    """Return why a claim has no devices, from the explanation of a pod that needs nothing else."""
    if explanation.where in {Where.FITS, Where.EXTENDERS}:
        nodes = f"{explanation.feasible} nodes could give it devices"
        if not users:
            return f"is not allocated, as no pod uses it; {nodes}"
        return f"is not allocated; {nodes}, and its pods wait for something else or for their turn"
    return f"is not allocated: a pod that needs nothing else {explanation.sentence}"


# --- volume claims --------------------------------------------------------------------------------


def _volume_sentence(
    core: Core, claim: PersistentVolumeClaim, explanation: Explanation, users: Sequence[Pod]
) -> str:
    """Return the volume of a claim, or for what it waits."""
    fits = explanation.where in {Where.FITS, Where.EXTENDERS}
    total = core.snapshot.num_nodes
    if claim.status.phase == "Lost":
        return f"has lost its volume {claim.spec.volume_name}"
    if claim.spec.volume_name:
        text = f"is bound to volume {claim.spec.volume_name}"
        if fits:
            nodes = f"{explanation.feasible} of {total} nodes"
            return f"{text}; a pod that needs nothing else fits on {nodes}"
        return f"{text}; a pod that needs nothing else {explanation.sentence}"
    if not fits:
        return f"has no volume: a pod that needs nothing else {explanation.sentence}"
    where = f"on {explanation.feasible} of {total} nodes"
    if not users:
        return f"waits for its first consumer, as no pod uses it; one would get a volume {where}"
    return f"waits for its first consumer; it can get a volume {where}"
