"""Files that a person names are read up to a bound, whatever is behind the path."""

from __future__ import annotations

import contextlib
import gzip
import os
import threading
from pathlib import Path

import pytest

from moorage.base.files import read_file, unpacked

MIB = 1024 * 1024


def test_a_file_of_the_bound_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * MIB)
    assert read_file(file, MIB) == b"x" * MIB


def test_a_larger_file_is_an_error_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (MIB + 1))
    with pytest.raises(OSError, match="it is larger than 1 MiB"):
        read_file(file, MIB)


def test_a_device_without_an_end(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/zero")
    with pytest.raises(OSError, match="it is larger than 1 MiB"):
        read_file(link, MIB)


def test_a_pipe_without_an_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def fill() -> None:
        with contextlib.suppress(BrokenPipeError), pipe.open("wb", buffering=0) as opened:
            while True:
                opened.write(b"x" * MIB)

    filling = threading.Thread(target=fill)
    filling.start()
    with pytest.raises(OSError, match="it is larger than 1 MiB"):
        read_file(pipe, MIB)
    filling.join(20)
    assert not filling.is_alive()


def test_a_small_file_that_unpacks_to_a_large_one() -> None:
    packed = gzip.compress(b"x" * 20 * MIB)
    assert len(packed) < MIB
    with pytest.raises(OSError, match="it is larger than 1 MiB"):
        unpacked(packed, MIB)
