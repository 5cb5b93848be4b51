"""Applies a suggestion to the objects of a cluster, as a user would."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch

from moorage.api.patch_operations import merge_patch
from moorage.explain.answer import Suggestion
from moorage_sandbox.testing.builders import Manifest


def applied(way: Suggestion, manifests: list[Manifest]) -> list[Manifest]:
    """Return the objects with the change made."""
    found: list[Manifest] = []
    for before in copy.deepcopy(manifests):
        manifest = before
        key = f"{manifest['metadata'].get('namespace')}/{manifest['metadata']['name']}"
        if manifest["kind"] == "Pod" and key in {way.delete, *way.also_delete}:
            continue
        if manifest["kind"] == "Pod" and manifest["metadata"]["name"] == "p" and way.patch:
            manifest = changed(before, way)
        if manifest["kind"] == "ResourceClaim" and _has_devices_of(manifest, way.delete):
            del manifest["status"]  # as the controller of claims does
        for change in way.changes:
            if (
                manifest["kind"] == change.kind
                and key == f"{change.namespace or None}/{change.name}"
            ):
                manifest = merge_patch(manifest, change.patch)
        found.append(manifest)
    return [*(_identified(each) for each in way.create), *found]


def _has_devices_of(claim: Manifest, gone: str) -> bool:
    """Whether a claim is reserved for a pod, ``namespace/name``."""
    users = claim.get("status", {}).get("reservedFor", [])
    return any(f"{claim['metadata']['namespace']}/{user['name']}" == gone for user in users)


def changed(pod: Manifest, way: Suggestion) -> Manifest:
    """Return the pod with the patch of a suggestion."""
    made: Any = jsonpatch.JsonPatch(list(way.patch)).apply(pod)
    return dict(made)


def _identified(manifest: Manifest) -> Manifest:
    made = copy.deepcopy(manifest)
    made["metadata"].setdefault("uid", f"uid-{made['metadata']['name']}")
    return made
