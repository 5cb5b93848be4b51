"""Reads manifests: files, directories, standard input; YAML with several documents, or JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from moorage.api.yaml_text import read_yaml
from moorage.base.errors import DecodeError, UsageError
from moorage.base.files import DATA_BYTES_MAX, read_file, read_stream

Manifest: TypeAlias = dict[str, Any]
"""An object as plain JSON values, with apiVersion, kind and a name."""

_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def read_manifests(sources: Sequence[str], *, recursive: bool = False) -> list[Manifest]:
    """Read every object of files, directories and ``-`` (standard input), in order.

    Raises
    ------
    UsageError
        A file cannot be read or is not a manifest; the message names the document and the fault.
    """
    found: list[Manifest] = []
    for source in sources:
        if source == "-":
            found += parse_manifests(_standard_input(), "standard input")
            continue
        for path in _files(Path(source), recursive=recursive):
            try:
                text = read_file(path, DATA_BYTES_MAX)
            except OSError as error:
                raise UsageError(f"cannot read {path}: {error.strerror}") from error
            found += parse_manifests(text, str(path))
    if not found:
        raise UsageError(f"there are no objects in {', '.join(sources)}")
    return found


def _standard_input() -> bytes:
    try:
        return read_stream(sys.stdin.buffer, DATA_BYTES_MAX)
    except OSError as error:
        raise UsageError(f"cannot read standard input: {error.strerror}") from error


def parse_manifests(text: bytes, source: str) -> list[Manifest]:
    """Read every object of a text; the items of a List count one by one.

    Raises
    ------
    UsageError
        The text is neither YAML nor JSON, or holds values that are not Kubernetes objects.
    """
    try:
        documents = read_yaml(text)
    except DecodeError as error:
        raise UsageError(f"{source}: not YAML: {error}") from error
    found: list[Manifest] = []
    for number, document in enumerate(documents, start=1):
        if document is not None:
            found += _objects(document, f"{source}: document {number}")
    return found


def _objects(document: object, where: str) -> Iterator[Manifest]:
    if not isinstance(document, dict):
        raise UsageError(f"{where}: not a Kubernetes object but {_what(document)}")
    kind, version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or not kind:
        raise UsageError(f"{where}: no kind; every object needs apiVersion, kind and metadata")
    if not isinstance(version, str) or not version:
        raise UsageError(f"{where}: {kind} without apiVersion; a Pod has apiVersion: v1")
    if kind.endswith("List") and isinstance(document.get("items"), list):
        for number, item in enumerate(document["items"], start=1):
            yield from _objects(item, f"{where}, item {number}")
        return
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise UsageError(f"{where}: {kind} without metadata; it needs at least a name")
    yield document


def _files(path: Path, *, recursive: bool) -> Iterable[Path]:
    if not path.is_dir():
        if not path.exists():
            raise UsageError(
                f"there is no {path}; give a file, a directory, or - for standard input"
            )
        return [path]
    inside = sorted(path.rglob("*") if recursive else path.iterdir())
    files = [each for each in inside if each.suffix in _SUFFIXES and each.is_file()]
    if not files:
        raise UsageError(f"{path} holds no .yaml, .yml or .json files")
    return files


def _what(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    return f"{type(value).__name__} {str(value)[:40]!r}"
