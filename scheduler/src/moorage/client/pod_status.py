"""The strategic merge patch of a pod's status: exactly the bytes kube-scheduler would send.

``writes.patch_pod_status`` sends what is built here. Pure: times are handed in.

Notes
-----
Mirrors kubernetes v1.36 pkg/scheduler/util/utils.go ``PatchPodStatus``, pkg/api/v1/pod/util.go
``UpdatePodCondition`` and apimachinery strategicpatch ``CreateTwoWayMergePatch``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage.api.meta import Condition
from moorage.api.pod import PodStatus
from moorage.client.requests import patch_body

# The fields that kube-scheduler always writes of a condition: `lastProbeTime` and
# `lastTransitionTime` are null if unset. Other fields are written only if not empty.
_ALWAYS = ("lastProbeTime", "lastTransitionTime", "status", "type")


def changed_condition(
    conditions: Sequence[Condition], wanted: Condition, *, now: str
) -> Condition | None:
    """Return the condition to write, or None if the list has it already.

    Parameters
    ----------
    conditions
        Conditions in hand.
    wanted
        Type, status, reason, message and observed generation; its transition time is ignored.
    now
        RFC 3339 time, the transition time if the status changes.

    Returns
    -------
    Condition or None
        `wanted` with its transition time: now if the status differs, else the old one.
    """
    old = next((each for each in conditions if each.type == wanted.type), None)
    if old is None or old.status != wanted.status:
        return msgspec.structs.replace(wanted, last_transition_time=now)
    new = msgspec.structs.replace(wanted, last_transition_time=old.last_transition_time)
    same = (
        old.reason == new.reason
        and old.message == new.message
        and old.last_probe_time == new.last_probe_time
    )
    return None if same else new


def with_condition(conditions: Sequence[Condition], one: Condition) -> list[Condition]:
    """Return the conditions with one of them set: it comes last, in the place of its type."""
    return [*(each for each in conditions if each.type != one.type), one]


def status_patch(
    old: PodStatus,
    *,
    conditions: Sequence[Condition] = (),
    nominated_node_name: str | None = None,
    uid: str = "",
) -> bytes | None:
    """Build the patch that sets conditions and the nominated node.

    Parameters
    ----------
    old
        The status in hand.
    conditions
        Conditions to set, as `changed_condition` returned them.
    nominated_node_name
        Node to nominate, "" to clear the nomination, None to leave it alone.
    uid
        The server is to refuse the patch for another pod of that name, as kubelet asks it to;
        kube-scheduler leaves it out.

    Returns
    -------
    bytes or None
        The body, keys in order; None if nothing would change.
    """
    status: dict[str, object] = {}
    if nominated_node_name is not None and nominated_node_name != old.nominated_node_name:
        status["nominatedNodeName"] = nominated_node_name or None
    entries = _condition_entries(old.conditions, conditions)
    if entries:
        status["conditions"] = entries
        if old.conditions:
            # An absent list is sent plainly; the order is sent only to merge into an existing list.
            order = [each.type for each in old.conditions]
            order += [each.type for each in conditions if each.type not in order]
            status["$setElementOrder/conditions"] = [{"type": name} for name in order]
    if not status:
        return None
    return patch_body({"metadata": {"uid": uid}, "status": status} if uid else {"status": status})


def _condition_entries(
    old: Sequence[Condition], wanted: Sequence[Condition]
) -> list[dict[str, object]]:
    before = {each.type: _wire(each) for each in old}
    entries: list[dict[str, object]] = []
    for condition in wanted:
        after = _wire(condition)
        known = before.get(condition.type)
        if known is None:
            entries.append(after)
            continue
        changes = {key: value for key, value in after.items() if known.get(key, value) != value}
        changes.update({key: value for key, value in after.items() if key not in known})
        changes.update(dict.fromkeys(key for key in known if key not in after))
        if changes:
            entries.append({**changes, "type": condition.type})
    return entries


def _wire(condition: Condition) -> dict[str, object]:
    fields: dict[str, object] = {
        "lastProbeTime": condition.last_probe_time,
        "lastTransitionTime": condition.last_transition_time,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
        "reason": condition.reason,
        "status": condition.status,
        "type": condition.type,
    }
    return {key: value for key, value in fields.items() if value or key in _ALWAYS}
