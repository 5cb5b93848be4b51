"""ImageLocality: prefer nodes that have the pod's images, the larger and rarer spread the better.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/imagelocality``.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import MAX_NODE_SCORE, Reads, ScoreArray
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import IMAGES
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

_MIB: Final = 1024 * 1024
_LEAST_BYTES: Final = 23 * _MIB
_MOST_BYTES_PER_CONTAINER: Final = 1000 * _MIB


class ImageLocality:
    """Score plugin; takes no arguments."""

    name = "ImageLocality"
    score_reads = Reads.NODE
    shape_parts = (IMAGES,)

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot

    def epoch(self, snapshot: Snapshot) -> int:
        """Return a number that changes whenever the answer for an unchanged row may change."""
        return snapshot.image_epoch

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score the bytes already present, weighted by how widely the image is spread."""
        del state
        images = pod.part(IMAGES).value
        total = self._present_bytes(images.names, view)
        if total is None:
            return np.zeros(len(view), np.int64)
        most = _MOST_BYTES_PER_CONTAINER * images.containers
        clamped = np.where(total < _LEAST_BYTES, _LEAST_BYTES, np.minimum(total, most))
        return MAX_NODE_SCORE * (clamped - _LEAST_BYTES) // (most - _LEAST_BYTES)

    def _present_bytes(self, names: tuple[str, ...], view: NodeView) -> ScoreArray | None:
        """Return int64, (rows,), weighted bytes; None when no node has any of the images."""
        snapshot = self._snapshot
        total: ScoreArray | None = None
        for name, uses in Counter(names).items():
            state = snapshot.image_state(name)
            if state is None:
                continue
            size_bytes, nodes = state
            # float64 in this order, then truncated for each use, as upstream computes it.
            share = int(float(size_bytes) * (float(nodes) / float(snapshot.num_nodes)))
            added = view.take(snapshot.image_presence(name)) * np.int64(share * uses)
            total = added if total is None else total + added
        return total
