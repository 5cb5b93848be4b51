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
    1000 (2-core machine, 2026-11-23). The first threshold bounds young collections to 2000 objects,
    the second one those of the middle generation to 12,000. What survives both is left alone until
    100 million objects have been added. With the former thresholds (10,000, 100, 100), a collection
    of the middle generation looked at all that 40,000 pods had left.

    An array of more than 128 KiB, a column of 16,384 nodes, goes back to the kernel when it is
    freed, until glibc has seen larger ones freed; the next array costs a page fault for each 4 KiB.
    A decision about a spread pod at 20,000 nodes had 185 page faults and took 690 us. With these
    limits it has one and takes 360 us (2026-11-23).
    """
    if collect:
        gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 5, 8_000)
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
