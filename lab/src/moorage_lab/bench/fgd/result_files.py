"""Finished experiments in a folder, so that an interrupted command goes on where it was.

An experiment is known by its nodes, pods, policy and seed, and by the version of moorage.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import msgspec

from moorage.base.errors import UsageError
from moorage.base.version import __version__
from moorage_lab.bench.fgd.experiment import Run, Trace


class _File(msgspec.Struct, frozen=True):
    """The content of one file; `inputs` is the digest of what the run was made of."""

    inputs: str
    run: Run


_FORM: Final = msgspec.json.Decoder(_File)


def read_result(folder: Path, trace: Trace, policy: str, seed: int) -> Run | None:
    """Return a finished experiment; None if there is none, or it had other inputs."""
    try:
        file = _FORM.decode(_path(folder, trace.name, policy, seed).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None
    return file.run if file.inputs == inputs_of(trace) else None


def write_result(folder: Path, trace: Trace, run: Run) -> None:
    """Write a finished experiment; a file is there whole, or not at all.

    Raises
    ------
    UsageError
        The folder cannot be written to.
    """
    path = _path(folder, run.trace, run.policy, run.seed)
    begun = path.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        begun.write_bytes(msgspec.json.encode(_File(inputs_of(trace), run)))
        begun.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def inputs_of(trace: Trace) -> str:
    """Return the digest of the nodes and pods of a trace, and of the version of moorage."""
    return hashlib.sha256(msgspec.json.encode([__version__, trace.nodes, trace.pods])).hexdigest()


def _path(folder: Path, trace: str, policy: str, seed: int) -> Path:
    return folder / f"{trace}-{policy}-{seed}.json"
