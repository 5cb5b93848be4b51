"""Table columns and rows of deployments, sets, jobs and replication controllers.

Place in the flow: Table output of lists, gets and watches. Mirrors kubernetes v1.36
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from typing import Any

from moorage.apiserver.kind import Column
from moorage.apiserver.kinds.cells import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    SELECTOR,
    age,
    format_labels,
    format_selector,
    name_of,
    template_cells,
)
from moorage.apiserver.kinds.core_columns import duration_between
from moorage.apiserver.kinds.tree import Json, child, condition, number, objects, text

REPLICAS_COLUMNS = (
    NAME,
    Column("Desired", "integer", description="Pods there should be"),
    Column("Current", "integer", description="Pods there are"),
    Column("Ready", "integer", description="Pods that are ready"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)


def replica_set_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a replica set's row."""
    selector = format_selector(child(obj, "spec", "selector"))
    return [*_replicas(obj, now_ns), *template_cells(obj), selector]


def replication_controller_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a replication controller's row."""
    selector = format_labels(child(obj, "spec", "selector"))
    return [*_replicas(obj, now_ns), *template_cells(obj), selector]


def _replicas(obj: Json, now_ns: int) -> list[Any]:
    status = child(obj, "status")
    return [
        name_of(obj),
        number(obj, "spec", "replicas"),
        number(status, "replicas"),
        number(status, "readyReplicas"),
        age(obj, now_ns),
    ]


DEPLOYMENT_COLUMNS = (
    NAME,
    Column("Ready", description="Pods that are ready, of those there should be"),
    Column("Up-to-date", description="Pods made from the newest template"),
    Column("Available", description="Pods that have been ready long enough"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)


def deployment_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a deployment's row."""
    status = child(obj, "status")
    return [
        name_of(obj),
        f"{number(status, 'readyReplicas')}/{number(obj, 'spec', 'replicas')}",
        number(status, "updatedReplicas"),
        number(status, "availableReplicas"),
        age(obj, now_ns),
        *template_cells(obj),
        format_selector(child(obj, "spec", "selector")),
    ]


STATEFUL_SET_COLUMNS = (
    NAME,
    Column("Ready", description="Pods that are ready, of those there should be"),
    AGE,
    CONTAINERS,
    IMAGES,
)


def stateful_set_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a stateful set's row."""
    ready = number(obj, "status", "readyReplicas")
    desired = number(obj, "spec", "replicas")
    return [name_of(obj), f"{ready}/{desired}", age(obj, now_ns), *template_cells(obj)]


DAEMON_SET_COLUMNS = (
    NAME,
    Column("Desired", "integer", description="Nodes that should run the pod"),
    Column("Current", "integer", description="Nodes that run it and should"),
    Column("Ready", "integer", description="Nodes whose pod is ready"),
    Column("Up-to-date", "integer", description="Nodes with the newest pod"),
    Column("Available", "integer", description="Nodes whose pod has been ready long enough"),
    Column("Node Selector", description="Labels of the nodes meant"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)


def daemon_set_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a daemon set's row."""
    status = child(obj, "status")
    return [
        name_of(obj),
        number(status, "desiredNumberScheduled"),
        number(status, "currentNumberScheduled"),
        number(status, "numberReady"),
        number(status, "updatedNumberScheduled"),
        number(status, "numberAvailable"),
        format_labels(child(obj, "spec", "template", "spec", "nodeSelector")),
        age(obj, now_ns),
        *template_cells(obj),
        format_selector(child(obj, "spec", "selector")),
    ]


JOB_COLUMNS = (
    NAME,
    Column("Status", description="What the job is doing"),
    Column("Completions", description="Pods that succeeded, of those that have to"),
    Column("Duration", description="Time from start to end, or to now"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)

# Condition of a job -> text of the Status column; the first true condition counts.
_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def job_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a job's row."""
    status = child(obj, "status")
    start, end = text(status, "startTime"), text(status, "completionTime")
    return [
        name_of(obj),
        _job_state(obj),
        _completions(obj),
        duration_between(start, end, now_ns),
        age(obj, now_ns),
        *template_cells(obj),
        format_selector(child(obj, "spec", "selector")),
    ]


def _job_state(obj: Json) -> str:
    for kind, shown in _JOB_STATES:
        if not kind:
            if text(obj, "metadata", "deletionTimestamp"):
                return shown
            continue
        found = condition(obj, kind)
        if found is not None and found.get("status") == "True":
            return shown
    return "Running"


def _completions(obj: Json) -> str:
    spec = child(obj, "spec")
    succeeded = number(obj, "status", "succeeded")
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = number(spec, "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


REVISION_COLUMNS = (
    NAME,
    Column("Controller", description="What has this revision"),
    Column("Revision", "integer", description="Number of the revision"),
    AGE,
)


def revision_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a controller revision's row."""
    owner = next(
        (each for each in objects(obj, "metadata", "ownerReferences") if each.get("controller")),
        None,
    )
    return [
        name_of(obj),
        _qualified(owner) if owner else "<none>",
        number(obj, "revision"),
        age(obj, now_ns),
    ]


def _qualified(owner: Json) -> str:
    group = text(owner, "apiVersion").rpartition("/")[0]
    kind = text(owner, "kind").lower()
    return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"


CRON_JOB_COLUMNS = (
    NAME,
    Column("Schedule", description="When it makes jobs"),
    Column("Timezone", description="Where the schedule's times are meant"),
    Column("Suspend", "boolean", description="Whether it makes none"),
    Column("Active", "integer", description="Jobs that run"),
    Column("Last Schedule", description="Time since it made a job"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)


def cron_job_cells(obj: Json, now_ns: int) -> list[Any]:
    """Cells of a cron job's row."""
    spec, status = child(obj, "spec"), child(obj, "status")
    job = {"spec": child(spec, "jobTemplate", "spec")}
    last = text(status, "lastScheduleTime")
    return [
        name_of(obj),
        text(spec, "schedule"),
        text(spec, "timeZone") or "<none>",
        "True" if spec.get("suspend") else "False",
        len(objects(status, "active")),
        duration_between(last, "", now_ns) if last else "<none>",
        age(obj, now_ns),
        *template_cells(job),
        format_selector(child(spec, "jobTemplate", "spec", "selector")),
    ]
