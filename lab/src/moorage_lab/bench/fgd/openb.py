"""The nodes and the pods of the OpenB traces, read from their CSV files.

Rules: ``data/pod_csv_to_yaml.py`` of kubernetes-scheduler-simulator. Amounts of GPU are
annotations, so NodeResourcesFit judges CPU and memory alone.
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage.base.errors import UsageError
from moorage.config.plugin_args_gpu import WHOLE_GPU_MILLI, TypicalPod
from moorage.plugins.gpu_share.policies import typical_pods

_NODES: Final = "openb_node_list_gpu_node.csv"
_PODS: Final = "openb_pod_list_"


class TraceNode(msgspec.Struct, frozen=True):
    """One node of the trace."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


class TracePod(msgspec.Struct, frozen=True, order=True):
    """One pod of the trace; ordered by name.

    Parameters
    ----------
    spec
        Admissible models joined by ``|``, as written.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    spec: str

    @property
    def total_milli(self) -> int:
        """Milli-GPU of all devices together."""
        return self.gpus * self.gpu_milli


def traces_in(folder: Path) -> list[str]:
    """Return the names of the traces in a folder, sorted.

    Raises
    ------
    UsageError
        There is none.
    """
    names = {
        path.name.removeprefix(_PODS).partition(".csv")[0]
        for form in ("csv", "csv.gz")
        for path in folder.glob(f"{_PODS}?*.{form}")
    }
    if not names:
        raise UsageError(f"{folder} has no {_PODS}TRACE.csv: --data names the folder of the traces")
    return sorted(names)


def read_nodes(folder: Path) -> tuple[TraceNode, ...]:
    """Return the nodes, by name.

    Raises
    ------
    UsageError
        The file is missing, or a row cannot be read.
    """
    nodes = (
        TraceNode(
            row["sn"],
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            int(row["gpu"]),
            row["model"],
        )
        for row in _rows(folder / _NODES)
    )
    return tuple(sorted(_checked(nodes, folder / _NODES), key=lambda node: node.name))


def read_pods(folder: Path, trace: str) -> tuple[TracePod, ...]:
    """Return the pods of a trace, by name.

    Raises
    ------
    UsageError
        The file is missing, or a row cannot be read.
    """
    plain = folder / f"{_PODS}{trace}.csv"
    path = plain if plain.is_file() else plain.with_name(f"{plain.name}.gz")
    return tuple(sorted(_checked((_pod(row) for row in _rows(path)), path)))


def typical_of(pods: Sequence[TracePod]) -> tuple[TypicalPod, ...]:
    """Return the typical pods of a trace."""
    return typical_pods(Counter((pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.spec) for pod in pods))


def _pod(row: Mapping[str, Any]) -> TracePod:
    gpus = int(row["num_gpu"])
    return TracePod(
        row["name"],
        int(row["cpu_milli"]),
        int(row.get("memory_mib") or 0),
        gpus,
        min(WHOLE_GPU_MILLI, max(0, int(row["gpu_milli"]))) if gpus else 0,
        (row.get("gpu_spec") or "") if gpus else "",
    )


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}: --data names the folder") from problem


def _checked(items: Iterator[Any], path: Path) -> Iterator[Any]:
    try:
        yield from items
    except (KeyError, ValueError) as problem:
        raise UsageError(f"{path}: not a list of the OpenB form: {problem}") from problem
