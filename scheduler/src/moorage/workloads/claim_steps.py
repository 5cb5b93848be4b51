"""The claims that a pod needs from templates; no I/O.

Rules: kubernetes v1.36 ``pkg/controller/resourceclaim/controller.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.pod import Pod
from moorage.api.resources import PODS, RESOURCE_CLAIMS
from moorage.workloads.objects import Json, Whole, owner_reference

POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim from a template: the name of its entry in ``spec.resourceClaims``."""


def template_of(pod: Pod, entry: str) -> str:
    """Return the name of the template of an entry."""
    (found,) = (each for each in pod.spec.resource_claims if each.name == entry)
    return found.resource_claim_template_name or ""


def unmade(pod: Pod) -> Iterator[str]:
    """Yield the entries that name a template and have no claim in the pod's status."""
    known = {each.name for each in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_template_name is not None and entry.name not in known:
            yield entry.name


def claim_of(pod: Pod, entry: str, template: Whole) -> Json:
    """Return the claim to create for an entry of a pod."""
    metadata: Json = template.spec.get("metadata") or {}
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {
            "namespace": pod.namespace,
            "generateName": f"{pod.name}-{entry}-",
            "labels": metadata.get("labels") or {},
            "annotations": {**(metadata.get("annotations") or {}), POD_CLAIM: entry},
            "ownerReferences": [owner_reference(pod, PODS)],
        },
        "spec": template.spec.get("spec") or {},
    }
