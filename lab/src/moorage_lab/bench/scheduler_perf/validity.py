"""The rules of operations: the faults of one operation that was read.

Counts and durations may still be parameters here. Their values are checked by `parameters`.
Source: kubernetes v1.36 test/integration/scheduler_perf, the ``isValid`` of each operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.api.schedules.durations import parse_duration
from moorage.config.strict import invalid, join
from moorage_lab.bench.scheduler_perf.operations import (
    Barrier,
    Churn,
    CreateAny,
    CreatePodGroups,
    CreatePods,
    CreatePodSets,
    CreateResourceClaims,
    CreateResourceDriver,
    DeletePods,
    Operation,
    StartCollectingMetrics,
    UpdateAny,
)

MODES = ("create", "recreate")
REACHED = ("Scheduled", "Attempted")


def faults_of(op: Operation, path: str) -> Iterator[str]:
    """Yield the faults of an operation, as Kubernetes field errors.

    Parameters
    ----------
    path
        Where the operation stands, e.g. ``[0].workloadTemplate[2]``.
    """
    yield from _params(op, path)
    match op:
        case CreatePods():
            yield from _create_pods(op, path)
        case Churn():
            yield from _churn(op, path)
        case DeletePods():
            yield from _not_negative(op.delete_pods_per_second, join(path, "deletePodsPerSecond"))
        case Barrier() if op.stage_requirement not in ("", *REACHED):
            where = join(path, "stageRequirement")
            yield invalid(where, op.stage_requirement, f"must be one of {', '.join(REACHED)}")
        case StartCollectingMetrics() if not op.namespaces:
            yield f"{join(path, 'namespaces')}: Required value"
        case UpdateAny():
            yield from _required(op.template_path, join(path, "templatePath"))
            yield from _not_negative(op.update_per_second, join(path, "updatePerSecond"))
        case CreateAny() | CreateResourceClaims() | CreatePodGroups():
            yield from _required(op.template_path, join(path, "templatePath"))
            if not isinstance(op, CreateAny):
                yield from _required(op.namespace, join(path, "namespace"))
        case CreateResourceDriver():
            yield from _required(op.driver_name, join(path, "driverName"))
            yield from _required(op.nodes, join(path, "nodes"))
        case CreatePodSets():
            yield from _required(op.namespace_prefix, join(path, "namespacePrefix"))
            yield from faults_of(op.create_pods_op, join(path, "createPodsOp"))
        case _:
            pass


def _params(op: Operation, path: str) -> Iterator[str]:
    """Yield the faults of counts, durations and names of parameters."""
    for field in msgspec.structs.fields(type(op)):
        value: Any = getattr(op, field.name)
        where = join(path, field.encode_name)
        if field.name.endswith("_param"):
            if value and not (value.startswith("$") and value[1:]):
                yield invalid(where, value, 'must be the name of a parameter after a "$"')
        elif field.name in ("count", "max_claims_per_node", "signature_batch_size"):
            yield from _not_negative(value or 0, where)
        elif field.name == "duration" and value:
            try:
                parse_duration(value)
            except ValueError as error:
                yield invalid(where, value, str(error))


def _create_pods(op: CreatePods, path: str) -> Iterator[str]:
    if op.collect_metrics and op.skip_wait_to_completion:
        yield f"{path}: collectMetrics and skipWaitToCompletion cannot be true at the same time"
    if op.skip_wait_to_completion and op.steady_state:
        yield f"{path}: skipWaitToCompletion and steadyState cannot be true at the same time"
    volume, claim = op.persistent_volume_template_path, op.persistent_volume_claim_template_path
    if claim and not volume:
        yield f"{join(path, 'persistentVolumeTemplatePath')}: Required value"


def _churn(op: Churn, path: str) -> Iterator[str]:
    if op.mode not in MODES:
        yield invalid(join(path, "mode"), op.mode, f"must be one of {', '.join(MODES)}")
    if op.number < 0 or (op.mode == "recreate" and not op.number):
        yield invalid(join(path, "number"), op.number, "must be greater than 0 in mode recreate")
    yield from _not_negative(op.interval_milliseconds, join(path, "intervalMilliseconds"))
    if not op.template_paths:
        yield f"{join(path, 'templatePaths')}: Required value"


def _required(value: str, where: str) -> Iterator[str]:
    if not value:
        yield f"{where}: Required value"


def _not_negative(value: int, where: str) -> Iterator[str]:
    if value < 0:
        yield invalid(where, value, "must not be negative")
