"""Fills the parameters of a workload into the operations of its template.

Source: kubernetes v1.36 test/integration/scheduler_perf, ``patchParams`` of each operation and
``unrollWorkloadTemplate``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from moorage.api.schedules.durations import parse_duration
from moorage.base.errors import ConfigError
from moorage_lab.bench.scheduler_perf.operations import CreatePods, CreatePodSets, Operation

OperationT = TypeVar("OperationT", bound=Operation)

_TYPES: Mapping[str, type] = {
    "count": int,
    "count_multiplier": int,
    "signature_batch_size": int,
    "max_claims_per_node": int,
    "duration": str,
    "steady_state": bool,
}


class Resolving:
    """The parameters of one workload, and which of them were used.

    Parameters
    ----------
    params
        Values by name.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._params = params
        self._used: set[str] = set()
        self.faults: list[str] = []

    def operation(self, op: OperationT, index: int) -> OperationT:
        """Return an operation with the values of its parameters; faults are kept."""
        changes: dict[str, Any] = {}
        for field in msgspec.structs.fields(type(op)):
            name = getattr(op, field.name)
            target = field.name.removesuffix("_param")
            if target != field.name and name:
                changes[target] = self._value(name[1:], _TYPES[target], index)
        if isinstance(op, CreatePods) and (factor := changes.pop("count_multiplier", None)):
            changes["count"] = changes.get("count", op.count) * factor
        given = getattr(op, "template_params", None)
        if given:
            changes["template_params"] = {
                name: self._template_value(value, index) for name, value in given.items()
            }
        return msgspec.structs.replace(op, **changes) if changes else op

    def unused(self) -> list[str]:
        """Return the names of parameters that no operation asked for, sorted."""
        return sorted(set(self._params) - self._used)

    def _value(self, name: str, type_: type, index: int) -> Any:
        self._used.add(name)
        value = self._params.get(name)
        if type_ is int and isinstance(value, float):
            value = int(value)
        fault = ""
        if name not in self._params:
            fault = "is undefined"
        elif not isinstance(value, type_) or (type_ is int and isinstance(value, bool)):
            fault = f"is {value!r}, which is not of type {type_.__name__}"
        elif isinstance(value, int) and value < 0:
            fault = f"is {value}, which is negative"
        elif isinstance(value, str):
            try:
                parse_duration(value)
            except ValueError as error:
                fault = f"is no duration: {error}"
        if fault:
            self.faults.append(f"op {index}: parameter {name} {fault}")
            return type_()
        return value

    def _template_value(self, value: Any, index: int) -> Any:
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        # The suite after v1.36 has a default after the name.
        name, bar, default = value[1:].partition("|")
        self._used.add(name)
        if name not in self._params and not bar:
            self.faults.append(f"op {index}: parameter {name} is undefined")
        return self._params.get(name, default)


class Resolved(msgspec.Struct, frozen=True):
    """The operations of one workload, and the names of parameters that none of them asked for."""

    operations: tuple[Operation, ...]
    unused: tuple[str, ...]


def resolve(operations: Iterable[Operation], params: Mapping[str, Any]) -> Resolved:
    """Return the operations of one workload, sets of pods taken apart.

    Parameters
    ----------
    operations
        The workload template.
    params
        The parameters of the workload.

    Raises
    ------
    ConfigError
        A parameter is undefined, or of the wrong type; all are listed.
    """
    resolving, unrolled = Resolving(params), list[Operation]()
    for index, written in enumerate(operations):
        op = resolving.operation(written, index)
        if not isinstance(op, CreatePodSets):
            unrolled.append(op)
            continue
        pods = resolving.operation(op.create_pods_op, index)
        unrolled += (
            msgspec.structs.replace(pods, namespace=f"{op.namespace_prefix}-{number}")
            for number in range(op.count)
        )
    faults = [*resolving.faults, *_steady(unrolled)]
    if faults:
        raise ConfigError(faults)
    return Resolved(tuple(unrolled), tuple(resolving.unused()))


def _steady(operations: Iterable[Operation]) -> Iterable[str]:
    for index, op in enumerate(operations):
        if isinstance(op, CreatePods) and op.steady_state and not op.duration:
            yield f"op {index}: a steady state needs a duration"
