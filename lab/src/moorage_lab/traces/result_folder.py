"""Finished runs in a folder, so that an interrupted experiment goes on where it was.

A run is known by everything that it is made of: inputs, configuration, the text of its plugins,
seed, and the version of moorage. A run that was finished with the same is not done again.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from moorage.base.errors import UsageError
from moorage.base.version import __version__
from moorage_lab.traces.inputs import Inputs
from moorage_lab.traces.run import RunResult
from moorage_lab.traces.variants import Variant


class ResultFolder:
    """The finished runs of a folder.

    Parameters
    ----------
    folder
        Made when the first run is kept.
    inputs
        The inputs of the runs.
    """

    def __init__(self, folder: Path, inputs: Inputs) -> None:
        self._folder = folder
        self._inputs = hashlib.sha256(msgspec.msgpack.encode(inputs)).digest()

    def find(self, variant: Variant, seed: int) -> RunResult | None:
        """Return a finished run; None if there is none, or its file cannot be read."""
        try:
            data = self._file(variant, seed).read_bytes()
            return msgspec.msgpack.decode(data, type=RunResult)
        except (OSError, msgspec.MsgspecError):
            return None

    def store(self, variant: Variant, result: RunResult) -> None:
        """Keep a finished run; a file is there whole, or not at all.

        Raises
        ------
        UsageError
            The folder cannot be written to.
        """
        file = self._file(variant, result.seed)
        begun = file.with_suffix(".part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            begun.write_bytes(msgspec.msgpack.encode(result))
            begun.replace(file)
        except OSError as error:
            raise UsageError(f"cannot write {file}: {error.strerror}") from error

    def _file(self, variant: Variant, seed: int) -> Path:
        made_of = hashlib.sha256(self._inputs)
        texts = [_text(each) for each in variant.plugins]
        made_of.update(msgspec.msgpack.encode([__version__, variant, texts, seed]))
        return self._folder / f"{made_of.hexdigest()[:32]}.run"


def _text(reference: str) -> bytes:
    """Return the text of a plugin's file; an installed plugin is known by its name only."""
    path = Path(reference.rpartition(":")[0])
    try:
        return path.read_bytes() if path.suffix == ".py" else b""
    except OSError:
        return b""
