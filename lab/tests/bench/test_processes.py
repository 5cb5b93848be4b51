"""Child processes: started, measured, watched and ended."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from moorage.base import aio
from moorage.base.errors import MoorageError
from moorage_lab.bench import processes
from moorage_lab.bench.processes import Child, free_port, wait_for

WRITES_AND_WAITS = """
import pathlib, sys, time
while time.process_time() < 0.1: pass  # some ticks of the clock that counts processor time
pathlib.Path(sys.argv[1]).write_text("here")
time.sleep(60)
"""
STUBBORN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).write_text("here")
time.sleep(60)
"""
# The grandchild ends with its parent: then nobody holds the other end of its input.
HAS_A_CHILD = """
import subprocess, sys
inner = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('x'); sys.stdin.read()"
subprocess.Popen([sys.executable, "-c", inner, sys.argv[1]], stdin=subprocess.PIPE).wait()
"""
TELLS_ITS_END = """
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path(sys.argv[1]).write_text("ended")
    raise SystemExit
signal.signal(signal.SIGTERM, end)
pathlib.Path(sys.argv[1]).write_text("here")
while True: time.sleep(0.05)
"""
PARENT = f"""
import asyncio, pathlib, sys
from moorage_lab.bench import processes
processes.COMMAND = {TELLS_ITS_END!r}
async def main():
    child = processes.Child("worker", sys.argv[1:2], log=pathlib.Path(sys.argv[2]))
    await child.start()
    await asyncio.sleep(60)
asyncio.run(main())
"""
HAS_PROC = Path("/proc/self/task").is_dir()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Lets a test say what a child runs instead of ``moorage``."""
    return monkeypatch


async def test_a_child_is_measured_and_ended(command: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command.setattr(processes, "COMMAND", WRITES_AND_WAITS)
    mark = tmp_path / "mark"
    child = Child("worker", [str(mark)], log=tmp_path / "log")
    await child.stop()  # never started: nothing to do
    await child.start()
    try:
        await wait_for(mark, child, seconds=30)
        child.raise_if_ended()
        if HAS_PROC:
            assert 1 < child.peak_memory_mib() < 1000
            assert 0.05 < child.processor_seconds() < 30
    finally:
        await child.stop()
    await child.stop()  # a second time: nothing to do
    with pytest.raises(MoorageError, match="worker ended with -15"):
        child.raise_if_ended()
    assert child.peak_memory_mib() == 0
    assert child.processor_seconds() == 0


async def test_a_child_that_will_not_end_is_killed(
    command: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command.setattr(processes, "COMMAND", STUBBORN)
    command.setattr(processes, "_END_SECONDS", 0.05)
    child = Child("worker", [str(tmp_path / "mark")], log=tmp_path / "log")
    await child.start()
    await wait_for(tmp_path / "mark", child, seconds=30)
    await child.stop()
    with pytest.raises(MoorageError, match="worker ended with -9"):
        child.raise_if_ended()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_child_ends_when_the_measurement_is_killed(
    number: signal.Signals, tmp_path: Path
) -> None:
    mark, log = tmp_path / "mark", tmp_path / "log"
    words = (sys.executable, "-c", PARENT, str(mark), str(log))
    parent = await asyncio.create_subprocess_exec(*words)
    try:
        await _reads(mark, "here")
    finally:
        parent.send_signal(number)
        await parent.wait()
    await _reads(mark, "ended")


async def _reads(path: Path, text: str) -> None:
    async with asyncio.timeout(30):
        while _text(path) != text:
            await aio.sleep(0.05)


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def test_the_last_words_of_a_child_that_broke_are_told(
    command: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command.setattr(processes, "COMMAND", "raise SystemExit('no such flag')")
    child = Child("worker", [], log=tmp_path / "log")
    await child.start()
    with pytest.raises(MoorageError, match="worker ended with 1:\nno such flag"):
        await wait_for(tmp_path / "mark", child, seconds=30)
    await child.stop()


async def test_a_child_that_never_writes_is_not_waited_for_for_ever(
    command: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command.setattr(processes, "COMMAND", "import time; time.sleep(60)")
    child = Child("worker", [], log=tmp_path / "log")
    await child.start()
    try:
        with pytest.raises(MoorageError, match=r"worker did not write .*mark within 0 s"):
            await wait_for(tmp_path / "mark", child, seconds=0.1)
    finally:
        await child.stop()


@pytest.mark.skipif(not HAS_PROC, reason="family is read from /proc")
async def test_grandchildren_count(command: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command.setattr(processes, "COMMAND", HAS_A_CHILD)
    child = Child("worker", [str(tmp_path / "mark")], log=tmp_path / "log")
    await child.start()
    try:
        await wait_for(tmp_path / "mark", child, seconds=30)
        family = list(child._tree())
        assert len(family) == 2
        assert os.getpid() not in family
    finally:
        await child.stop()
        await aio.sleep(0)


def test_a_free_port_is_one_that_no_outgoing_connection_gets() -> None:
    port = free_port()
    assert port < 32_768
    with socket.create_server(("127.0.0.1", port + 1)):
        assert free_port() != port + 1


def test_no_free_port_is_given_to_two_children() -> None:
    assert len({free_port() for _ in range(10)}) == 10
