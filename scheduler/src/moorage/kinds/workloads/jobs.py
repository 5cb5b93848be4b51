"""Job and CronJob (kubernetes v1.36 pkg/apis/batch/{v1/defaults.go,validation})."""

from __future__ import annotations

import copy
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moorage.api import resources
from moorage.api.names import dns_label_faults
from moorage.api.resources import ResourceType
from moorage.api.schedules.cron_schedule import schedule_fault
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
from moorage.kinds.fields import defaults, one_of, rules, selectable, unchanging, within
from moorage.kinds.kind import Column, Context, FieldError, Obj, invalid, not_supported, required
from moorage.kinds.pod.defaults import default_template
from moorage.kinds.pod.spec import INT32_MAX
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
from moorage.kinds.workloads.job_rules import check_job_spec
from moorage.kinds.workloads.status_counts import status_counts

# Default retries of a job; unlimited when retries are counted by index.
_BACKOFF_LIMIT = 6
_UID_LABEL = "batch.kubernetes.io/controller-uid"
# Conditions that the Status column shows; the first true condition counts.
_STATES = (
    "Complete",
    "Failed",
    "Terminating",
    "Suspended",
    "FailureTarget",
    "SuccessCriteriaMet",
)
_CONDITION_STATUS = "podFailurePolicy?.rules[].onPodConditions[].status"
_CRON_NAME_MAX = 52  # the limit of a Job name, 63, without the time that a CronJob adds
_ZONE_PART = re.compile(r"(?!\.{1,2}$|-)[A-Za-z._0-9+-]{1,14}")


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
    spec = child(new, "spec")
    errors = [] if old is not None else _check_generated_selector(new) + _check_hostnames(new)
    return errors + check_job_spec(spec, "spec") + _selector(spec, "spec")


def _check_hostnames(job: Obj) -> list[FieldError]:
    """Refuse the name of an indexed job whose last pod would have no valid hostname."""
    spec, name = child(job, "spec"), text(job, "metadata", "name")
    last = number(spec, "completions") - 1
    if text(spec, "completionMode") != "Indexed" or last < 0:
        return []
    hostname = f"{name}-{last}"
    if not dns_label_faults(hostname):
        return []
    detail = f"will not able to create pod with invalid DNS label: {hostname}"
    return [invalid("metadata.name", name, detail)]


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


def _selector(spec: Json, where: str) -> list[FieldError]:
    selector = spec.get("selector")
    return [required(f"{where}.selector")] if selector is None else matches_template(spec, selector)


_job_kept = unchanging(
    "spec.selector spec.completionMode spec.podFailurePolicy "
    "spec.backoffLimitPerIndex spec.managedBy spec.successPolicy"
)
_job_completions_kept = unchanging("spec.completions")
_job_template_kept = unchanging("spec.template")


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
    template = copy.deepcopy(child(job, "spec", "template"))
    spec = child(template, "spec")
    for holder, names in (
        (child(template, "metadata"), ("labels", "annotations")),
        (spec, ("nodeSelector", "tolerations", "schedulingGates")),
        (child(spec, "affinity"), ("nodeAffinity",)),
        *((child(each, "resources"), ("requests", "limits")) for each in containers(spec)),
    ):
        for name in names:
            holder.pop(name, None)
    if not spec.get("affinity"):
        spec.pop("affinity", None)
    return template


def _generated(spec: Json, where: str) -> list[FieldError]:
    """Refuse a selector in the template of jobs: each job gets its own."""
    errors, selector = [], spec.get("selector")
    if selector is not None:
        errors.append(invalid(f"{where}.selector", selector, "`selector` will be auto-generated"))
    if spec.get("manualSelector") is True:
        errors.append(not_supported(f"{where}.manualSelector", True, ("false", "nil")))
    return errors


def _schedule(schedule: str | None, where: str) -> list[FieldError]:
    if not schedule:
        return [required(where)]
    fault = schedule_fault(schedule)
    if "TZ" in schedule:
        fault = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    return [invalid(where, schedule, fault)] if fault else []


def _time_zone(value: str | None, where: str) -> list[FieldError]:
    """Refuse a time zone that is not known; the local one has no meaning to a cluster."""
    if value is None:
        return []
    if not value:
        return [invalid(where, value, "timeZone must be nil or non-empty string")]
    if value.lower() == "local":
        detail = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        return [invalid(where, value, detail)]
    formed = all(_ZONE_PART.fullmatch(part) for part in value.split("/"))
    # A machine without the database knows no zone at all.
    if formed and (_is_zone(value) or not _is_zone("Etc/UTC")):
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
    warnings = of_template(child(spec, "template"), f"{where}.template.")
    many = number(spec, "completions") > _COMPLETIONS_KNOWN
    broad = number(spec, "parallelism") > _PARALLELISM_KNOWN
    if many and broad and text(spec, "completionMode") == "Indexed":
        warnings.append(
            f"{where}: In Indexed Jobs with a number of completions higher than 10^5 and a "
            "parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes "
            "when a big number of indexes fail"
        )
    return warnings


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
    defaults=defaults(
        _default_job,
        unset={"status": {}},
        empty={f"spec.{_CONDITION_STATUS}": "True"},
    ),
    on_create=_prepare_job,
    fields=selectable(
        more={"status.successful": lambda obj: str(number(obj, "status", "succeeded"))}
    ),
    counts_generations=True,
    check=_check_job,
    check_status=status_counts(others="active succeeded failed ready terminating"),
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
        empty={
            "spec.concurrencyPolicy": "Allow",
            f"spec.jobTemplate.spec.{_CONDITION_STATUS}": "True",
        },
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
        ("spec.jobTemplate.spec", rules(check_job_spec, _generated)),
    ),
    warn=lambda obj: _warn_of_job(child(obj, *_JOB_SPEC), ".".join(_JOB_SPEC)),
    warn_of_new=of_owner,
)
KINDS = (JOB, CRON_JOB)
