"""Reads manifests of files, directories and standard input, in the forms of `manifest_text`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from moorage.api.manifest_text import parse_manifests
from moorage.base.errors import UsageError
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
    manifests: list[Manifest] = []
    for source in sources:
        if source == "-":
            manifests += parse_manifests(_standard_input(), "standard input")
            continue
        for path in _files(Path(source), recursive=recursive):
            try:
                text = read_file(path, DATA_BYTES_MAX)
            except OSError as error:
                raise UsageError(f"cannot read {path}: {error.strerror}") from error
            manifests += parse_manifests(text, str(path))
    if not manifests:
        raise UsageError(f"there are no objects in {', '.join(sources)}")
    return manifests


def _standard_input() -> bytes:
    try:
        return read_stream(sys.stdin.buffer, DATA_BYTES_MAX)
    except OSError as error:
        raise UsageError(f"cannot read standard input: {error.strerror}") from error


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
