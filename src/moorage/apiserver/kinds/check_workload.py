"""Rules of deployments, sets, jobs, replication controllers and disruption budgets.

Place in the flow: validation, after defaulting. Mirrors kubernetes v1.36
pkg/apis/{apps,batch,policy}/validation.
"""

from __future__ import annotations

import re
from typing import Any

from moorage.api.codec import from_dict
from moorage.api.cron_schedule import read_schedule
from moorage.api.meta import LabelSelector
from moorage.api.selectors import compile_label_selector
from moorage.apiserver.kind import FieldError, Obj, forbidden, invalid, not_supported, required
from moorage.apiserver.kinds.check_pod import check_template
from moorage.apiserver.kinds.check_resources import NOT_NEGATIVE
from moorage.apiserver.kinds.check_scheduling import check_label_selector
from moorage.apiserver.kinds.metadata import immutable
from moorage.apiserver.kinds.tree import Json, child, number, objects, text
from moorage.apiserver.kinds.workload_defaults import job_labels

_SUCCESS_RULES_MAX = 20
_PERCENT = re.compile("[0-9]+%")
_MISMATCH = "`selector` does not match template `labels`"
_STATEFUL_SET_UPDATE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
_STATEFUL_SET_OPEN = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)


def check_deployment(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a deployment."""
    spec = child(new, "spec")
    errors = _check_selected_template(spec, "deployment")
    kind = text(spec, "strategy", "type")
    if kind not in ("Recreate", "RollingUpdate"):
        errors.append(not_supported("spec.strategy.type", kind, ("Recreate", "RollingUpdate")))
    if kind == "Recreate" and child(spec, "strategy").get("rollingUpdate") is not None:
        detail = "may not be specified when strategy `type` is 'Recreate'"
        errors.append(forbidden("spec.strategy.rollingUpdate", detail))
    rolling = child(spec, "strategy", "rollingUpdate")
    for name in ("maxUnavailable", "maxSurge"):
        errors += _check_amount(rolling.get(name), f"spec.strategy.rollingUpdate.{name}")
    if all(rolling.get(name) in (0, "0%") for name in ("maxUnavailable", "maxSurge")):
        field = "spec.strategy.rollingUpdate.maxUnavailable"
        detail = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid(field, rolling["maxUnavailable"], detail))
    return errors + _check_selector_kept(new, old)


def check_replica_set(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a replica set."""
    errors = _check_selected_template(child(new, "spec"), "replicaset")
    return errors + _check_selector_kept(new, old)


def check_stateful_set(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a stateful set."""
    spec = child(new, "spec")
    errors = _check_selected_template(spec, "statefulset")
    policy = text(spec, "podManagementPolicy")
    policies = ("OrderedReady", "Parallel")
    if policy not in policies:
        errors.append(not_supported("spec.podManagementPolicy", policy, policies))
    if old is not None:
        before, after = _closed_part(child(old, "spec")), _closed_part(spec)
        if before != after:
            errors.append(forbidden("spec", _STATEFUL_SET_UPDATE))
    return errors


def _closed_part(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in _STATEFUL_SET_OPEN}


def check_daemon_set(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a daemon set."""
    errors = _check_selected_template(child(new, "spec"), "daemonset")
    return errors + _check_selector_kept(new, old)


def check_replication_controller(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a replication controller; its selector is a plain map."""
    spec = child(new, "spec")
    errors = _check_counts(spec)
    selector = child(spec, "selector")
    if not selector:
        errors.append(required("spec.selector"))
    if spec.get("template") is None:
        return [*errors, required("spec.template")]
    labels = child(spec, "template", "metadata", "labels")
    if any(labels.get(key) != value for key, value in selector.items()):
        errors.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    return errors + check_template(child(spec, "template"), "spec.template", restart=("Always",))


def check_job(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a job."""
    spec = child(new, "spec")
    counts = (
        "parallelism",
        "completions",
        "backoffLimit",
        "activeDeadlineSeconds",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    )
    errors = _check_generated_selector(new) if old is None else []
    errors += [
        invalid(f"spec.{name}", number(spec, name), NOT_NEGATIVE)
        for name in counts
        if number(spec, name) < 0
    ]
    mode = text(spec, "completionMode")
    if mode not in ("Indexed", "NonIndexed"):
        errors.append(not_supported("spec.completionMode", mode, ("Indexed", "NonIndexed")))
    if mode == "Indexed" and spec.get("completions") is None:
        detail = 'when completion mode is "Indexed"'
        errors.append(required("spec.completions", detail))
    errors += _check_indexes(spec, indexed=mode == "Indexed")
    restart = ("OnFailure", "Never")
    errors += check_template(child(spec, "template"), "spec.template", restart=restart)
    errors += _check_job_selector(spec)
    if old is not None:
        before = child(old, "spec")
        gated = before.get("suspend") is True
        names = (
            "completions",
            "selector",
            "completionMode",
            "podFailurePolicy",
            "backoffLimitPerIndex",
            "successPolicy",
        )
        for name in names if gated else (*names, "template"):
            if spec.get(name) != before.get(name):
                errors.append(immutable(f"spec.{name}", spec.get(name)))
    return errors


def _check_indexes(spec: Json, *, indexed: bool) -> list[FieldError]:
    """Check the fields for single indexes (validateJobSpec and validateSuccessPolicy)."""
    errors = [
        invalid(f"spec.{name}", spec[name], "requires indexed completion mode")
        for name in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
        if spec.get(name) is not None and not indexed
    ]
    limit, most = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    if most is not None and limit is None:
        errors.append(required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if most is not None and most > number(spec, "completions"):
        detail = "must be less than or equal to completions"
        errors.append(invalid("spec.maxFailedIndexes", most, detail))
    restart = text(spec, "template", "spec", "restartPolicy")
    if limit is not None and restart != "Never":
        detail = "only 'Never' is supported with a backoff limit per index"
        errors.append(invalid("spec.template.spec.restartPolicy", restart, detail))
    if spec.get("successPolicy") is not None:
        errors += _check_success_rules(spec)
    return errors


def _check_success_rules(spec: Json) -> list[FieldError]:
    field, most = "spec.successPolicy.rules", number(spec, "completions")
    rules = objects(spec, "successPolicy", "rules")
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        return [required(field, detail)]
    if len(rules) > _SUCCESS_RULES_MAX:
        detail = f"must have at most {_SUCCESS_RULES_MAX} items"
        return [FieldError("FieldValueTooMany", field, len(rules), detail)]
    errors = []
    for index, rule in enumerate(rules):
        where, count, named = f"{field}[{index}]", rule.get("succeededCount"), None
        if rule.get("succeededIndexes") is not None:
            given = text(rule, "succeededIndexes")
            named = _count_indexes(given, most)
            if named is None:
                detail = f"must be numbers below {most} and ranges of them, in order"
                errors.append(invalid(f"{where}.succeededIndexes", given, detail))
        elif count is None:
            detail = "at least one of succeededCount or succeededIndexes must be specified"
            errors.append(required(where, detail))
        upper = most if named is None else named
        if count is not None and not 0 < count <= upper:
            detail = f"must be more than 0, and at most {upper}"
            errors.append(invalid(f"{where}.succeededCount", count, detail))
    return errors


def _count_indexes(given: str, most: int) -> int | None:
    """Count the indexes that a text such as ``0-2,5`` names; None where the text is wrong."""
    total, last = 0, -1
    for part in given.split(","):
        first, _, end = part.partition("-")
        end = end or first
        if not (first.isdecimal() and end.isdecimal()) or not last < int(first) <= int(end) < most:
            return None
        total, last = total + int(end) - int(first) + 1, int(end)
    return total


def _check_generated_selector(job: Obj) -> list[FieldError]:
    """Check that a job selects its own pods: a copied job has the selector of its original."""
    spec, meta = child(job, "spec"), child(job, "metadata")
    selector = spec.get("selector")
    if spec.get("manualSelector") is True or selector is None:
        return []
    expected = job_labels(text(meta, "name"), text(meta, "uid"))
    labels = child(spec, "template", "metadata", "labels")
    where = "spec.template.metadata.labels"
    errors = [
        invalid(f"{where}[{key}]", labels, f"must be '{value}'")
        for key, value in expected.items()
        if labels.get(key) != value
    ]
    faults = check_label_selector(selector, "spec.selector")
    if not faults and not _selects(selector, expected):
        errors.append(invalid("spec.selector", selector, "`selector` not auto-generated"))
    return errors


def _check_job_selector(spec: Json) -> list[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    faults = check_label_selector(selector, "spec.selector")
    if not faults and not _matches(spec, selector):
        labels = child(spec, "template", "metadata", "labels")
        faults.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    return faults


_POLICIES = ("Allow", "Forbid", "Replace")
# Upstream's parser accepts it; the controller's parser reports the error when the job is due.
_INTERVAL = "@every "


def check_cron_job(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a cron job."""
    spec = child(new, "spec")
    errors: list[FieldError] = []
    schedule = text(spec, "schedule")
    if not schedule:
        errors.append(required("spec.schedule"))
    elif fault := _schedule_fault(schedule):
        errors.append(invalid("spec.schedule", schedule, fault))
    policy = text(spec, "concurrencyPolicy")
    if policy not in _POLICIES:
        errors.append(not_supported("spec.concurrencyPolicy", policy, _POLICIES))
    limits = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    errors += [
        invalid(f"spec.{name}", number(spec, name), NOT_NEGATIVE)
        for name in limits
        if number(spec, name) < 0
    ]
    template = child(spec, "jobTemplate", "spec", "template")
    field = "spec.jobTemplate.spec.template"
    return errors + check_template(template, field, restart=("OnFailure", "Never"))


def _schedule_fault(schedule: str) -> str:
    """Return why a text is not a schedule, "" for a valid schedule."""
    if "TZ" in schedule:
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if schedule.startswith(_INTERVAL):
        return ""
    try:
        read_schedule(schedule)
    except ValueError as error:
        return str(error)
    return ""


def check_revision(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a controller revision: its data never changes."""
    if number(new, "revision") < 0:
        return [invalid("revision", number(new, "revision"), NOT_NEGATIVE)]
    if new.get("data") is None:
        return [required("data", "data is mandatory")]
    if old is not None and new.get("data") != old.get("data"):
        return [immutable("data", new.get("data"))]
    return []


def _check_counts(spec: Json) -> list[FieldError]:
    return [
        invalid(f"spec.{name}", number(spec, name), NOT_NEGATIVE)
        for name in (
            "replicas",
            "minReadySeconds",
            "revisionHistoryLimit",
            "progressDeadlineSeconds",
        )
        if number(spec, name) < 0
    ]


def _check_selected_template(spec: Json, kind: str) -> list[FieldError]:
    """Check counts, selector and template, and that selector and template match."""
    errors = _check_counts(spec)
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        faults = check_label_selector(selector, "spec.selector")
        errors += faults
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            detail = f"empty selector is invalid for {kind}"
            errors.append(invalid("spec.selector", selector, detail))
        elif not faults and not _matches(spec, selector):
            labels = child(spec, "template", "metadata", "labels")
            errors.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    return errors + check_template(child(spec, "template"), "spec.template", restart=("Always",))


def _matches(spec: Json, selector: Json) -> bool:
    return _selects(selector, child(spec, "template", "metadata", "labels"))


def _selects(selector: Json, labels: Json) -> bool:
    return compile_label_selector(from_dict(LabelSelector, selector)).matches(labels)


def _check_selector_kept(new: Obj, old: Obj | None) -> list[FieldError]:
    if old is None:
        return []
    after = child(new, "spec").get("selector")
    if after == child(old, "spec").get("selector"):
        return []
    return [immutable("spec.selector", after)]


def _check_amount(value: Any, field: str) -> list[FieldError]:
    """Check a number of pods or a percentage of them."""
    if value is None:
        return []
    if isinstance(value, int):
        return [invalid(field, value, NOT_NEGATIVE)] if value < 0 else []
    if not _PERCENT.fullmatch(value):
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' "
            "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )
        return [invalid(field, value, detail)]
    if int(value[:-1]) > 100:
        return [invalid(field, value, "must not be greater than 100%")]
    return []


def check_disruption_budget(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a disruption budget."""
    spec = child(new, "spec")
    errors = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        detail = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid("spec", spec, detail))
    for name in ("minAvailable", "maxUnavailable"):
        errors += _check_amount(spec.get(name), f"spec.{name}")
    policy = spec.get("unhealthyPodEvictionPolicy")
    policies = ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in policies:
        errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, policies))
    return errors + check_label_selector(spec.get("selector"), "spec.selector")
