"""How often Python's garbage collector runs in a scheduler."""

from __future__ import annotations

import gc


def settle_memory() -> None:
    """Keep the garbage collector off lasting objects; call this once the cluster is loaded.

    The objects of the first lists live as long as the process, so they are taken out of
    collection. Collections of older objects are made rarer. With Python's own thresholds the
    longest decision at 5000 nodes and 10000 pods took 60 ms, a full collection. With these
    thresholds it took 5 to 7 ms, at the same throughput. Young collections of 50000 objects took up
    to 28 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 100, 100)
