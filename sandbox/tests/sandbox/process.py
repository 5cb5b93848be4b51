"""A real ``moorage up`` as a child of the test, and what can be asked of it."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil  # type: ignore[import-untyped]

START_SECONDS_MAX = 60


class Up:
    """A running sandbox in a directory of its own.

    Use as a context: whatever happens, nothing is left behind.
    """

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        python: str = sys.executable,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.command = [python, "-m", "moorage.cli.main", "up"]
        self.env = env
        self.kubeconfig = directory / ".moorage" / "kubeconfig"
        self.arguments = arguments
        self.output: list[str] = []
        self.family: list[psutil.Process] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [*self.command, *self.arguments],
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._note_family()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        for left in alive(self.family):
            left.kill()
        self._reader.join(timeout=5)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def until(self, text: str) -> str:
        """Read output until a line contains the text; return that line."""
        end = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"no {text!r} in:\n" + "\n".join(self.output))
            self.output.append(line)
            if text in line:
                self._note_family()
                return line

    def started(self) -> Up:
        """Wait until everything runs."""
        self.until("kubectl get nodes")
        return self

    def note_family_of(self, count: int) -> None:
        """Wait until it has this many children."""
        end = time.monotonic() + START_SECONDS_MAX
        while len(self.family) < count:
            assert time.monotonic() < end, f"{len(self.family)} children, not {count}"
            self._note_family()

    def member(self, word: str) -> psutil.Process:
        """Return the child that has this word in its command line, waiting for it."""
        end = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < end:
            self._note_family()
            # Just after it was forked, a child still shows the command line of its parent.
            found = [each for each in self.family if each.is_running() and word in each.cmdline()]
            if len(found) == 1:
                return found[0]
        raise AssertionError(f"no child with {word} in its command line")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal; return the exit code. A clean end takes a second on an idle machine."""
        self._note_family()
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait until it ends by itself; return the exit code."""
        code = self.process.wait(timeout=60)
        self._take_rest()
        return code

    def _take_rest(self) -> None:
        while (line := self._lines.get(timeout=5)) is not None:
            self.output.append(line)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _note_family(self) -> None:
        try:
            found = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return
        self.family += [each for each in found if each not in self.family]


def alive(processes: Sequence[psutil.Process], *, within: float = 0.0) -> list[psutil.Process]:
    """Return the processes still there after some seconds.

    One that has ended and is only not reaped yet, by a parent that is busy, is not there any more.
    """
    _, left = psutil.wait_procs(processes, timeout=within)
    return [process for process in left if not _ended(process)]


def _ended(process: psutil.Process) -> bool:
    try:
        return process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True
