"""Reads the nodes, pods and other objects that a scenario names, and reports what is bad.

Place in the flow: `scenario` to here to `inputs`.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from moorage.api.codec import decode_untyped
from moorage.api.resources import by_kind
from moorage.base.errors import ConfigError, UsageError
from moorage.base.files import DATA_BYTES_MAX, read_file, unpacked
from moorage.nodeshapes.shapes import parse_shape, shaped_nodes
from moorage.nodeshapes.templates import complete
from moorage.virtual.objects import items_of
from moorage_lab.traces import presets
from moorage_lab.traces.columns import (
    NODE_FIELDS,
    POD_FIELDS,
    ColumnMap,
    Coming,
    bare_pod,
    node_of,
    pod_of,
)
from moorage_lab.traces.histories import pods_of_events
from moorage_lab.traces.jobs.labels import member_of
from moorage_lab.traces.rows import rows_of
from moorage_lab.traces.scenario import Column, NodeSource, PodSource, Scenario

T = TypeVar("T")
Manifest = dict[str, Any]

_FAULTS_SHOWN: Final = 20
_ENDED: Final = ("Succeeded", "Failed")
_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Characters that other programs write between the cells of a table."""


class Read(msgspec.Struct):
    """The objects of a scenario.

    Parameters
    ----------
    objects
        Nodes, pods that have a node, and objects of other kinds, in the order of the files.
    coming
        The pods of each source.
    left_out
        A sentence for each bad row and unreadable object, with file and line.
    """

    objects: list[Manifest]
    coming: list[list[Coming]]
    left_out: list[str]


def read_sources(scenario: Scenario) -> Read:
    """Read every file of a scenario.

    Raises
    ------
    UsageError
        A file cannot be read.
    ConfigError
        There are bad rows, and `bad_rows` of the scenario is ``fatal``.
    """
    reading = _Reading()
    for index, nodes in enumerate(scenario.nodes):
        reading.nodes(nodes, index)
    for file in scenario.objects:
        reading.content.objects += manifests_of(file)
    for index, pods in enumerate(scenario.pods):
        reading.content.coming.append(reading.pods_to_come(pods, f"pods[{index}]"))
    content = reading.content
    coming = _without_repeated(content.coming, content.left_out)
    objects = _distinct(
        content.objects, [each for pods in coming for each in pods], content.left_out
    )
    content = msgspec.structs.replace(content, coming=coming, objects=objects)
    if scenario.bad_rows == "fatal":
        refuse(content.left_out)
    return content


def refuse(faults: list[str]) -> None:
    """Refuse bad rows, if there are any; the first twenty are shown.

    Raises
    ------
    ConfigError
        There are bad rows.
    """
    if faults:
        shown = faults[:_FAULTS_SHOWN]
        if len(faults) > _FAULTS_SHOWN:
            shown.append(f"and {len(faults) - _FAULTS_SHOWN} more; badRows: leaveOut goes on")
        raise ConfigError(shown)


class _Reading:
    """Takes in one source after another."""

    def __init__(self) -> None:
        self.content = Read([], [], [])
        self._copies: Counter[str] = Counter()

    def nodes(self, source: NodeSource, index: int) -> None:
        if source.file:
            self.content.objects += manifests_of(source.file)
        elif source.shape:
            shape = msgspec.structs.replace(parse_shape(source.shape), count=None)
            prefix = "node" if index == 0 else f"node-{index}"
            made = shaped_nodes([shape], source.count, prefix=prefix)
            self.content.objects += [{**complete(each), "kind": "Node"} for each in made]
        else:
            columns = self._map(source.preset, source.columns, presets.NODES, f"nodes[{index}]")
            self.content.objects += self._rows(
                source.trace,
                columns,
                source.preset,
                lambda row: presets.finished_node(source.preset, node_of(row, columns)),
            )

    def pods_to_come(self, source: PodSource, path: str) -> list[Coming]:
        template = source.template or {}
        if source.file:
            return self._pods_of_file(source.file)
        if source.trace:
            columns = self._map(source.preset, source.columns, presets.PODS, path)
            return self._rows(
                source.trace,
                columns,
                source.preset,
                lambda row: presets.finished_pod(source.preset, pod_of(row, columns, template)),
            )
        if source.events:
            found = list(pods_of_events(items_of(_bytes(source.events), source.events), template))
            self.content.left_out += [f"{source.events}: {e}" for e in found if isinstance(e, str)]
            return [each for each in found if isinstance(each, Coming)]
        assert source.count is not None, "copies of a template have a count"
        name = str(template.get("metadata", {}).get("name") or "pod")
        # Copies of two templates of one name are numbered on: no name may come twice.
        before = self._copies[name]
        self._copies[name] += source.count
        jobs = [f"{name}-{n}" for n in range(before + 1, before + source.count + 1)]
        if source.members == 1:
            return [Coming(bare_pod(template, job)) for job in jobs]
        return [
            Coming(member_of(bare_pod(template, f"{job}-{n}"), job, source.members))
            for job in jobs
            for n in range(source.members)
        ]

    def _pods_of_file(self, file: str) -> list[Coming]:
        """Return the pods of a file; everything else in it is there at the start."""
        coming = []
        manifests = manifests_of(file)
        if not manifests:
            raise UsageError(f"{file}: there are no objects")
        for manifest in manifests:
            pending = not manifest.get("spec", {}).get("nodeName")
            ended = (manifest.get("status") or {}).get("phase") in _ENDED
            if manifest.get("kind") == "Pod" and pending and not ended:
                coming.append(Coming(manifest))
            else:
                self.content.objects.append(manifest)
        return coming

    def _map(
        self,
        name: str,
        columns: Mapping[str, str | Column],
        known: Mapping[str, dict[str, str | Column]],
        path: str,
    ) -> ColumnMap:
        fields = NODE_FIELDS if known is presets.NODES else POD_FIELDS
        return ColumnMap({**presets.preset(known, name), **columns}, fields, path)

    def _rows(
        self, file: str, columns: ColumnMap, name: str, read: Callable[[Mapping[str, str]], T]
    ) -> list[T]:
        """Return what the rows of a trace say; bad rows are noted with their line."""
        rows: list[T] = []
        first, line = True, 0
        for line, row in rows_of(file):
            _check_separator(file, row)
            if wrong := row.get(""):
                self.content.left_out.append(f"{file}:{line}: {wrong}")
                continue
            if first:
                columns.optional(presets.OPTIONAL.get(name, ()), row)
                missing = columns.missing(row)
                if missing:
                    raise UsageError(f"{file}: there is no column {', '.join(missing)}")
                first = False
            try:
                rows.append(read(row))
            except ValueError as problem:
                self.content.left_out.append(f"{file}:{line}: {problem}")
        if not line:
            raise UsageError(f"{file}: there are no rows below its heading")
        return rows


def _check_separator(file: str, row: Mapping[str, str]) -> None:
    """Refuse a file whose one column is several, between other separators than commas."""
    names = [each for each in row if each]
    name = names[0] if len(names) == 1 else ""
    used = next((each for each in _SEPARATORS if each in name), "")
    if used:
        raise UsageError(
            f"{file}: its heading is one column, {name!r}: write commas between the cells, "
            f"not {_SEPARATORS[used]}"
        )


def _without_repeated(coming: list[list[Coming]], left_out: list[str]) -> list[list[Coming]]:
    """Return the pods that come without those whose name came before; these are noted."""
    known: set[tuple[str, str, str]] = set()
    groups: list[list[Coming]] = []
    for index, pods in enumerate(coming):
        once: list[Coming] = []
        for pod in pods:
            key = _key(pod.manifest)
            if key[2] and key in known:
                left_out.append(f"pods[{index}]: {_twice(key)}")
                continue
            known.add(key)
            once.append(pod)
        groups.append(once)
    return groups


def _distinct(objects: list[Manifest], coming: list[Coming], left_out: list[str]) -> list[Manifest]:
    """Return the objects without those whose name came before.

    The same object twice is no fault: one dump may be given for the nodes and for the pods. Its
    pods without a node come, and are not there at the start.
    """
    known = {_key(each.manifest): each.manifest for each in coming}
    manifests: list[Manifest] = []
    for each in objects:
        key = _key(each)
        before = known.setdefault(key, each) if key[2] else each
        if before is each:
            manifests.append(each)
        elif before != each:
            left_out.append(_twice(key))
    return manifests


def _key(manifest: Manifest) -> tuple[str, str, str]:
    kind = str(manifest.get("kind") or "Pod")
    metadata = manifest.get("metadata") or {}
    resource = by_kind(kind, str(manifest.get("apiVersion") or "v1"))
    in_namespace = resource is None or resource.namespaced
    namespace = str(metadata.get("namespace") or "default") if in_namespace else ""
    return kind, namespace, str(metadata.get("name") or "")


def _twice(key: tuple[str, str, str]) -> str:
    kind, namespace, name = key
    full = f"{namespace}/{name}" if namespace else name
    return f"{kind[:1].lower()}{kind[1:]} {full} comes twice; give each its own name"


def manifests_of(file: str, *, text: bytes | None = None) -> list[Manifest]:
    """Return the objects of a file as plain values.

    Parameters
    ----------
    text
        Read instead of the file.

    Raises
    ------
    UsageError
        The file cannot be read, or is no text of objects.
    """
    manifests: list[Manifest] = []
    for item in items_of(_bytes(file) if text is None else text, file):
        value = decode_untyped(bytes(item))
        if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
            raise UsageError(f"{file}: an object without a kind")
        if not isinstance(value.get("metadata") or {}, dict):
            raise UsageError(f"{file}: {value['kind']}: metadata is no object")
        manifests.append(copy.copy(value))
    return manifests


def _bytes(file: str) -> bytes:
    try:
        data = read_file(Path(file), DATA_BYTES_MAX)
        return unpacked(data) if file.endswith(".gz") else data
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read {file}: {reason}") from error
