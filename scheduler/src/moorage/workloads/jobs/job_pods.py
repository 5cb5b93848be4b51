"""Pods of jobs: bodies, completion indexes, and the policy for failures.

Rules: kubernetes v1.36 pkg/controller/job/{indexed_job_utils,pod_failure_policy}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from moorage.api.pod import Pod
from moorage.api.resources import JOBS
from moorage.workloads.objects import Json, Whole, owner_reference
from moorage.workloads.pods import pod_from_template

TRACKED: Final = "batch.kubernetes.io/job-tracking"
"""Finalizer of a pod that has not been counted yet."""
INDEX: Final = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_NAME_MAX: Final = 57  # room for the suffix of a pod's name


def is_tracked(pod: Pod) -> bool:
    """Whether a pod has not been counted yet."""
    return TRACKED in pod.metadata.finalizers


def index_of(pod: Pod) -> int | None:
    """Return a pod's completion index, None if it has none."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() else None


def is_indexed(job: Whole) -> bool:
    """Whether each pod of a job has a completion index."""
    return job.spec.get("completionMode") == "Indexed"


def job_pod(job: Whole, index: int | None, *, annotations: Mapping[str, str] | None = None) -> Json:
    """Return a new pod of a job, not named yet.

    Parameters
    ----------
    job
        The job.
    index
        Completion index; None for a job without indexes.
    annotations
        Annotations besides those of the template.
    """
    prefix = f"{job.name}-" if index is None else f"{job.name[:_NAME_MAX]}-{index}-"
    pod = pod_from_template(
        job.spec.get("template") or {},
        namespace=job.namespace,
        owner=owner_reference(job, JOBS),
        prefix=prefix,
    )
    metadata = pod["metadata"]
    metadata["finalizers"] = [*metadata.get("finalizers", []), TRACKED]
    if index is not None:
        metadata.setdefault("annotations", {}).update({INDEX: str(index), **(annotations or {})})
        metadata.setdefault("labels", {})[INDEX] = str(index)
        spec = pod["spec"]
        spec["hostname"] = f"{job.name}-{index}"
        for container in [*spec.get("containers", []), *(spec.get("initContainers") or [])]:
            _tell_index(container)
    return pod


def _tell_index(container: Json) -> None:
    known = container.get("env") or []
    if any(each.get("name") == _INDEX_VARIABLE for each in known):
        return
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    container["env"] = [*known, {"name": _INDEX_VARIABLE, "valueFrom": source}]


# --- indexes as text ------------------------------------------------------------------------------


def read_indexes(text: str | None, completions: int) -> set[int]:
    """Return the indexes in a text such as ``0-2,5``; indexes that are too large are left out."""
    indexes: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            indexes.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return indexes


def write_indexes(indexes: Iterable[int]) -> str:
    """Return indexes as text, runs of them as ``first-last`` (two in a row as ``a,b``)."""
    runs: list[tuple[int, int]] = []
    for each in sorted(indexes):
        if runs and runs[-1][1] == each - 1:
            runs[-1] = (runs[-1][0], each)
        else:
            runs.append((each, each))
    return ",".join(
        str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}"
        for first, last in runs
    )


def free_indexes(job: Whole, taken: set[int], count: int) -> list[int]:
    """Return the smallest indexes that no pod has and that have not succeeded."""
    found = (each for each in range(int(job.spec["completions"])) if each not in taken)
    return [each for _, each in zip(range(count), found, strict=False)]


# --- what a failure means -------------------------------------------------------------------------


def failure_action(job: Whole, pod: Pod) -> tuple[str, str]:
    """Return the pod failure policy's action for a failed pod, and why; Count without a match.

    Returns
    -------
    tuple of str
        ``Count``, ``Ignore``, ``FailIndex`` or ``FailJob``, and a message.
    """
    rules = (job.spec.get("podFailurePolicy") or {}).get("rules") or []
    if pod.status.phase != "Failed":
        return "Count", ""
    for number, rule in enumerate(rules):
        why = ""
        if rule.get("onExitCodes"):
            why = _exit_code_matches(rule["onExitCodes"], pod)
        elif rule.get("onPodConditions"):
            why = _condition_matches(rule["onPodConditions"], pod)
        if why:
            action = rule["action"]
            return action, f"{why} matching {action} rule at index {number}"
    return "Count", ""


def _exit_code_matches(wanted: Mapping[str, Any], pod: Pod) -> str:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    for each in statuses:
        ended = each.state.terminated if each.state else None
        if ended is None or not ended.exit_code:
            continue
        if wanted.get("containerName") not in (None, each.name):
            continue
        if (ended.exit_code in (wanted.get("values") or [])) == (wanted.get("operator") == "In"):
            where = f"{pod.namespace}/{pod.name}"
            return f"Container {each.name} for pod {where} failed with exit code {ended.exit_code}"
    return ""


def _condition_matches(patterns: Iterable[Mapping[str, Any]], pod: Pod) -> str:
    found = {each.type: each.status for each in pod.status.conditions}
    for each in patterns:
        if found.get(each["type"]) == (each.get("status") or "True"):
            return f"Pod {pod.namespace}/{pod.name} has condition {each['type']}"
    return ""
