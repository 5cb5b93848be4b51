"""Learned run times in a file, for the next scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from moorage.base.errors import UsageError
from moorage.base.files import FILE_BYTES_MAX, read_file
from moorage.estimates.run_time_book import RunTimeBook

_FORMAT: Final = "moorage.dev/run-times/v1"


class _File(msgspec.Struct, frozen=True):
    format: str
    classes: dict[str, dict[int, float]]


def load_run_times(path: Path, book: RunTimeBook) -> None:
    """Take over what a file says; a file that does not exist says nothing.

    Raises
    ------
    UsageError
        The file cannot be read, or is no such file.
    """
    try:
        content = read_file(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"startEstimates.file: cannot read {path}: {error.strerror}") from error
    try:
        file = msgspec.json.decode(content, type=_File)
    except msgspec.DecodeError as error:
        raise UsageError(f"startEstimates.file: {path} has no run times: {error}") from error
    if file.format != _FORMAT:
        raise UsageError(f"startEstimates.file: {path} has format {file.format}, not {_FORMAT}")
    book.load_bins(file.classes)


def run_times_text(book: RunTimeBook) -> bytes:
    """Return what a file has to say; the classes used last where it would be too large."""
    classes = book.as_bins()
    text = msgspec.json.encode(_File(_FORMAT, classes))
    while len(text) > FILE_BYTES_MAX:
        classes = dict(list(classes.items())[len(classes) // 2 :])
        text = msgspec.json.encode(_File(_FORMAT, classes))
    return text


def write_run_times(path: Path, text: bytes) -> None:
    """Write a file, whole or not at all.

    Raises
    ------
    OSError
        It cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(text)
    part.replace(path)
