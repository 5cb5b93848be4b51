"""Job and CronJob (kubernetes v1.36 pkg/apis/batch/{v1/defaults.go,validation})."""

from __future__ import annotations

import copy
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moorage.api import resources
from moorage.api.cron_schedule import read_schedule
from moorage.api.resources import ResourceType
from moorage.kinds.cells import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    SELECTOR,
    column,
    count,
    duration_between,
    format_selector,
    is_true,
    timed,
    wide,
)
from moorage.kinds.fields import defaults, kept, one_of, rules, selectable, within
from moorage.kinds.kind import Column, Context, FieldError, Obj, invalid, required, too_many
from moorage.kinds.pod.defaults import default_template
from moorage.kinds.pod.spec import INT32_MAX, template
from moorage.kinds.pod.warnings import of_owner, of_template
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import (
    Json,
    attach,
    child,
    containers,
    fill,
    number,
    objects,
    text,
)
from moorage.kinds.values.selectors import check_label_selector
from moorage.kinds.workloads.apps import matches_template, selects

# Default retries of a job; unlimited when retries are counted by index.
_BACKOFF_LIMIT = 6
_UID_LABEL = "batch.kubernetes.io/controller-uid"
_SUCCESS_RULES_MAX = 20
_INDEXED = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
# Conditions that the Status column shows; the first true condition counts.
_STATES = (
    "Complete",
    "Failed",
    "Terminating",
    "Suspended",
    "FailureTarget",
    "SuccessCriteriaMet",
)
# Upstream's parser accepts it; the controller's parser reports the error when the job is due.
_CRON_NAME_MAX = 52  # the limit of a Job name, 63, without the time that a CronJob adds
_INTERVAL = "@every "


def _default_job(obj: Json) -> None:
    spec = attach(obj, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    indexed = spec.get("backoffLimitPerIndex") is not None
    failing = spec.get("podFailurePolicy") is not None
    values: Json = {
        "parallelism": 1,
        "backoffLimit": INT32_MAX if indexed else _BACKOFF_LIMIT,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "Failed" if failing else "TerminatingOrFailed",
    }
    fill(spec, values)
    default_template(spec)


def _default_job_template(obj: Json) -> None:
    spec = attach(attach(obj["spec"], "jobTemplate"), "spec")
    if spec.get("template") is not None:
        default_template(spec)


def _job_labels(name: str, uid: str) -> dict[str, str]:
    """Return the labels that the pods of a job have, the old names first."""
    return {
        "controller-uid": uid,
        "job-name": name,
        _UID_LABEL: uid,
        "batch.kubernetes.io/job-name": name,
    }


def _prepare_job(obj: Json, ctx: Context, resource: ResourceType) -> None:
    """Select a job's pods by its uid, and label its template accordingly.

    Existing values stay; validation refuses values of another job.
    """
    spec, uid = attach(obj, "spec"), text(obj, "metadata", "uid")
    if spec.get("manualSelector") is True or not uid:
        return
    labels = attach(attach(attach(spec, "template"), "metadata"), "labels")
    fill(labels, _job_labels(text(obj, "metadata", "name"), uid))
    fill(attach(attach(spec, "selector"), "matchLabels"), {_UID_LABEL: uid})


def _check_job(new: Obj, old: Obj | None) -> list[FieldError]:
    errors = _check_generated_selector(new) if old is None else []
    return errors + _job(child(new, "spec"), "spec")


def _check_indexes(spec: Json, where: str) -> list[FieldError]:
    """Check the fields for single indexes (validateJobSpec and validateSuccessPolicy)."""
    errors = [
        invalid(f"spec.{name}", spec[name], "requires indexed completion mode")
        for name in _INDEXED
        if spec.get(name) is not None and text(spec, "completionMode") != "Indexed"
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
        return [too_many(field, len(rules), _SUCCESS_RULES_MAX)]
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
    expected = _job_labels(text(meta, "name"), text(meta, "uid"))
    labels = child(spec, "template", "metadata", "labels")
    where = "spec.template.metadata.labels"
    errors = [
        invalid(f"{where}[{key}]", labels, f"must be '{value}'")
        for key, value in expected.items()
        if labels.get(key) != value
    ]
    faults = check_label_selector(selector, "spec.selector")
    if not faults and not selects(selector, expected):
        errors.append(invalid("spec.selector", selector, "`selector` not auto-generated"))
    return errors


def _completions(spec: Json, where: str) -> list[FieldError]:
    if text(spec, "completionMode") == "Indexed" and spec.get("completions") is None:
        return [required(f"{where}.completions", 'when completion mode is "Indexed"')]
    return []


def _selector(spec: Json, where: str) -> list[FieldError]:
    selector = spec.get("selector")
    return [required(f"{where}.selector")] if selector is None else matches_template(spec, selector)


_job_template = template("OnFailure", "Never")
_job = rules(
    (
        "parallelism completions backoffLimit activeDeadlineSeconds backoffLimitPerIndex "
        "maxFailedIndexes",
        within(0),
    ),
    ("completionMode", one_of("Indexed", "NonIndexed")),
    _completions,
    _check_indexes,
    ("template", _job_template),
    _selector,
)
_job_kept = kept(
    "spec.selector spec.completionMode spec.podFailurePolicy "
    "spec.backoffLimitPerIndex spec.managedBy spec.successPolicy"
)
_job_completions_kept = kept("spec.completions")
_job_template_kept = kept("spec.template")


def _job_completions(new: Obj, old: Obj) -> list[FieldError]:
    """Let an indexed job change its completions together with its parallelism only."""
    errors, spec = _job_completions_kept(new, old), child(new, "spec")
    completions = spec.get("completions")
    if not errors or text(spec, "completionMode") != "Indexed" or completions is None:
        return errors
    if completions == spec.get("parallelism"):
        return []
    detail = "can only be modified in tandem with spec.parallelism"
    return [invalid("spec.completions", completions, detail)]


def _job_change(new: Obj, old: Obj) -> list[FieldError]:
    errors = _job_completions(new, old) + _job_kept(new, old)
    suspended = child(old, "spec").get("suspend") is True
    if suspended and not number(old, "status", "active") and _fixed(new) == _fixed(old):
        return errors
    return errors + _job_template_kept(new, old)


def _fixed(job: Obj) -> Json:
    """Return the part of a job's template that stays while the job is suspended.

    Notes
    -----
    kubernetes v1.36 validatePodTemplateUpdate, with the gates
    MutableSchedulingDirectivesForSuspendedJobs and MutablePodResourcesForSuspendedJobs.
    """
    found = copy.deepcopy(child(job, "spec", "template"))
    spec = child(found, "spec")
    for holder, names in (
        (child(found, "metadata"), ("labels", "annotations")),
        (spec, ("nodeSelector", "tolerations", "schedulingGates")),
        (child(spec, "affinity"), ("nodeAffinity",)),
        *((child(each, "resources"), ("requests", "limits")) for each in containers(spec)),
    ):
        for name in names:
            holder.pop(name, None)
    if not spec.get("affinity"):
        spec.pop("affinity", None)
    return found


def _schedule(schedule: str | None, where: str) -> list[FieldError]:
    if not schedule:
        return [required(where)]
    fault = _schedule_fault(schedule)
    return [invalid(where, schedule, fault)] if fault else []


def _time_zone(value: str | None, where: str) -> list[FieldError]:
    """Refuse a time zone that is not known; the local one has no meaning to a cluster."""
    if value is None:
        return []
    if value.lower() == "local" or not value:
        return [invalid(where, value, "timeZone must be an explicit time zone as defined in IANA")]
    if _is_zone(value) or not _is_zone("Etc/UTC"):
        # A machine without the database knows no zone at all.
        return []
    return [invalid(where, value, f"unknown time zone {value}")]


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return False
    return True


def _short_name(obj: Obj, old: Obj | None) -> list[FieldError]:
    """Refuse a new name that leaves no room for the eleven characters that its Jobs add."""
    name = text(obj, "metadata", "name")
    if old is not None or len(name) <= _CRON_NAME_MAX:
        return []
    return [invalid("metadata.name", name, f"must be no more than {_CRON_NAME_MAX} characters")]


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


def _state(obj: Obj) -> str:
    deleted = bool(text(obj, "metadata", "deletionTimestamp"))
    found = (kind for kind in _STATES if is_true(obj, kind) or (deleted and kind == "Terminating"))
    return next(found, "Running")


def _succeeded(obj: Obj) -> str:
    spec, succeeded = child(obj, "spec"), number(obj, "status", "succeeded")
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = number(spec, "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(obj: Obj, now_ns: int) -> str:
    status = child(obj, "status")
    return duration_between(text(status, "startTime"), text(status, "completionTime"), now_ns)


def _last_schedule(obj: Obj, now_ns: int) -> str:
    return duration_between(text(obj, "status", "lastScheduleTime"), "", now_ns) or NONE


def _suspended(obj: Obj) -> str:
    return "True" if child(obj, "spec").get("suspend") else "False"


def _cron_selector(obj: Obj) -> str:
    return format_selector(child(obj, "spec", "jobTemplate", "spec", "selector"))


_JOB_SPEC = ("spec", "jobTemplate", "spec")
# More than this many of both, and not all failed indexes of a job are told.
_COMPLETIONS_KNOWN, _PARALLELISM_KNOWN = 100_000, 10_000


def _warn_of_job(spec: Json, where: str) -> list[str]:
    found = of_template(child(spec, "template"), f"{where}.template.")
    many = number(spec, "completions") > _COMPLETIONS_KNOWN
    broad = number(spec, "parallelism") > _PARALLELISM_KNOWN
    if many and broad and text(spec, "completionMode") == "Indexed":
        found.append(
            f"{where}: In Indexed Jobs with a number of completions higher than 10^5 and a "
            "parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes "
            "when a big number of indexes fail"
        )
    return found


JOB = ServedKind(
    resource=resources.JOBS,
    acted_on_by="the job controller",
    columns=(
        NAME,
        column("Status", _state, "What the job is doing"),
        column("Completions", _succeeded, "Pods that succeeded, of those that have to"),
        timed("Duration", _duration, "Time from start to end, or to now"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    defaults=defaults(_default_job, unset={"status": {}}),
    on_create=_prepare_job,
    fields=selectable(
        more={"status.successful": lambda obj: str(number(obj, "status", "succeeded"))}
    ),
    counts_generations=True,
    check=_check_job,
    change=_job_change,
    warn=lambda obj: _warn_of_job(child(obj, "spec"), "spec"),
    warn_of_new=of_owner,
)
CRON_JOB = ServedKind(
    resource=resources.CRON_JOBS,
    acted_on_by="the cron job controller",
    columns=(
        NAME,
        column("Schedule", "spec.schedule", "When it makes jobs"),
        column("Timezone", "spec.timeZone", "Where the schedule's times are meant", empty=NONE),
        Column("Suspend", "boolean", "", "Whether it makes none", cell=lambda o, _: _suspended(o)),
        count("Active", lambda obj: len(objects(obj, "status", "active")), "Jobs that run"),
        timed("Last Schedule", _last_schedule, "Time since it made a job"),
        AGE,
        CONTAINERS,
        IMAGES,
        wide("Selector", _cron_selector, SELECTOR.description),
    ),
    defaults=defaults(
        _default_job_template,
        unset={
            "spec.suspend": False,
            "spec.successfulJobsHistoryLimit": 3,
            "spec.failedJobsHistoryLimit": 1,
            "status": {},
        },
        empty={"spec.concurrencyPolicy": "Allow"},
    ),
    counts_generations=True,
    check=_short_name,
    rules=rules(
        ("spec.schedule", _schedule),
        ("spec.timeZone", _time_zone),
        ("spec.concurrencyPolicy", one_of("Allow", "Forbid", "Replace")),
        (
            "spec.startingDeadlineSeconds spec.successfulJobsHistoryLimit "
            "spec.failedJobsHistoryLimit",
            within(0),
        ),
        ("spec.jobTemplate.spec.template", _job_template),
    ),
    warn=lambda obj: _warn_of_job(child(obj, *_JOB_SPEC), ".".join(_JOB_SPEC)),
    warn_of_new=of_owner,
)
KINDS = (JOB, CRON_JOB)
