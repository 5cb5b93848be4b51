"""The records of attempts of a run: kept in memory, and written to a file where one is named."""

from __future__ import annotations

from typing import Final

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.cli.run.scheduler_options import SchedulerOptions
from moorage.cli.run.tracing import SentTraces
from moorage.config.own import Tracing
from moorage.observe.records.file import RecordFile
from moorage.observe.records.recorder import Recorder

_FLUSH_SECONDS: Final = 1.0


class Recording:
    """Keeps records as the options say.

    Parameters
    ----------
    options
        The memory of the records, and the file.
    tracing
        The settings of traces, which are made from records; None for no traces.
    clock
        The time of the records.

    Attributes
    ----------
    recorder
        Keeps the records; None where none are kept.
    sent
        Sends the spans of traces, within its context.

    Raises
    ------
    UsageError
        The file cannot be written, or the extra for traces is not installed.
    """

    def __init__(self, options: SchedulerOptions, tracing: Tracing | None, clock: Clock) -> None:
        self._path = path = options.record
        self.sent = SentTraces(tracing, clock)
        traces, bytes_max = self.sent.traces, options.records_bytes
        self._file = None if path is None else RecordFile(path)
        self.recorder: Recorder | None = None
        if bytes_max or self._file is not None or traces is not None:
            on_end = None if self._file is None else self._file.add_record
            self.recorder = Recorder(clock, bytes_max=bytes_max, on_end=on_end, traces=traces)

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
    def description(self) -> str:
        """The bound, and the file, in words."""
        if self.recorder is None:
            return "none"
        file = "" if self._path is None else f", written to {self._path}"
        return f"at most {self.recorder.ring.bytes_max / 2**20:g} MiB{file}"
