"""Time that can be stopped and stepped, shared by every process that maps the same file.

Place in the flow: the server of a sandbox is told when time shall run, and writes it here; the
clocks and loops of all its processes read it. The file holds one linear relation: the machine's and
the cluster's moment of its start, its speed, and its end.
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path

import msgspec

from moorage.base.clock import NS_PER_SECOND, SystemClock

# The number of the relation, before and after the relation: the two differ during a write.
_LINE = struct.Struct("=QqqdqQ")
_NO_END = 2**63 - 1
_MACHINE = SystemClock()


class TimeState(msgspec.Struct, frozen=True):
    """The state of a timeline.

    Parameters
    ----------
    now_ns
        The cluster's time, nanoseconds since the Unix epoch.
    speed
        Cluster seconds in one second of the machine; 0 while time is stopped.
    end_ns
        When time will stop; None when it does not stop.
    """

    now_ns: int
    speed: float
    end_ns: int | None


class Timeline:
    """A cluster's clock with a time that may be changed while it runs.

    Parameters
    ----------
    path
        The file that `create_file` made.
    """

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _LINE.size)
        self._own: tuple[int, int] | None = None

    @classmethod
    def create_file(cls, path: Path, now_ns: int) -> Timeline:
        """Make the file; time begins at a moment and runs at the machine's speed."""
        path.write_bytes(_LINE.pack(0, _MACHINE.monotonic_ns(), now_ns, 1.0, _NO_END, 0))
        return cls(path)

    def now_ns(self) -> int:
        """Wall-clock time of the cluster, nanoseconds since the Unix epoch."""
        if self._own is not None:
            real_ns, cluster_ns = self._own
            return cluster_ns + _MACHINE.monotonic_ns() - real_ns
        real_ns, cluster_ns, speed, end_ns = self._read()
        return min(cluster_ns + round((_MACHINE.monotonic_ns() - real_ns) * speed), end_ns)

    def monotonic_ns(self) -> int:
        """Time for durations and deadlines: wall-clock time, which never runs backwards here."""
        return self.now_ns()

    def state(self) -> TimeState:
        """Return the present time, its speed and its end."""
        _, _, speed, end_ns = self._read()
        now_ns = self.now_ns()
        if speed == 0 or now_ns >= end_ns:
            return TimeState(now_ns, 0.0, None)
        return TimeState(now_ns, speed, None if end_ns == _NO_END else end_ns)

    def run(self, speed: float) -> None:
        """Let time run at a speed; 0 stops it."""
        self._write_line(speed, _NO_END)

    def advance_for(self, seconds: float, speed: float) -> None:
        """Let this many seconds pass at a speed, then stop."""
        self._write_line(speed, self.now_ns() + round(seconds * NS_PER_SECOND))

    def let_go(self) -> None:
        """Let time run at the machine's speed, only in this process, so that it can end."""
        self._own = (_MACHINE.monotonic_ns(), self.now_ns())

    def real_seconds(self, seconds: float) -> float:
        """Return how long seconds of the cluster will take, infinite while time is stopped."""
        speed = 1.0 if self._own is not None else self.state().speed
        return seconds / speed if speed else math.inf

    def _read(self) -> tuple[int, int, float, int]:
        while True:
            before, real_ns, cluster_ns, speed, end_ns, after = _LINE.unpack(self._memory[:])
            if before == after:
                return real_ns, cluster_ns, speed, end_ns

    def _write_line(self, speed: float, end_ns: int) -> None:
        now_ns = self.now_ns()
        number = _LINE.unpack(self._memory[:])[0] + 1
        line = _LINE.pack(number, _MACHINE.monotonic_ns(), now_ns, speed, end_ns, number)
        # Piece by piece, the numbers first and last: a reader in between sees two different
        # numbers.
        self._memory[:8] = line[:8]
        self._memory[8:] = line[8:]
