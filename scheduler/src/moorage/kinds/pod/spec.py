"""The rules of the spec of a pod or pod template (ValidatePodSpec, ValidatePodTemplateSpec)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.kinds.fields import (
    Rule,
    each,
    given,
    named,
    one_of,
    rules,
    within,
)
from moorage.kinds.kind import FieldError, forbidden, invalid, not_supported
from moorage.kinds.metadata import check_labels
from moorage.kinds.pod.containers import (
    RESTART_POLICIES,
    check_containers,
    check_volumes,
)
from moorage.kinds.pod.resources import check_pod_level_resources
from moorage.kinds.pod.scheduling import check_affinity, check_gates, check_spread
from moorage.kinds.tree import Json, child, text
from moorage.kinds.values.resource_names import check_limits
from moorage.kinds.values.selectors import check_tolerations, label_name

INT32_MAX = 2**31 - 1
_CLAIM_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict).decode


def _claim(claim: Json, where: str) -> list[FieldError]:
    found = [key for key in _CLAIM_SOURCES if claim.get(key) is not None]
    errors = []
    if not found:
        detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        errors.append(invalid(where, claim, detail))
    if len(found) > 1:
        detail = (
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
        errors.append(invalid(where, claim, detail))
    for key in found:
        faults = dns_subdomain_faults(text(claim, key))
        errors += [invalid(f"{where}.{key}", claim[key], fault) for fault in faults]
    return errors


_claim_name = named(dns_label_faults, empty="required")
_subdomain = named(dns_subdomain_faults, empty="refused")


check_pod_spec = rules(
    ("volumes", check_volumes),
    check_containers,
    ("restartPolicy", one_of(*RESTART_POLICIES, empty="accepted")),
    (
        "dnsPolicy",
        one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None", empty="accepted"),
    ),
    ("preemptionPolicy", given(one_of("Never", "PreemptLowerPriority", empty="required"))),
    ("nodeName serviceAccountName priorityClassName", named(dns_subdomain_faults)),
    ("runtimeClassName", given(_subdomain)),
    ("hostname subdomain", named(dns_label_faults)),
    (
        "activeDeadlineSeconds",
        given(within(1, INT32_MAX, f"must be between 1 and {INT32_MAX}, inclusive")),
    ),
    ("nodeSelector", check_labels),
    ("affinity", check_affinity),
    ("tolerations", check_tolerations),
    ("topologySpreadConstraints", check_spread),
    ("schedulingGates", check_gates),
    ("readinessGates", each(rules(("conditionType", label_name)))),
    check_pod_level_resources,
    ("overhead", check_limits),
    ("resourceClaims", each(_claim, unique="name", key=_claim_name)),
    ("schedulingGroup.podGroupName", given(_subdomain)),
)
"""Check the spec of a pod or of a pod template."""


def check_new_spec(spec: Json, field: str = "spec") -> list[FieldError]:
    """Check the spec of a new pod, or of a template."""
    return [] if _is_faultless(_encode(spec)) else check_pod_spec(spec, field)


# Thousands of pods come from few templates, so the specs of many pods are equal to the byte.
@lru_cache(maxsize=1024)
def _is_faultless(encoded_spec: bytes) -> bool:
    return not check_pod_spec(_decode(encoded_spec), "spec")


def template(*restart: str) -> Rule:
    """Return the rule of the pod template of a workload, which allows these restart policies."""

    def check(found: Any, field: str) -> list[FieldError]:
        spec = child(found or {}, "spec")
        labels = child(found or {}, "metadata").get("labels")
        errors = check_labels(labels, f"{field}.metadata.labels")
        errors += check_new_spec(spec, f"{field}.spec")
        if spec.get("ephemeralContainers"):
            detail = "ephemeral containers not allowed in pod template"
            errors.append(forbidden(f"{field}.spec.ephemeralContainers", detail))
        policy = text(spec, "restartPolicy")
        if policy in RESTART_POLICIES and policy not in restart:
            errors.append(not_supported(f"{field}.spec.restartPolicy", policy, restart))
        if spec.get("activeDeadlineSeconds") is not None and restart == ("Always",):
            detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
            errors.append(forbidden(f"{field}.spec.activeDeadlineSeconds", detail))
        return errors

    return check
