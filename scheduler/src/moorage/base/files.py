"""Reading files that a person names: never without end.

A path may lead to a device, to a pipe, or to something that grows faster than it is read. So each
read has a bound, and a file beyond it is an `OSError` like any other file that cannot be read.
"""

from __future__ import annotations

import errno
import gzip
import io
from pathlib import Path
from typing import BinaryIO, Final

_MIB: Final = 1024 * 1024
FILE_BYTES_MAX: Final = 16 * _MIB
"""Largest file of settings or credentials; a kubeconfig of 1,000 clusters has 8 MB."""
DATA_BYTES_MAX: Final = 1024 * _MIB
"""Largest file of objects or of recorded pods; 150,000 pods have 420 MB."""


def read_file(path: Path, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """Return the content of a file.

    Raises
    ------
    OSError
        The file cannot be read, or is larger than the bound.
    """
    with path.open("rb") as opened:
        return read_stream(opened, bytes_max)


def read_stream(stream: BinaryIO, bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """Return what comes from a stream until its end.

    Raises
    ------
    OSError
        More than the bound came.
    """
    content = stream.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise OSError(errno.EFBIG, f"it is larger than {bytes_max // _MIB} MiB")
    return content


def unpacked(content: bytes, bytes_max: int = DATA_BYTES_MAX) -> bytes:
    """Return what a gzip file holds.

    Raises
    ------
    OSError, EOFError, zlib.error
        It is no gzip file, or holds more than the bound.
    """
    with gzip.open(io.BytesIO(content)) as opened:
        return read_stream(opened, bytes_max)  # type: ignore[arg-type]
