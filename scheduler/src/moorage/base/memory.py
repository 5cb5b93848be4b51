"""Settings of Python's garbage collector and of the C library for a process that lives long."""

from __future__ import annotations

import ctypes
import gc
from typing import Final

# Options of glibc's mallopt, and their values in bytes: the greatest that glibc takes by itself.
_TRIM_THRESHOLD: Final = (-1, 64 * 1024 * 1024)
_MMAP_THRESHOLD: Final = (-3, 32 * 1024 * 1024)


def settle_memory(*, collect: bool = True) -> None:
    """Keep the garbage collector off lasting objects; call this once the process is loaded.

    The present objects live as long as the process, so they are taken out of collection.
    Collections of older objects are made rarer. Freed arrays stay with the process, to be used
    again.

    Parameters
    ----------
    collect
        Whether to collect garbage first. The server process of a sandbox does not: that takes 50 to
        90 ms, and a client is waiting.

    Notes
    -----
    The time of a collection grows with the number of objects that it looks at: about 0.35 ms for
    1000 (2-core machine, 2026-11-23). A collection begins when 2000 more objects are there. Every
    second one looks at the middle generation, too, and thus at 4000 objects. What survives both is
    left alone until 32 million objects have been added (decision 61). Python 3.14.0 to 3.14.4 have
    another collector, which reads the thresholds otherwise.

    An array of more than 128 KiB, a column of 16,384 nodes, goes back to the kernel when it is
    freed, until glibc has seen larger ones freed; the next array costs a page fault for each 4 KiB.
    A decision about a spread pod at 20,000 nodes had 185 page faults and took 690 us. With these
    limits it has one and takes 360 us (2026-11-23).
    """
    if collect:
        gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 0, 8_000)
    _keep_freed_memory()


def unsettle_memory() -> None:
    """Let the garbage collector look at all objects again; the other settings stay."""
    gc.unfreeze()


def _keep_freed_memory() -> None:
    """Let glibc keep freed arrays; other C libraries have no such limits."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for option, size in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
        mallopt(option, size)
