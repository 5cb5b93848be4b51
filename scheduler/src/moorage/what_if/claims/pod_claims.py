"""Resource claims in a model: made from templates, allocated with their pods, and released.

Mirrors kubernetes v1.36 pkg/controller/resourceclaim, and what PreBind of DynamicResources writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from moorage.api.claims import PodResourceClaimStatus
from moorage.api.codec import decode, from_dict, to_dict
from moorage.api.devices import ResourceClaim, ResourceClaimConsumerReference
from moorage.api.pod import Pod
from moorage.api.resources import PODS, RESOURCE_CLAIMS
from moorage.base.errors import UsageError
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import Key
from moorage.what_if.rules.bounds import Bounds
from moorage.workloads.claim_steps import claim_of, template_of, unmade
from moorage.workloads.objects import Whole

_LISTER: Final = "resource_claims"
_TEMPLATES: Final = ("resource.k8s.io", "ResourceClaimTemplate")


class PodClaims:
    """Keeps the resource claims of pods as pods come, are bound, and go.

    Parameters
    ----------
    model
        Has the pods, the claims and the templates.
    bounds
        Turns templates into claims, as namespaces allow.

    Attributes
    ----------
    refused
        Uid of a pod -> why its namespace refuses a claim from a template.
    """

    def __init__(self, model: ClusterModel, bounds: Bounds) -> None:
        self._model = model
        self._bounds = bounds
        self.refused: dict[str, str] = {}
        for pod in model.objects.pending_pods:
            self._pod_changed(None, pod)
        model.changes.append(self._pod_changed)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or not pod.spec.resource_claims:
            return
        if new is None:
            self._release(pod)
        elif old is None and not new.spec.node_name:
            self._model.soon(lambda: self._make(new))
        elif new.spec.node_name and old is not None and not old.spec.node_name:
            self._write_allocation(new)

    def _make(self, pod: Pod) -> None:
        current = self._model.current(pod)
        if current is None or current.metadata.deletion_timestamp:
            return
        statuses_made = [
            PodResourceClaimStatus(name=entry, resource_claim_name=name)
            for entry in unmade(current)
            if (name := self._new_claim(current, entry))
        ]
        if statuses_made:
            statuses = [*current.status.resource_claim_statuses, *statuses_made]
            status = msgspec.structs.replace(current.status, resource_claim_statuses=statuses)
            self._model.update_pod(msgspec.structs.replace(current, status=status))

    def _new_claim(self, pod: Pod, entry: str) -> str:
        """Make the claim of an entry, and return its name, "" where none can be made."""
        templates = self._model.objects.manifests.get(_TEMPLATES, {})
        text = templates.get((pod.namespace, template_of(pod, entry)))
        if text is None:
            return ""
        try:
            stored = self._bounds.stored_claim(claim_of(pod, entry, decode(Whole, text)))
        except UsageError as refusal:
            self.refused[pod.uid] = str(refusal)
            return ""
        name = str(stored["metadata"]["name"])
        self._put_claim((pod.namespace, name), from_dict(ResourceClaim, stored))
        return name

    def _write_allocation(self, pod: Pod) -> None:
        """Write what PreBind writes: the allocation that was decided, and the pod that uses it."""
        table = self._model.half.core.snapshot.claims
        own = ResourceClaimConsumerReference(resource=PODS.plural, name=pod.name, uid=pod.uid)
        for key, claim in self._claims_of(pod):
            under_way = table.find_under_way(claim.metadata.uid)
            allocation = claim.status.allocation
            if under_way is not None and allocation is None:
                allocation = under_way.claim.status.allocation
            users = [*claim.status.reserved_for, own]
            status = msgspec.structs.replace(
                claim.status, allocation=allocation, reserved_for=users
            )
            self._put_claim(key, msgspec.structs.replace(claim, status=status))
            table.end_allocation(claim.metadata.uid)

    def _release(self, pod: Pod) -> None:
        """Remove the claims made for a pod that is gone, and free those that nobody uses now."""
        for key, claim in self._claims_of(pod):
            owner = claim.metadata.controller
            if owner is not None and owner.uid == pod.uid:
                self._model.remove(_LISTER, key)
                self._bounds.count(RESOURCE_CLAIMS.qualified, to_dict(claim), -1)
                continue
            users = [each for each in claim.status.reserved_for if each.uid != pod.uid]
            allocation = claim.status.allocation if users else None
            status = msgspec.structs.replace(
                claim.status, allocation=allocation, reserved_for=users
            )
            self._put_claim(key, msgspec.structs.replace(claim, status=status))

    def _claims_of(self, pod: Pod) -> Iterator[tuple[Key, Any]]:
        made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
        known = self._model.objects.lister(_LISTER)
        for entry in pod.spec.resource_claims:
            key = (pod.namespace, entry.resource_claim_name or made.get(entry.name) or "")
            if key in known:
                yield key, known[key]

    def _put_claim(self, key: Key, claim: ResourceClaim) -> None:
        version = self._model.next_version()
        metadata = msgspec.structs.replace(claim.metadata, resource_version=version)
        self._model.put_object(_LISTER, key, msgspec.structs.replace(claim, metadata=metadata))
