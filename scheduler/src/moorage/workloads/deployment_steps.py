"""Decides the next step of a deployment from its replica sets; no I/O.

Place in the flow: `moorage_sandbox.controllers.deployment` asks here and carries the steps out;
every sync decides from the watched objects, so a step that came too late does no harm.

Rules: kubernetes v1.36 pkg/controller/deployment/{sync,rolling,recreate}.go and
pkg/controller/deployment/util/deployment_util.go.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from moorage.api.resources import DEPLOYMENTS, REPLICA_SETS
from moorage.workloads.objects import Json, Whole, owner_reference
from moorage.workloads.pods import scaled, template_hash, time_ns
from moorage.workloads.replicas import min_ready_seconds, wanted

HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"
# Annotations of a deployment that its replica sets do not get.
_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    }
)


class CreateSet(msgspec.Struct, frozen=True):
    """Create a replica set."""

    body: Json


class ChangeSet(msgspec.Struct, frozen=True):
    """Change a replica set by a merge patch; `scaled_from` where its size changes."""

    replica_set: Whole
    changes: Json
    scaled_from: int | None = None
    scaled_to: int = 0


class DeleteSet(msgspec.Struct, frozen=True):
    """Delete an old replica set beyond the history limit."""

    replica_set: Whole


class ChangeDeployment(msgspec.Struct, frozen=True):
    """Change the deployment itself by a merge patch."""

    changes: Json


SetStep: TypeAlias = CreateSet | ChangeSet | DeleteSet | ChangeDeployment


class Sets(msgspec.Struct, frozen=True):
    """A deployment's replica sets: the new one (of its template), if any, and the old ones."""

    new: Whole | None
    old: list[Whole]

    @property
    def every(self) -> list[Whole]:
        """All replica sets, the new one last."""
        return [*self.old, *([self.new] if self.new is not None else [])]


def part_sets(deployment: Whole, replica_sets: Sequence[Whole]) -> Sets:
    """Separate the replica set of the deployment's template from the old ones, oldest first."""
    listed = sorted(replica_sets, key=_age_key)
    template = _without_hash(deployment.spec.get("template") or {})
    new = next(
        (each for each in listed if _without_hash(each.spec.get("template") or {}) == template),
        None,
    )
    return Sets(new, [each for each in listed if each is not new])


def _age_key(obj: Whole) -> tuple[int, str]:
    return time_ns(obj.metadata.creation_timestamp), obj.name


def _without_hash(template: Mapping[str, Any]) -> Json:
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH}
    kept = {k: v for k, v in metadata.items() if v is not None and k != "creationTimestamp"}
    return {**template, "metadata": kept}


def revision_of(obj: Whole) -> int:
    """Return the revision of an object; 0 if it has none."""
    try:
        return int(obj.metadata.annotations.get(REVISION, "0"))
    except ValueError:
        return 0


def limits(deployment: Whole) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable as numbers of pods."""
    strategy = deployment.spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    replicas = wanted(deployment)
    surge = scaled(rolling.get("maxSurge"), replicas, up=True)
    unavailable = scaled(rolling.get("maxUnavailable"), replicas, up=False)
    if not surge and not unavailable:
        # Both may round to 0; then one pod may be unavailable.
        unavailable = 1
    return surge, min(unavailable, replicas)


# --- the new replica set --------------------------------------------------------------------------


def revision_steps(deployment: Whole, sets: Sets, *, create: bool) -> list[SetStep]:
    """Return the steps that create the new replica set and number the revisions."""
    revision = max((revision_of(each) for each in sets.old), default=0) + 1
    if sets.new is None:
        return [_new_set(deployment, sets, revision)] if create else []
    # A revision that is the newest already keeps its number.
    revision = max(revision, revision_of(sets.new))
    steps: list[SetStep] = []
    changes = _annotation_changes(deployment, sets.new, str(revision))
    spec: Json = {}
    if min_ready_seconds(sets.new) != min_ready_seconds(deployment):
        spec = {"minReadySeconds": min_ready_seconds(deployment)}
    if changes or spec:
        body = {"metadata": {"annotations": changes}, "spec": spec}
        steps.append(ChangeSet(sets.new, body))
    elif deployment.metadata.annotations.get(REVISION) != str(revision):
        annotations = {REVISION: str(revision)}
        steps.append(ChangeDeployment({"metadata": {"annotations": annotations}}))
    return steps


def _new_set(deployment: Whole, sets: Sets, revision: int) -> CreateSet:
    collisions = int(deployment.status.get("collisionCount") or 0)
    template = copy.deepcopy(deployment.spec.get("template") or {})
    hashed = template_hash(template, collisions)
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), HASH: hashed}
    selector = copy.deepcopy(deployment.spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: hashed}
    replicas = new_replicas(deployment, sets)
    body = {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{deployment.name}-{hashed}",
            "namespace": deployment.namespace,
            "labels": dict(metadata["labels"]),
            "annotations": {
                **_copied_annotations(deployment),
                REVISION: str(revision),
                **_size_annotations(deployment),
            },
            "ownerReferences": [owner_reference(deployment, DEPLOYMENTS)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": min_ready_seconds(deployment),
            "selector": selector,
            "template": template,
        },
    }
    return CreateSet(body)


def _annotation_changes(deployment: Whole, replica_set: Whole, revision: str) -> dict[str, str]:
    before = replica_set.metadata.annotations
    wanted_now = {**_copied_annotations(deployment), REVISION: revision}
    if before.get(REVISION) not in (None, "", revision):
        known = [each for each in before.get(REVISION_HISTORY, "").split(",") if each]
        wanted_now[REVISION_HISTORY] = ",".join([*known, before[REVISION]])
    wanted_now |= _size_annotations(deployment)
    return {name: value for name, value in wanted_now.items() if before.get(name) != value}


def _copied_annotations(deployment: Whole) -> dict[str, str]:
    return {k: v for k, v in deployment.metadata.annotations.items() if k not in _NOT_COPIED}


def _size_annotations(deployment: Whole) -> dict[str, str]:
    replicas = wanted(deployment)
    return {DESIRED: str(replicas), MAXIMUM: str(replicas + limits(deployment)[0])}


def new_replicas(deployment: Whole, sets: Sets) -> int:
    """Return the size that the new replica set may have now."""
    replicas = wanted(deployment)
    if (deployment.spec.get("strategy") or {}).get("type") == "Recreate":
        return replicas
    current = wanted(sets.new) if sets.new is not None else 0
    room = replicas + limits(deployment)[0] - sum(wanted(each) for each in sets.every)
    if room <= 0:
        return current
    return current + min(room, replicas - current)


# --- sizes ----------------------------------------------------------------------------------------


def resize(deployment: Whole, replica_set: Whole, replicas: int) -> list[SetStep]:
    """Return the step that resizes a replica set and records the deployment's size on it."""
    current = wanted(replica_set)
    sizes = _size_annotations(deployment)
    noted = {k: v for k, v in sizes.items() if replica_set.metadata.annotations.get(k) != v}
    if current == replicas and not noted:
        return []
    changes: Json = {"metadata": {"annotations": noted}, "spec": {"replicas": replicas}}
    return [ChangeSet(replica_set, changes, None if current == replicas else current, replicas)]


def is_resized(deployment: Whole, sets: Sets) -> bool:
    """Whether the deployment was resized after its replica sets were."""
    replicas = str(wanted(deployment))
    noted = [each.metadata.annotations.get(DESIRED) for each in sets.every if wanted(each)]
    return any(each is not None and each != replicas for each in noted)


def resize_steps(deployment: Whole, sets: Sets) -> list[SetStep]:
    """Return the steps after a change of the deployment's size, also during a roll-out.

    The sizes of replica sets that are both in use change in proportion, the largest one taking
    what is left over.
    """
    replicas = wanted(deployment)
    active = [each for each in sets.every if wanted(each) > 0]
    if len(active) <= 1:
        only = active[0] if active else (sets.new or (sets.old[-1] if sets.old else None))
        return [] if only is None else resize(deployment, only, replicas)
    if sets.new is not None and _is_saturated(deployment, sets.new):
        return [step for each in sets.old for step in resize(deployment, each, 0)]
    if (deployment.spec.get("strategy") or {}).get("type") == "Recreate":
        return []
    total = sum(wanted(each) for each in active)
    allowed = replicas + limits(deployment)[0] if replicas else 0
    to_add = allowed - total
    # Newest first when it grows, oldest first when it shrinks, after the largest.
    newest_first = sorted(active, key=_age_key, reverse=True)
    order = sorted(
        newest_first if to_add > 0 else newest_first[::-1], key=lambda each: -wanted(each)
    )
    sizes = _proportional(deployment, order, to_add, allowed)
    return [step for each in order for step in resize(deployment, each, sizes[each.name])]


def _proportional(
    deployment: Whole, order: Sequence[Whole], to_add: int, allowed: int
) -> dict[str, int]:
    added = 0
    sizes: dict[str, int] = {}
    for each in order:
        part = 0
        if to_add:
            part = _share(deployment, each, allowed)
            part = min(part, to_add - added) if to_add > 0 else max(part, to_add - added)
            added += part
        sizes[each.name] = wanted(each) + part
    if to_add:
        first = order[0].name
        sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _share(deployment: Whole, replica_set: Whole, allowed: int) -> int:
    """Return by how much a replica set changes with its deployment (GetReplicaSetFraction)."""
    size = wanted(replica_set)
    if not allowed:
        return -size
    try:
        before = int(replica_set.metadata.annotations.get(MAXIMUM, ""))
    except ValueError:
        before = int(deployment.status.get("replicas") or 0)
    if not before:
        return 0
    # Go's math.Round: halves away from zero, and sizes are never negative.
    return (2 * size * allowed + before) // (2 * before) - size


def _is_saturated(deployment: Whole, replica_set: Whole) -> bool:
    replicas = wanted(deployment)
    return (
        wanted(replica_set) == replicas
        and replica_set.metadata.annotations.get(DESIRED) == str(replicas)
        and int(replica_set.status.get("availableReplicas") or 0) == replicas
    )


# --- rolling --------------------------------------------------------------------------------------


def rolling_steps(deployment: Whole, sets: Sets) -> list[SetStep]:
    """Return the next step of a rolling update: grow the new replica set, or shrink old ones."""
    assert sets.new is not None, "the new replica set exists before anything rolls"
    replicas = wanted(deployment)
    size = replicas if wanted(sets.new) > replicas else new_replicas(deployment, sets)
    grown = resize(deployment, sets.new, size)
    return grown or _shrink_old(deployment, sets)


def _shrink_old(deployment: Whole, sets: Sets) -> list[SetStep]:
    assert sets.new is not None
    old_total = sum(wanted(each) for each in sets.old)
    if not old_total:
        return []
    least = wanted(deployment) - limits(deployment)[1]
    new_unavailable = wanted(sets.new) - _available(sets.new)
    may_go = old_total + wanted(sets.new) - least - new_unavailable
    if may_go <= 0:
        return []
    sizes = {each.name: wanted(each) for each in sets.old}
    # Remove unavailable pods first, from the oldest set on; they count against maxUnavailable.
    cleaned = 0
    for each in sets.old:
        unhealthy = min(may_go - cleaned, wanted(each) - _available(each))
        if unhealthy > 0:
            sizes[each.name] -= unhealthy
            cleaned += unhealthy
    left = sum(_available(each) for each in sets.every) - least
    for each in sets.old:
        gone = min(sizes[each.name], left)
        if gone > 0:
            sizes[each.name] -= gone
            left -= gone
    return [step for each in sets.old for step in resize(deployment, each, sizes[each.name])]


def _available(replica_set: Whole) -> int:
    return int(replica_set.status.get("availableReplicas") or 0)


# --- history --------------------------------------------------------------------------------------


def history_steps(deployment: Whole, sets: Sets) -> list[SetStep]:
    """Return the deletions of replica sets beyond the history that is kept."""
    kept = deployment.spec.get("revisionHistoryLimit")
    if kept is None:
        return []
    done = [each for each in sets.old if each.metadata.deletion_timestamp is None]
    surplus = len(done) - int(kept)
    if surplus <= 0:
        return []
    return [
        DeleteSet(each)
        for each in sorted(done, key=revision_of)[:surplus]
        if not wanted(each)
        and not each.status.get("replicas")
        and int(each.status.get("observedGeneration") or 0) >= each.metadata.generation
    ]
