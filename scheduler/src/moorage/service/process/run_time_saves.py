"""Writes learned run times to their file now and then, and at the end."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from moorage.base import aio
from moorage.estimates.run_time_file import run_times_text, write_run_times
from moorage.estimates.start_observer import StartObserver

_log = logging.getLogger(__name__)

_SAVE_SECONDS: Final = 60.0
"""A guess: so much of what was learned is lost by a crash."""


async def save_run_times(observer: StartObserver) -> None:
    """Write whenever something was learned, until cancelled; then once more."""
    version, path = observer.book.version, observer.file
    assert path is not None, "only run times with a file are written"
    try:
        while True:
            await aio.sleep(_SAVE_SECONDS)
            if observer.book.version != version:
                version = observer.book.version
                _save(path, run_times_text(observer.book))
    finally:
        if observer.book.version != version:
            _save(path, run_times_text(observer.book))


def _save(path: Path, text: bytes) -> None:
    try:
        write_run_times(path, text)
    except OSError as error:
        _log.error("run times cannot be written to %s: %s", path, error.strerror)
