"""The use of a resource quota by an object.

`moorage_sandbox.apiserver.admission.quota` adds these amounts up, `limit_range` compares a pod's
totals with its bounds. Mirrors kubernetes v1.36 pkg/quota/v1/evaluator/core. Amounts are in nano
units, as `moorage.api.quantity.parse_quantity` returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from moorage.api.quantity import NANO
from moorage.kinds.pod.containers import container_totals
from moorage.kinds.pod.spec import affinity_terms
from moorage.kinds.tree import Json, child, number, objects, text
from moorage.kinds.values.quantities import COUNTABLE_RESOURCES, Amounts, amounts, nano_of

_PODS = "pods"
# Resources that a quota may name without a prefix; they mean requests.
_BARE = ("cpu", "memory", "ephemeral-storage")


def pod_totals(spec: Json, part: str) -> Amounts:
    """Return the highest amounts that a pod uses at any moment, its overhead included.

    Parameters
    ----------
    spec
        The pod's spec.
    part
        ``requests`` or ``limits``.
    """
    total = container_totals(spec, part) | amounts(child(spec, "resources", part))
    for name, nano in amounts(child(spec, "overhead")).items():
        if part == "requests" or name in total:
            total[name] = total.get(name, 0) + nano
    return total


def usage(shelf: str, obj: Json) -> Amounts:
    """Return an object's use of a quota, by the quota's resource names.

    Parameters
    ----------
    shelf
        Resource with its group, ``deployments.apps``.
    obj
        The object.
    """
    amounts: Amounts = {f"count/{shelf}": NANO}
    if shelf in COUNTABLE_RESOURCES and shelf != _PODS:
        amounts[shelf] = NANO
    special = _SPECIAL.get(shelf)
    if special is not None:
        amounts |= special(obj)
    return amounts


def _pod_usage(pod: Json) -> Amounts:
    # A finished pod still counts as an object.
    if text(pod, "status", "phase") in ("Failed", "Succeeded"):
        return {}
    spec = child(pod, "spec")
    amounts: Amounts = {_PODS: NANO}
    for name, nano in pod_totals(spec, "requests").items():
        amounts[f"requests.{name}"] = nano
        if name in _BARE or name.startswith("hugepages-"):
            amounts[name] = nano
    for name, nano in pod_totals(spec, "limits").items():
        if name in _BARE:
            amounts[f"limits.{name}"] = nano
    return amounts


def _claim_usage(claim: Json) -> Amounts:
    size = nano_of(child(claim, "spec", "resources", "requests").get("storage", 0)) or 0
    amounts = {"requests.storage": size}
    name = text(claim, "spec", "storageClassName")
    if name:
        prefix = f"{name}.storageclass.storage.k8s.io"
        amounts |= {f"{prefix}/requests.storage": size, f"{prefix}/persistentvolumeclaims": NANO}
    return amounts


def _service_usage(service: Json) -> Amounts:
    kind = text(service, "spec", "type")
    ports = objects(service, "spec", "ports")
    amounts: Amounts = {"services.nodeports": 0, "services.loadbalancers": 0}
    if kind == "NodePort":
        amounts["services.nodeports"] = len(ports) * NANO
    elif kind == "LoadBalancer":
        amounts["services.loadbalancers"] = NANO
        wanted = ports
        if child(service, "spec").get("allocateLoadBalancerNodePorts") is False:
            wanted = [port for port in ports if number(port, "nodePort")]
        amounts["services.nodeports"] = len(wanted) * NANO
    return amounts


_SPECIAL: Mapping[str, Callable[[Json], Amounts]] = {
    "persistentvolumeclaims": _claim_usage,
    "pods": _pod_usage,
    "services": _service_usage,
}


def matches_scopes(quota_spec: Json, shelf: str, obj: Json) -> bool:
    """Whether a quota applies to an object: every scope in the quota has to match."""
    wanted = [(scope, "Exists", ()) for scope in quota_spec.get("scopes") or ()]
    for each in objects(quota_spec, "scopeSelector", "matchExpressions"):
        scope, operator = text(each, "scopeName"), text(each, "operator")
        wanted.append((scope, operator, tuple(each.get("values") or ())))
    if not wanted:
        return True
    holds = _claim_scope if shelf == "persistentvolumeclaims" else _pod_scope
    if shelf not in (_PODS, "persistentvolumeclaims"):
        return False
    return all(holds(obj, *each) for each in wanted)


def _pod_scope(pod: Json, scope: str, operator: str, values: Iterable[str]) -> bool:
    spec = child(pod, "spec")
    if scope == "PriorityClass":
        return _matches_value(text(spec, "priorityClassName"), operator, values)
    terminating = spec.get("activeDeadlineSeconds") is not None
    best_effort = text(pod, "status", "qosClass") == "BestEffort"
    simple = {
        "Terminating": terminating,
        "NotTerminating": not terminating,
        "BestEffort": best_effort,
        "NotBestEffort": not best_effort,
        "CrossNamespacePodAffinity": _crosses_namespaces(spec),
    }
    return simple.get(scope, False)


def _claim_scope(claim: Json, scope: str, operator: str, values: Iterable[str]) -> bool:
    if scope != "VolumeAttributesClass":
        return False
    return _matches_value(text(claim, "spec", "volumeAttributesClassName"), operator, values)


def _matches_value(value: str, operator: str, values: Iterable[str]) -> bool:
    answers = {
        "Exists": bool(value),
        "DoesNotExist": not value,
        "In": value in values,
        "NotIn": value not in values,
    }
    return answers.get(operator, False)


def _crosses_namespaces(spec: Json) -> bool:
    return any(
        term.get("namespaces") or term.get("namespaceSelector") is not None
        for term in affinity_terms(spec)
    )
