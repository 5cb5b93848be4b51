"""How many pods an owner wants, and what it says of itself: suspended, paused, failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import from_dict
from moorage.base.errors import DecodeError
from moorage.explain.workloads.owners import Manifests, Owner, watched_owner
from moorage.service.core import Core
from moorage.workloads.daemon_steps import Placement
from moorage.workloads.objects import Whole

REPLICATED: Final = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("", "ReplicationController"),
    }
)
"""(group, kind) of the owners with a number of replicas."""
JOB: Final = ("batch", "Job")
CRON_JOB: Final = ("batch", "CronJob")
DAEMON_SET: Final = ("apps", "DaemonSet")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that an owner wants now.

    Parameters
    ----------
    pods
        Their number; None where nobody says.
    notes
        What the owner says of itself, each a sentence.
    """

    pods: int | None = None
    notes: tuple[str, ...] = ()


def wanted_pods(core: Core, tree: Sequence[Owner], manifests: Manifests, *, there: int) -> Wanted:
    """Return how many pods the first of some owners wants.

    Parameters
    ----------
    tree
        The owner, and the owners of pods below it.
    there
        How many of its pods exist and have not ended.
    """
    root = tree[0]
    manifest = manifests.find(root)
    if manifest is not None:
        spec, status = _part(manifest, "spec"), _part(manifest, "status")
        kind = (root.group, root.kind)
        if kind in REPLICATED:
            return _replicated(root, spec)
        if kind == DAEMON_SET:
            return Wanted(pods=_daemon_nodes(core, manifest))
        if kind == JOB:
            return _of_job(spec, status, there)
        if kind == CRON_JOB:
            return _of_cron_job(spec, _of_all(core, tree[1:], manifests, there))
        if isinstance(spec.get("replicas"), int):
            return _replicated(root, spec)  # a custom resource with the usual field
    return _of_all(core, tree[1:], manifests, there) or _watched(core, root)


def _part(manifest: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = manifest.get(name)
    return found if isinstance(found, dict) else {}


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _replicated(root: Owner, spec: Mapping[str, Any]) -> Wanted:
    paused = root.kind == "Deployment" and spec.get("paused") is True
    notes = ("The Deployment is paused (spec.paused): it creates no ReplicaSet.",) if paused else ()
    return Wanted(pods=_whole(spec.get("replicas"), 1), notes=notes)


def _daemon_nodes(core: Core, manifest: dict[str, Any]) -> int | None:
    """Return on how many nodes a DaemonSet is to run, by its own rules."""
    try:
        placement = Placement(from_dict(Whole, manifest))
        return sum(placement.should_run(node) for node in core.snapshot.table.nodes)
    except (DecodeError, KeyError, TypeError):
        return None


def _of_job(spec: Mapping[str, Any], status: Mapping[str, Any], there: int) -> Wanted:
    succeeded, parallel = _whole(status.get("succeeded"), 0), _whole(spec.get("parallelism"), 1)
    completions = spec.get("completions")
    notes = []
    if isinstance(completions, int):
        notes.append(f"{succeeded} of {completions} completions have succeeded.")
        parallel = min(parallel, max(completions - succeeded, 0))
    elif succeeded:
        parallel = there  # a pod that succeeds ends a work queue, and none is created any more
    if spec.get("suspend") is True:
        return Wanted(
            pods=0, notes=(*notes, "The Job is suspended (spec.suspend): it creates no pods.")
        )
    for each in status.get("conditions") or ():
        if isinstance(each, dict) and each.get("status") == "True":
            if each.get("type") in {"Failed", "FailureTarget"}:
                why = f"{each.get('reason') or ''}: {each.get('message') or ''}".strip(": ")
                return Wanted(pods=0, notes=(*notes, f"The Job has failed: {why}."))
            if each.get("type") == "Complete":
                return Wanted(pods=0, notes=(*notes, "The Job is complete."))
    return Wanted(pods=parallel, notes=tuple(notes))


def _of_cron_job(spec: Mapping[str, Any], jobs: Wanted | None) -> Wanted:
    suspended = spec.get("suspend") is True
    notes = ("The CronJob is suspended (spec.suspend): it creates no Job.",) if suspended else ()
    if jobs is None:
        text = f"No Job of it exists; its schedule is {spec.get('schedule') or 'not set'}."
        return Wanted(pods=0, notes=(*notes, text))
    return Wanted(pods=jobs.pods, notes=(*notes, *jobs.notes))


def _of_all(core: Core, owners: Sequence[Owner], manifests: Manifests, there: int) -> Wanted | None:
    """Return what all of some owners want together; None where one does not say."""
    top = [each for each in owners if not _is_below(each, owners, manifests)]
    if not top:
        return None
    wanted = [wanted_pods(core, [each], manifests, there=there) for each in top]
    total, notes = 0, tuple(note for each in wanted for note in each.notes)
    for each in wanted:
        if each.pods is None:
            return Wanted(notes=notes)
        total += each.pods
    return Wanted(pods=total, notes=notes if len(top) == 1 else ())


def _is_below(owner: Owner, owners: Sequence[Owner], manifests: Manifests) -> bool:
    """Whether one of some owners owns another."""
    own = next((meta for each, meta in manifests.owners() if each == owner), None)
    return own is not None and any(each.owns(own) for each in owners)


def _watched(core: Core, owner: Owner) -> Wanted:
    """Return what an owner wants by the scheduler's own view of it."""
    obj = watched_owner(core, owner)
    if obj is None:
        return Wanted()
    return Wanted(pods=1 if obj.spec.replicas is None else obj.spec.replicas)
