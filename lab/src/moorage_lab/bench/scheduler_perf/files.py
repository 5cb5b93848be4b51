"""Reads workload files; every fault of a file is listed, not only the first.

A file is a YAML list of test cases. Paths in the file start from its folder, as they do in the
suite, where each test runs in the folder of its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage.base.errors import ConfigError, UsageError
from moorage.config.strict import Reader, join, parse_documents, quoted
from moorage_lab.bench.scheduler_perf.cases import TestCase, WrittenCase
from moorage_lab.bench.scheduler_perf.operations import (
    OPERATIONS,
    CreatePods,
    CreatePodSets,
    Operation,
    StopCollectingMetrics,
)
from moorage_lab.bench.scheduler_perf.validity import faults_of

FILE_NAME: Final = "performance-config.yaml"
"""Name of the workload files that are looked for in a folder."""
OWN: Final = Path(__file__).parent / "workloads"
"""Our own workload files: every kind of test case, small and large."""


class WorkloadFile(msgspec.Struct, frozen=True):
    """A file that was read.

    Parameters
    ----------
    path
        Where it is.
    cases
        Its test cases; none if it has faults.
    faults
        Every fault, as Kubernetes field errors.
    """

    path: Path
    cases: tuple[TestCase, ...]
    faults: tuple[str, ...] = ()


def read_files(path: Path) -> list[WorkloadFile]:
    """Read a workload file, or every file of that kind below a folder.

    Raises
    ------
    UsageError
        There is no such file, or the folder has none.
    """
    if path.is_file():
        return [_read_file(path)]
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder; give a workload file of scheduler_perf")
    found = sorted(path.rglob(FILE_NAME))
    if not found:
        raise UsageError(f"{path}: no {FILE_NAME} here or below; give a workload file")
    return [_read_file(each) for each in found]


def _read_file(path: Path) -> WorkloadFile:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    try:
        documents = parse_documents(text)
    except ConfigError as error:
        return WorkloadFile(path, (), error.faults)
    faults: list[str] = []
    cases = _read_cases(documents, path.parent, faults)
    return WorkloadFile(path, () if faults else tuple(cases), tuple(faults))


def _read_cases(documents: Sequence[Any], folder: Path, faults: list[str]) -> list[TestCase]:
    if len(documents) != 1 or not isinstance(documents[0], list) or not documents[0]:
        faults.append("expected a list of test cases")
        return []
    cases = []
    for index, value in enumerate(documents[0]):
        reader = Reader()
        spelt = as_spelt(WrittenCase, value)
        written = reader.convert_value(WrittenCase, spelt, path=f"[{index}]")
        found = list(reader.faults)
        if written is not None:
            cases.append(_read_case(written, folder, f"[{index}]", found))
        name = spelt.get("name") if isinstance(spelt, Mapping) else None
        faults += (f"{name}{_joined(fault)}" if isinstance(name, str) else fault for fault in found)
    faults += _repeated([case.name for case in cases], "", "name")
    return cases


def _read_case(written: WrittenCase, folder: Path, path: str, faults: list[str]) -> TestCase:
    operations: list[Operation] = []
    unknown: list[str] = []
    wrong: list[str] = []
    for number, value in enumerate(written.workload_template):
        place = f"{join(path, 'workloadTemplate')}[{number}]"
        opcode = as_spelt(Operation, value).get("opcode")
        type_ = OPERATIONS.get(opcode) if isinstance(opcode, str) else None
        if type_ is None:
            if isinstance(opcode, str) and opcode:
                unknown.append(opcode)
            else:
                wrong.append(f"op {number}: {place}.opcode: Required value")
            continue
        reader = Reader()
        op = reader.convert_value(type_, as_spelt(type_, value), path=place)
        found = list(reader.faults)
        if op is not None:
            found += faults_of(op, place)
            operations.append(op)
        wrong += (f"op {number} ({opcode}): {fault}" for fault in found)
    case = TestCase(
        written=written, operations=tuple(operations), unknown=tuple(unknown), folder=folder
    )
    faults += wrong
    faults += _faults_of_case(case, path, certain=not wrong and not unknown)
    return case


def _joined(fault: str) -> str:
    """Return a fault as it follows the name of its test case."""
    return f", {fault}" if fault.startswith("op ") else f": {fault}"


def as_spelt(type_: type[msgspec.Struct], value: Any) -> Any:
    """Return a mapping with the spelling of its fields; Go reads them in any case.

    Some files of the suite write ``ConditionTypeParam``. Two spellings of one field stay two keys,
    so that they are told as a fault.
    """
    if not isinstance(value, Mapping):
        return value
    names = {
        field.encode_name.lower(): field.encode_name for field in msgspec.structs.fields(type_)
    }
    spelt: dict[str, Any] = {}
    for key, item in value.items():
        name = names.get(str(key).lower(), str(key))
        inner = name == "createPodsOp"
        spelt[str(key) if name in spelt else name] = as_spelt(CreatePods, item) if inner else item
    return spelt


def _faults_of_case(case: TestCase, path: str, *, certain: bool) -> Iterator[str]:
    """Yield the faults of a case as a whole.

    Parameters
    ----------
    certain
        Whether every operation was understood; one that was not may collect metrics.
    """
    written = case.written
    if not written.workloads:
        yield f"{join(path, 'workloads')}: Required value"
    if not written.workload_template:
        yield f"{join(path, 'workloadTemplate')}: Required value"
    elif certain and not any(collects(op) for op in case.operations):
        yield f"{join(path, 'workloadTemplate')}: no operation collects metrics"
    yield from _repeated([each.name for each in written.workloads], path, "workloads")
    for index, workload in enumerate(written.workloads):
        bounds: Mapping[str, float] = (
            workload.threshold if isinstance(workload.threshold, dict) else {"": workload.bound("")}
        )
        if any(bound < 0 for bound in bounds.values()):
            yield f"{join(path, 'workloads')}[{index}].threshold: must not be negative"


def collects(op: Operation) -> bool:
    """Whether an operation produces results."""
    if isinstance(op, CreatePodSets):
        return op.create_pods_op.collect_metrics
    return isinstance(op, StopCollectingMetrics) or (
        isinstance(op, CreatePods) and op.collect_metrics
    )


def _repeated(names: Sequence[str], path: str, field: str) -> Iterator[str]:
    for index, name in enumerate(names):
        if name in names[:index]:
            where = f"[{index}].{field}" if not path else f"{join(path, field)}[{index}].name"
            yield f"{where}: Duplicate value: {quoted(name)}"
