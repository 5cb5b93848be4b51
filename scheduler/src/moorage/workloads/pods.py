"""Tells whether pods are active, ready and available, and in which order to delete pods.

Rules: kubernetes v1.36 pkg/controller/controller_utils.go and pkg/api/v1/pod/util.go.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, Final

from moorage.api.meta import Condition
from moorage.api.pod import DELETION_COST, Pod
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339

_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
# Letters of hashes in names (apimachinery v1.36 util/rand SafeEncodeString).
_SAFE_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def time_ns(text: str | None) -> int:
    """Return a time, wall-clock nanoseconds; an absent or unreadable time is 0."""
    try:
        return parse_rfc3339(text or "")
    except ValueError:
        return 0


def is_finished(pod: Pod) -> bool:
    """Whether a pod has ended (Succeeded or Failed)."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Whether a pod counts: it has not ended and is not being deleted."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is None


def ready_condition(pod: Pod) -> Condition | None:
    """Return the Ready condition of a pod that is ready."""
    for each in pod.status.conditions:
        if each.type == "Ready":
            return each if each.status == "True" else None
    return None


def is_ready(pod: Pod) -> bool:
    """Whether a pod is ready."""
    return ready_condition(pod) is not None


def is_available(pod: Pod, *, min_ready_seconds: int, now_ns: int) -> bool:
    """Whether a pod has been ready long enough."""
    return available_in(pod, min_ready_seconds=min_ready_seconds, now_ns=now_ns) == 0


def available_in(pod: Pod, *, min_ready_seconds: int, now_ns: int) -> float | None:
    """Return the seconds until a pod is available if it stays ready; None if it is not ready."""
    condition = ready_condition(pod)
    if condition is None:
        return None
    if not min_ready_seconds:
        return 0
    since_ns = time_ns(condition.last_transition_time)
    return max(0.0, (since_ns - now_ns) / NS_PER_SECOND + min_ready_seconds)


def restarts(pod: Pod) -> int:
    """Return the largest restart count among the containers of a pod."""
    return max((each.restart_count for each in pod.status.container_statuses), default=0)


def deletion_order(pods: Sequence[Pod], *, rank: Mapping[str, int], now_ns: int) -> list[Pod]:
    """Return pods in the order in which they should be deleted.

    Parameters
    ----------
    rank
        Node name to the number of related pods there; pods of crowded nodes are deleted first.
    now_ns
        Wall-clock time, from which ages are counted.

    Notes
    -----
    kubernetes v1.36 ``ActivePodsWithRanks``: ages and times of readiness are compared by their
    order of magnitude; among pods of about the same age the uids decide.
    """
    rules: tuple[Callable[[Pod, Pod], int], ...] = (
        lambda a, b: bool(a.spec.node_name) - bool(b.spec.node_name),
        lambda a, b: _PHASES.get(a.status.phase, 0) - _PHASES.get(b.status.phase, 0),
        lambda a, b: is_ready(a) - is_ready(b),
        lambda a, b: _cost(a) - _cost(b),
        lambda a, b: rank.get(b.spec.node_name, 0) - rank.get(a.spec.node_name, 0),
        lambda a, b: _by_age(a, b, _ready_ns(a), _ready_ns(b), now_ns) if is_ready(a) else 0,
        lambda a, b: restarts(b) - restarts(a),
        lambda a, b: _by_age(a, b, _created_ns(a), _created_ns(b), now_ns),
    )

    def compare(a: Pod, b: Pod) -> int:
        return next((found for rule in rules if (found := rule(a, b))), 0)

    return sorted(pods, key=cmp_to_key(compare))


def _cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _ready_ns(pod: Pod) -> int:
    condition = ready_condition(pod)
    return 0 if condition is None else time_ns(condition.last_transition_time)


def _created_ns(pod: Pod) -> int:
    return time_ns(pod.metadata.creation_timestamp)


def _by_age(a: Pod, b: Pod, a_ns: int, b_ns: int, now_ns: int) -> int:
    """Compare two moments: the younger pod first, by orders of magnitude of the age."""
    if a_ns == b_ns:
        return 0
    if not a_ns or not b_ns:
        return -1 if not a_ns else 1
    difference = _magnitude(now_ns - a_ns) - _magnitude(now_ns - b_ns)
    if difference:
        return difference
    return -1 if a.metadata.uid < b.metadata.uid else 1


def _magnitude(age_ns: int) -> int:
    return int(math.log2(age_ns)) if age_ns > 0 else -1


# --- making them ----------------------------------------------------------------------------------


def pod_from_template(
    template: Mapping[str, Any], *, namespace: str, owner: Mapping[str, Any], prefix: str = ""
) -> dict[str, Any]:
    """Return a pod made from a template, not named yet.

    Parameters
    ----------
    prefix
        Value of ``generateName``; the caller names the pod.
    """
    metadata = template.get("metadata") or {}
    meta: dict[str, Any] = {"namespace": namespace, "ownerReferences": [dict(owner)]}
    if prefix:
        meta["generateName"] = prefix
    for name in ("labels", "annotations", "finalizers"):
        if metadata.get(name):
            meta[name] = copy.deepcopy(metadata[name])
    spec = copy.deepcopy(template.get("spec") or {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def template_hash(template: Mapping[str, Any], collisions: int) -> str:
    """Return a short hash of a template for names and labels.

    Notes
    -----
    As kubernetes v1.36 ``ComputeHash`` a 32 bit FNV-1a, but of canonical JSON where upstream
    hashes a dump of the Go structs; so the letters differ from kube-controller-manager's.
    """
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    value = 0x811C9DC5
    for byte in (text + (str(collisions) if collisions else "")).encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return safe_letters(str(value))


def safe_letters(text: str) -> str:
    """Return a text in letters that form no words."""
    return "".join(_SAFE_LETTERS[ord(each) % len(_SAFE_LETTERS)] for each in text)


def scaled(value: int | str | None, total: int, *, up: bool) -> int:
    """Return a count, or a percentage of a total rounded up or down.

    Raises
    ------
    ValueError
        The text is not a percentage.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * total // 100) if up else percent * total // 100
