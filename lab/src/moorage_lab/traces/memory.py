"""Memory of a process that does one run after another."""

from __future__ import annotations

import gc
from typing import Final

from moorage.snapshot.pod_info import forget_shared_parts

_PODS_FEW: Final = 1000  # pods of a run that may wait for Python's own collection: 4 MB; a guess


def forget_clusters(pods: int) -> None:
    """Free the clusters in memory that the caller has dropped.

    Parameters
    ----------
    pods
        Number of pods of the last of them.

    Notes
    -----
    Equal parts of pods are shared, also by pods of different clusters, and remember what plugins
    compiled from them. A pod of any cluster so keeps plugins of other clusters alive, and the
    plugins keep their clusters alive. Such a pod may be one of the recently used pods: a process
    had 1.3 GB after 45 runs of 10800 pods on 1213 nodes. It may also be a pod of a scheduler in
    the same process, whose objects Python's collector does not look at.
    """
    forget_shared_parts()
    if pods >= _PODS_FEW:
        gc.collect()
