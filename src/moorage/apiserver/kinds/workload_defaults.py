"""Defaults of the workload kinds: deployments, replica sets, stateful and daemon sets, jobs.

Place in the flow: first step of a create or update, before validation. Mirrors kubernetes v1.36
pkg/apis/{apps,batch}/v1/defaults.go and, for replication controllers, pkg/apis/core/v1.
"""

from __future__ import annotations

from moorage.apiserver.kinds.core_defaults import default_claim
from moorage.apiserver.kinds.pod_defaults import default_template
from moorage.apiserver.kinds.tree import Json, attach, child, fill, fill_empty, objects

# Default retries of a job; unlimited when retries are counted by index.
JOB_BACKOFF_LIMIT = 6
INT32_MAX = 2**31 - 1
JOB_UID_LABEL = "batch.kubernetes.io/controller-uid"


def default_replication_controller(obj: Json) -> None:
    """Default a replication controller; selector and labels come from the template."""
    spec = attach(obj, "spec")
    labels = child(spec, "template", "metadata", "labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = attach(obj, "metadata")
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    fill(spec, {"replicas": 1})
    if spec.get("template") is not None:
        default_template(spec)
    fill(attach(obj, "status"), {"replicas": 0})


def default_deployment(obj: Json) -> None:
    """Default a deployment."""
    spec = attach(obj, "spec")
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    strategy = attach(spec, "strategy")
    fill_empty(strategy, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = attach(strategy, "rollingUpdate")
        fill(rolling, {"maxUnavailable": "25%", "maxSurge": "25%"})
    default_template(spec)
    attach(obj, "status")


def default_replica_set(obj: Json) -> None:
    """Default a replica set."""
    spec = attach(obj, "spec")
    fill(spec, {"replicas": 1})
    default_template(spec)
    fill(attach(obj, "status"), {"replicas": 0})


def default_stateful_set(obj: Json) -> None:
    """Default a stateful set, its claim templates included."""
    spec = attach(obj, "spec")
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10})
    fill_empty(spec, {"podManagementPolicy": "OrderedReady"})
    fill(spec, {"serviceName": ""})
    update = attach(spec, "updateStrategy")
    fill_empty(update, {"type": "RollingUpdate"})
    if update["type"] == "RollingUpdate":
        fill(attach(update, "rollingUpdate"), {"partition": 0})
    retention = attach(spec, "persistentVolumeClaimRetentionPolicy")
    fill_empty(retention, {"whenDeleted": "Retain", "whenScaled": "Retain"})
    for claim in objects(spec, "volumeClaimTemplates"):
        fill_empty(claim, {"apiVersion": "v1", "kind": "PersistentVolumeClaim"})
        default_claim(claim)
    default_template(spec)
    fill(attach(obj, "status"), {"replicas": 0, "availableReplicas": 0})


def default_daemon_set(obj: Json) -> None:
    """Default a daemon set."""
    spec = attach(obj, "spec")
    fill(spec, {"revisionHistoryLimit": 10})
    update = attach(spec, "updateStrategy")
    fill_empty(update, {"type": "RollingUpdate"})
    if update["type"] == "RollingUpdate":
        fill(attach(update, "rollingUpdate"), {"maxUnavailable": 1, "maxSurge": 0})
    default_template(spec)
    zeros: Json = {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }
    fill(attach(obj, "status"), zeros)


def default_job(obj: Json) -> None:
    """Default a job."""
    spec = attach(obj, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    indexed = spec.get("backoffLimitPerIndex") is not None
    defaults: Json = {
        "parallelism": 1,
        "backoffLimit": INT32_MAX if indexed else JOB_BACKOFF_LIMIT,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": (
            "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
        ),
    }
    fill(spec, defaults)
    default_template(spec)
    attach(obj, "status")


def job_labels(name: str, uid: str) -> dict[str, str]:
    """Return the labels that the pods of a job have, the old names first."""
    return {
        "controller-uid": uid,
        "job-name": name,
        JOB_UID_LABEL: uid,
        "batch.kubernetes.io/job-name": name,
    }


def default_cron_job(obj: Json) -> None:
    """Default a cron job, the template of its jobs included."""
    spec = attach(obj, "spec")
    fill_empty(spec, {"concurrencyPolicy": "Allow"})
    fill(spec, {"suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1})
    template = attach(attach(spec, "jobTemplate"), "spec")
    if template.get("template") is not None:
        default_template(template)
    attach(obj, "status")
