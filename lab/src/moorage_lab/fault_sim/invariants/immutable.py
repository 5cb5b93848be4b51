"""Rules for each write of a pod or node, whoever makes it: what the server never lets change."""

from __future__ import annotations

from collections.abc import Iterable

from moorage_lab.fault_sim.history import Write, is_finished, name_of, node_of
from moorage_lab.fault_sim.invariants.invariant import Invariant
from moorage_lab.fault_sim.invariants.write_case import is_leaving


def _place(write: Write) -> Iterable[str]:
    if write.resource != "pods" or write.before is None or write.now is None:
        return
    before, now = node_of(write.before), node_of(write.now)
    if before and before != now:
        yield f"{name_of(write.now)} moved from {before} to {now or 'no node'}"


def _end(write: Write) -> Iterable[str]:
    if write.before is None or write.now is None:
        return
    if is_leaving(write.before) and not is_leaving(write.now):
        yield f"{name_of(write.now)} is no longer being deleted"
    if not is_finished(write.before) or is_finished(write.now):
        return
    if not _lost_its_node(write) and not _ended_by_a_user(write):
        yield f"{name_of(write.now)} had finished, and has not"


def _lost_its_node(write: Write) -> bool:
    """Whether a report of a node was under way when the pod was failed for want of that node."""
    conditions = (write.before or {}).get("status", {}).get("conditions") or ()
    collected = any(each.get("reason") == "DeletionByPodGC" for each in conditions)
    return collected and write.by == "nodes"


def _ended_by_a_user(write: Write) -> bool:
    """Whether a report of a node was under way when a user said that the pod had finished."""
    statuses = (write.before or {}).get("status", {}).get("containerStatuses") or ()
    return write.by == "nodes" and not any("terminated" in each["state"] for each in statuses)


def _identity(write: Write) -> Iterable[str]:
    if write.before is None or write.now is None:
        return
    before, now = write.before["metadata"], write.now["metadata"]
    if before["uid"] != now["uid"]:
        yield f"{name_of(write.now)} became another object without a deletion"
    if int(now["resourceVersion"]) <= int(before["resourceVersion"]):
        yield f"{name_of(write.now)}: version {now['resourceVersion']} is not a newer one"


IMMUTABLE: tuple[Invariant[Write], ...] = (
    Invariant(
        "place-kept",
        "The server never moves a pod, and never takes its node away.",
        "a second binding overwrites the first (kubernetes#98000)",
        _place,
    ),
    Invariant(
        "end-kept",
        "What is being deleted, or has finished, stays so.",
        "a pod comes back to life, and its room is counted no more",
        _end,
    ),
    Invariant(
        "identity-kept",
        "An object keeps its uid, and its version grows.",
        "an old object's update reaches a new one of its name",
        _identity,
    ),
)
