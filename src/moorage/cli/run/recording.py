"""The records of attempts of a run: kept in memory, and written to a file where one is named."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.observe.records.file import RecordFile
from moorage.observe.records.recorder import Recorder

_FLUSH_SECONDS: Final = 1.0


class Recording:
    """Keeps records as the options say.

    Parameters
    ----------
    clock
        The time of the records.
    bytes_max
        Memory of the records; 0 keeps none.
    path
        The file; None writes none.

    Attributes
    ----------
    recorder
        Keeps the records; None where none are kept.

    Raises
    ------
    UsageError
        The file cannot be written.
    """

    def __init__(self, clock: Clock, *, bytes_max: int, path: Path | None) -> None:
        self._path = path
        self._file = None if path is None else RecordFile(path)
        self.recorder: Recorder | None = None
        if bytes_max or self._file is not None:
            on_end = None if self._file is None else self._file.put
            self.recorder = Recorder(clock, bytes_max=bytes_max, on_end=on_end)

    async def run(self) -> None:
        """Write to the file once a second, and once more at the end."""
        if self._file is None:
            return
        try:
            while True:
                await aio.sleep(_FLUSH_SECONDS)
                self._file.flush()
        finally:
            self._file.flush()

    @property
    def text(self) -> str:
        """The bound, and the file, in words."""
        if self.recorder is None:
            return "none"
        file = "" if self._path is None else f", written to {self._path}"
        return f"at most {self.recorder.ring.bytes_max / 2**20:g} MiB{file}"
