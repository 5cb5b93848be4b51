"""The rules of the spec of a pod or pod template, scheduling constraints first.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePodSpec,
ValidatePodTemplateSpec).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from moorage.api.names import dns_label_faults, dns_subdomain_faults, label_value_faults
from moorage.kinds.fields import (
    Rule,
    each,
    if_present,
    name_rule,
    needed,
    one_of,
    rules,
    within,
)
from moorage.kinds.kind import (
    FieldError,
    Obj,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.kinds.metadata import check_annotations, check_labels
from moorage.kinds.pod.annotations import check_pod_annotations
from moorage.kinds.pod.containers import check_containers, check_pod_level_resources
from moorage.kinds.pod.handlers import RESTART_POLICIES
from moorage.kinds.pod.host_names import check_host_names
from moorage.kinds.pod.security import check_pod_security
from moorage.kinds.tree import Json, child, containers, objects, strings, text
from moorage.kinds.values.quantities import NOT_ZERO, check_limits
from moorage.kinds.values.selectors import (
    TAINT_EFFECTS,
    check_label_selector,
    label_name,
    node_selector,
    preferred_term,
)
from moorage.kinds.volumes.pod_volumes import check_own_volumes, check_volumes

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_weight = within(1, 100, "must be in the range 1-100")
_some_key = needed("can not be empty")


def _label_keys(holder: Json, field: str, which: str) -> list[FieldError]:
    keys = strings(holder, which)
    if keys and holder.get("labelSelector") is None:
        detail = "must not be specified when labelSelector is not set"
        return [forbidden(f"{field}.{which}", detail)]
    errors = []
    for index, key in enumerate(keys):
        errors += label_name(key, f"{field}.{which}[{index}]")
    return errors


def _namespaces(term: Json, field: str) -> list[FieldError]:
    return [
        invalid(f"{field}.namespace", name, fault)
        for name in strings(term, "namespaces")
        for fault in dns_label_faults(name)
    ]


def _match_keys(term: Json, field: str) -> list[FieldError]:
    """Check the label keys of an affinity term or a constraint, after they were merged.

    Notes
    -----
    kubernetes v1.36 validateMatchLabelKeysAndMismatchLabelKeys, with its odd path of the second
    error. A key that is in the selector as well is known by the expression of the merge.
    """
    errors = _label_keys(term, field, "matchLabelKeys")
    errors += _label_keys(term, field, "mismatchLabelKeys")
    places = {key: index for index, key in enumerate(strings(term, "matchLabelKeys"))}
    selector = child(term, "labelSelector")
    keys_so_far = set(child(selector, "matchLabels"))
    for entry in objects(selector, "matchExpressions"):
        key = text(entry, "key")
        if key in places and key in keys_so_far:
            detail = "exists in both matchLabelKeys and labelSelector"
            errors.append(invalid(f"{field}[{places[key]}]", key, detail))
        keys_so_far.add(key)
    mismatch = set(strings(term, "mismatchLabelKeys"))
    for index, key in enumerate(strings(term, "matchLabelKeys")):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{field}.matchLabelKeys[{index}]", key, detail))
    return errors


_term = rules(
    ("labelSelector namespaceSelector", check_label_selector),
    _namespaces,
    _match_keys,
    ("topologyKey", _some_key),
    ("topologyKey", label_name),
)
_terms = rules(
    (REQUIRED, each(_term)),
    (PREFERRED, each(rules(("weight", _weight), ("podAffinityTerm", _term)))),
)
_preference = rules(("weight", _weight), ("preference", preferred_term))
check_affinity = rules(
    (f"nodeAffinity.{REQUIRED}", node_selector),
    (f"nodeAffinity.{PREFERRED}", each(_preference)),
    ("podAffinity podAntiAffinity", _terms),
)
"""Check node affinity, pod affinity and pod anti-affinity."""


def _domains(constraint: Json, field: str) -> list[FieldError]:
    domains, reaction = constraint.get("minDomains"), text(constraint, "whenUnsatisfiable")
    if domains is None:
        return []
    errors = within(1, None, NOT_ZERO)(domains, f"{field}.minDomains")
    if reaction != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {reaction}"
        errors.append(invalid(f"{field}.minDomains", domains, detail))
    return errors


_constraint = rules(
    ("maxSkew", within(1, None, NOT_ZERO)),
    ("topologyKey", _some_key),
    ("whenUnsatisfiable", one_of("DoNotSchedule", "ScheduleAnyway")),
    _domains,
    ("nodeAffinityPolicy nodeTaintsPolicy", one_of("Honor", "Ignore", empty="absent")),
    _match_keys,
    ("labelSelector", check_label_selector),
)


def check_spread(constraints: Any, field: str) -> list[FieldError]:
    """Check topology spread constraints; a topology may be named once for each reaction."""
    errors = []
    entries = objects({"": constraints}, "")
    pairs = [(text(one, "topologyKey"), text(one, "whenUnsatisfiable")) for one in entries]
    for index, (entry, pair) in enumerate(zip(entries, pairs, strict=True)):
        where = f"{field}[{index}]"
        errors += _constraint(entry, where)
        if pair in pairs[index + 1 :]:  # Upstream names the earlier one.
            place = f"{where}.{{topologyKey, whenUnsatisfiable}}"
            errors.append(duplicate(place, f"{{{pair[0]}, {pair[1]}}}"))
    return errors


def _toleration(entry: Json, field: str) -> list[FieldError]:
    key, operator, value = text(entry, "key"), text(entry, "operator"), text(entry, "value")
    errors = []
    if key:
        errors += label_name(key, f"{field}.key")
    elif operator != "Exists":
        detail = (
            'operator must be Exists when `key` is empty, which means "match all values and '
            'all keys"'
        )
        errors.append(invalid(f"{field}.operator", operator, detail))
    effect = text(entry, "effect")
    if entry.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{field}.effect", effect, detail))
    if operator in ("", "Equal"):
        if faults := label_value_faults(value):
            errors.append(invalid(f"{field}.operator", value, ";".join(faults)))
    elif operator != "Exists":
        errors.append(not_supported(f"{field}.operator", operator, ("Equal", "Exists")))
    elif value:
        detail = "value must be empty when `operator` is 'Exists'"
        errors.append(invalid(f"{field}.operator", value, detail))
    return errors + _effect(effect, f"{field}.effect")


_effect = one_of(*TAINT_EFFECTS, empty="accepted")
check_tolerations: Rule = each(_toleration)
"""Check a list of tolerations."""


def check_gates(gates: Any, field: str) -> list[FieldError]:
    """Check the names of scheduling gates; each may appear once."""
    errors = []
    names: set[str] = set()
    for index, gate in enumerate(objects({"": gates}, "")):
        name, where = text(gate, "name"), f"{field}[{index}]"
        errors += label_name(name, where)
        if name in names:
            errors.append(duplicate(where, name))
        names.add(name)
    return errors


def affinity_terms(spec: Json) -> list[Json]:
    """Every term of pod affinity and pod anti-affinity, required and preferred."""
    terms: list[Json] = []
    for which in ("podAffinity", "podAntiAffinity"):
        part = child(spec, "affinity", which)
        terms += objects(part, REQUIRED)
        for weighted in objects(part, PREFERRED):
            terms.append(child(weighted, "podAffinityTerm"))
    return terms


_GATED_NODE = "cannot be set until all schedulingGates have been cleared"
INT32_MAX = 2**31 - 1
_CLAIM_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict).decode


def _claim(claim: Json, where: str) -> list[FieldError]:
    sources = [key for key in _CLAIM_SOURCES if claim.get(key) is not None]
    errors = []
    if not sources:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        errors.append(invalid(where, claim, detail))
    if len(sources) > 1:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
        errors.append(invalid(where, claim, detail))
    for key in sources:
        faults = dns_subdomain_faults(text(claim, key))
        errors += [invalid(f"{where}.{key}", claim[key], fault) for fault in faults]
    return errors


_claim_name = name_rule(dns_label_faults, empty="required")
_subdomain = name_rule(dns_subdomain_faults, empty="refused")


_HOST_NAMES = ("dnsConfig", "hostAliases", "hostnameOverride")


def _named_hosts(spec: Json, field: str) -> list[FieldError]:
    """Check names of hosts, and DNS, which most pods say nothing of."""
    said = any(spec.get(name) is not None for name in _HOST_NAMES)
    if said or text(spec, "dnsPolicy") not in ("ClusterFirst", ""):
        return check_host_names(spec, field)
    return []


_SHARED = ("securityContext", "hostPID", "hostIPC", "shareProcessNamespace")


def _security(spec: Json, field: str) -> list[FieldError]:
    """Check what concerns security, which most pods say nothing of."""
    said = spec.get("os") is not None or spec.get("hostUsers") is False
    said = said or any(spec.get(name) for name in _SHARED)
    if said or any(container.get("securityContext") for container in containers(spec)):
        return check_pod_security(spec, field)
    return []


check_pod_spec = rules(
    ("volumes", check_volumes),
    check_containers,
    ("restartPolicy", one_of(*RESTART_POLICIES, empty="accepted")),
    ("preemptionPolicy", if_present(one_of("Never", "PreemptLowerPriority", empty="required"))),
    ("nodeName serviceAccountName priorityClassName", name_rule(dns_subdomain_faults)),
    ("runtimeClassName", if_present(_subdomain)),
    ("hostname subdomain", name_rule(dns_label_faults)),
    _named_hosts,
    (
        "activeDeadlineSeconds",
        if_present(within(1, INT32_MAX, f"must be between 1 and {INT32_MAX}, inclusive")),
    ),
    ("nodeSelector", check_labels),
    ("affinity", check_affinity),
    ("tolerations", check_tolerations),
    ("topologySpreadConstraints", check_spread),
    ("schedulingGates", check_gates),
    ("readinessGates", each(rules(("conditionType", label_name)))),
    _security,
    check_pod_level_resources,
    ("overhead", check_limits),
    ("resourceClaims", each(_claim, unique="name", key=_claim_name)),
    ("schedulingGroup.podGroupName", if_present(_subdomain)),
)
"""Check the spec of a pod or of a pod template."""


def check_new_spec(spec: Json, field: str = "spec") -> list[FieldError]:
    """Check the spec of a new pod, or of a template."""
    return [] if _is_faultless(_encode(spec)) else check_pod_spec(spec, field)


# Thousands of pods come from few templates, so the specs of many pods are equal to the byte.
@lru_cache(maxsize=1024)
def _is_faultless(encoded_spec: bytes) -> bool:
    return not check_pod_spec(_decode(encoded_spec), "spec")


def check_gated_node(spec: Json) -> list[FieldError]:
    """Refuse a node for a pod that has scheduling gates."""
    if objects(spec, "schedulingGates") and text(spec, "nodeName"):
        return [forbidden("spec.nodeName", _GATED_NODE)]
    return []


def check_new_pod(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a new pod; `changes` checks a pod that has an old form."""
    if old is not None:
        return []
    spec = child(new, "spec")
    errors = check_new_spec(spec) + check_gated_node(spec)
    if annotations := child(new, "metadata").get("annotations"):
        errors += check_pod_annotations(annotations, spec, "metadata.annotations")
    if spec.get("volumes") or spec.get("resourceClaims"):
        errors += check_own_volumes(new)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    return errors


def template(*restart: str, kind: str = "") -> Rule:
    """Return the rule of the pod template of a workload.

    Parameters
    ----------
    restart
        The restart policies that are allowed. A workload that does not allow Always, the default,
        wants the policy to be named.
    kind
        The kind of a workload whose pods run without a deadline; "" where pods may have one.
    """

    def check(value: Any, field: str) -> list[FieldError]:
        spec = child(value or {}, "spec")
        metadata = child(value or {}, "metadata")
        # The paths of the errors of annotations are upstream's.
        annotations, where = metadata.get("annotations"), f"{field}.annotations"
        errors = check_labels(metadata.get("labels"), f"{field}.labels")
        errors += check_annotations(annotations, where)
        errors += check_pod_annotations(annotations, spec, where)
        errors += check_new_spec(spec, f"{field}.spec")
        if spec.get("ephemeralContainers"):
            detail = "ephemeral containers not allowed in pod template"
            errors.append(forbidden(f"{field}.spec.ephemeralContainers", detail))
        policy = text(spec, "restartPolicy")
        if policy in RESTART_POLICIES and policy not in restart:
            errors.append(_wrong_policy(f"{field}.spec.restartPolicy", policy, restart))
        if kind and spec.get("activeDeadlineSeconds") is not None:
            detail = f"activeDeadlineSeconds in {kind} is not Supported"
            errors.append(forbidden(f"{field}.spec.activeDeadlineSeconds", detail))
        return errors

    return check


def _wrong_policy(field: str, policy: str, allowed: Sequence[str]) -> FieldError:
    if policy == "Always":
        valid = ", ".join(f'"{each}"' for each in allowed)
        return required(field, f"valid values: {valid}")
    return not_supported(field, policy, allowed)
