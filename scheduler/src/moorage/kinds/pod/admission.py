"""Fields that admission and creation add to a pod: account, priority, tolerations, QoS class.

Mirrors kubernetes v1.36 pkg/registry/core/pod/strategy.go and plugin/pkg/admission/{priority,
defaulttolerationseconds,limitranger,runtimeclass,serviceaccount}. Accounts have two differences
(decision 61): no volume with the account's token is added, and a pod of the account ``default``
does not wait until a controller has made the account.
"""

from __future__ import annotations

from typing import Any

from moorage.api.pod import MIRROR
from moorage.api.resources import ResourceType
from moorage.kinds import status
from moorage.kinds.cluster.runtime_class import admit_runtime_class
from moorage.kinds.kind import Context
from moorage.kinds.pod.spec import affinity_terms
from moorage.kinds.pod.topology import topology_labels
from moorage.kinds.quotas.limit_range import default_from_limit_ranges
from moorage.kinds.tree import (
    Json,
    attach,
    child,
    containers,
    items,
    name_or_prefix,
    objects,
    text,
)
from moorage.kinds.values.quantities import Amounts, add, amounts

DEFAULT = "default"
"""The account of a pod that names none; every namespace has it."""
# Seconds that a pod stays on a node that is not ready or unreachable, unless the pod states them.
DEFAULT_TOLERATION_SECONDS = 300
TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints that every pod tolerates for a while."""

# The resources that decide about the quality of service.
_QOS_RESOURCES = ("cpu", "memory")
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def admit_pod(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Complete a new pod as admission does, in place, in the order of upstream's plugins.

    Raises
    ------
    moorage.kinds.status.StatusError
        403: the account, the priority class or the runtime class does not exist, or the pod
        contradicts it.
    """
    spec = attach(obj, "spec")
    ranges = list(ctx.stored_objects("limitranges", text(obj, "metadata", "namespace")))
    if ranges:
        default_from_limit_ranges(obj, ranges)
    admit_account(obj, ctx, resource)
    admit_priority(obj, ctx, resource)
    add_default_tolerations(spec)
    if text(spec, "runtimeClassName") or spec.get("overhead"):
        admit_runtime_class(obj, ctx, resource)
    if text(spec, "nodeName"):
        _add_topology_labels(obj, ctx)


def prepare_pod(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Turn a client's pod into the stored pod."""
    spec = attach(obj, "spec")
    merge_label_keys(obj)
    pod_status: Json = {"phase": "Pending", "qosClass": qos_class(spec)}
    if objects(spec, "schedulingGates"):
        pod_status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "observedGeneration": 1,
                "reason": "SchedulingGated",
                "message": GATED_MESSAGE,
            }
        ]
    obj["status"] = pod_status


def _add_topology_labels(pod: Json, ctx: Context) -> None:
    node = ctx.lookup("nodes", None, text(pod, "spec", "nodeName")) or {}
    labels = topology_labels(child(node, "metadata", "labels"), child(pod, "metadata", "labels"))
    if labels:
        attach(attach(pod, "metadata"), "labels").update(labels)


def admit_pod_change(new: Json, old: Json, ctx: Context) -> None:
    """Give an updated pod its old priority and the default tolerations, in place."""
    spec, before = attach(new, "spec"), child(old, "spec")
    for key in ("priority", "preemptionPolicy"):
        if spec.get(key) is None and key in before:
            spec[key] = before[key]
    add_default_tolerations(spec)


def admit_priority(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Set the pod's priority and preemption policy from its class, or the default class.

    Raises
    ------
    moorage.kinds.status.StatusError
        403: no such class, or the pod gives a priority or policy that differs from the class's.
    """
    spec = attach(obj, "spec")
    name = name_or_prefix(obj)
    class_name = text(spec, "priorityClassName")
    priority_class: Json | None
    if class_name:
        priority_class = ctx.lookup("priorityclasses", None, class_name)
        if priority_class is None:
            why = f"no PriorityClass with name {class_name} was found"
            raise status.forbidden(resource, name, why)
    else:
        priority_class = _default_class(ctx)
        if priority_class is not None:
            spec["priorityClassName"] = text(priority_class, "metadata", "name")
    priority = 0 if priority_class is None else int(priority_class.get("value") or 0)
    policy = "PreemptLowerPriority"
    if priority_class is not None:
        policy = text(priority_class, "preemptionPolicy") or policy
    if spec.get("priority") not in (None, priority):
        raise status.forbidden(resource, name, _contradicts("integer", "priority", spec, priority))
    if spec.get("preemptionPolicy") not in (None, "", policy):
        why = _contradicts("string", "preemptionPolicy", spec, policy)
        raise status.forbidden(resource, name, why)
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy


def _contradicts(go_type: str, field: str, spec: Json, computed: Any) -> str:
    shown = field[0].upper() + field[1:] if go_type == "string" else field
    return (
        f"the {go_type} value of {shown} ({spec[field]}) must not be provided in pod spec; "
        f"priority admission controller computed {computed} from the given PriorityClass name"
    )


def _default_class(ctx: Context) -> Json | None:
    """Find the class marked as global default; of several, the class with the lowest value."""
    defaults = [each for each in ctx.stored_objects("priorityclasses") if each.get("globalDefault")]
    return min(defaults, key=lambda each: int(each.get("value") or 0), default=None)


def add_default_tolerations(spec: Json) -> None:
    """Tolerate a failing node for five minutes, unless the pod has a toleration of its own."""
    given = objects(spec, "tolerations")
    missing = [key for key in TOLERATED if not any(_speaks_of(each, key) for each in given)]
    if missing:
        spec["tolerations"] = given + [
            {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": DEFAULT_TOLERATION_SECONDS,
            }
            for key in missing
        ]


def _speaks_of(toleration: Json, key: str) -> bool:
    return text(toleration, "key") in ("", key) and text(toleration, "effect") in ("", "NoExecute")


def merge_label_keys(obj: Json) -> None:
    """Merge ``matchLabelKeys`` and ``mismatchLabelKeys`` into their label selectors.

    Notes
    -----
    A key without a label on the pod adds nothing, and a term without a selector stays unchanged.
    """
    labels = child(obj, "metadata", "labels")
    spec = child(obj, "spec")
    for term in affinity_terms(spec):
        _merge_keys(term, "matchLabelKeys", "In", labels)
        _merge_keys(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in objects(spec, "topologySpreadConstraints"):
        _merge_keys(constraint, "matchLabelKeys", "In", labels)


def _merge_keys(holder: Json, field: str, operator: str, labels: Json) -> None:
    selector = holder.get("labelSelector")
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for key in items(holder, field)
        if key in labels
    ]
    if added:
        selector["matchExpressions"] = objects(selector, "matchExpressions") + added


def qos_class(spec: Json) -> str:
    """Quality of service class of a pod: Guaranteed, Burstable or BestEffort.

    Notes
    -----
    kubernetes v1.36 pkg/apis/core/helper/qos: only cpu and memory count, and zero counts as
    absent. Pod-level resources, where given, replace those of the containers.
    """
    if child(spec, "resources"):
        owners = [spec]
    else:
        owners = [each for each in containers(spec) if "targetContainerName" not in each]
    requests: Amounts = {}
    limits: Amounts = {}
    guaranteed = True
    for owner in owners:
        add(requests, _qos_amounts(owner, "requests"))
        limited = _qos_amounts(owner, "limits")
        add(limits, limited)
        guaranteed = guaranteed and len(limited) == len(_QOS_RESOURCES)
    if not requests and not limits:
        return "BestEffort"
    same = all(limits.get(name) == nano for name, nano in requests.items())
    return "Guaranteed" if guaranteed and same and len(requests) == len(limits) else "Burstable"


def _qos_amounts(owner: Json, part: str) -> Amounts:
    found = amounts(child(owner, "resources", part))
    return {name: nano for name, nano in found.items() if name in _QOS_RESOURCES and nano > 0}


def admit_account(pod: Json, ctx: Context, resource: ResourceType) -> None:
    """Give a pod its account, and the account's image pull secrets if it has none, in place.

    Raises
    ------
    moorage.kinds.status.StatusError
        403: the account does not exist, or the pod is a mirror pod and names one.
    """
    spec = pod["spec"]
    name = text(spec, "serviceAccountName")
    if MIRROR in child(pod, "metadata", "annotations"):
        if name:
            why = "a mirror pod may not reference service accounts"
            raise status.forbidden(resource, name_or_prefix(pod), why)
        return
    if not name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name = DEFAULT
    namespace = text(pod, "metadata", "namespace")
    account = ctx.lookup("serviceaccounts", namespace, name)
    if account is None:
        if name == DEFAULT:
            return
        why = (
            f"error looking up service account {namespace}/{name}: "
            f'serviceaccount "{name}" not found'
        )
        raise status.forbidden(resource, name_or_prefix(pod), why)
    secrets = objects(account, "imagePullSecrets")
    if secrets and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": text(each, "name")} for each in secrets]
