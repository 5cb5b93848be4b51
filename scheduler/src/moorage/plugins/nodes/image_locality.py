"""ImageLocality: prefers nodes that have the pod's images; large, widespread images count most.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/imagelocality``.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
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

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot

    def capabilities(self) -> Capabilities:
        """Declare that scores depend on the node, and on totals whose changes `epoch` reports."""
        return Capabilities(score_reads=Reads.NODE, shape_parts=(IMAGES,), epoch=self.epoch)

    def epoch(self, snapshot: Snapshot) -> int:
        """Return a number that changes whenever the answer for an unchanged row may change."""
        return snapshot.image_epoch

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score the bytes of images on each node, weighted by the share of nodes with the image."""
        del state
        images = pod.part(IMAGES).value
        known = self._known_images(images.names)
        if not known:
            return np.zeros(len(view), np.int64)
        most = _MOST_BYTES_PER_CONTAINER * images.containers
        if len(known) == 1:  # a row has the image or not: one score to compute
            presence, weighted_bytes = known[0]
            counted = max(_LEAST_BYTES, min(int(weighted_bytes), most)) - _LEAST_BYTES
            found = view.take_rows(presence).astype(np.int64)
            found *= MAX_NODE_SCORE * counted // (most - _LEAST_BYTES)
            return found
        total = np.zeros(len(view), np.int64)
        for presence, weighted_bytes in known:
            total += view.take_rows(presence) * weighted_bytes
        return _score(total, most)

    def _known_images(self, names: tuple[str, ...]) -> list[tuple[NDArray[np.bool_], np.int64]]:
        """Return for each known image the rows that have it, bool (n,), and its weighted bytes."""
        snapshot = self._snapshot
        images = []
        for name, uses in Counter(names).items():
            state = snapshot.image_state(name)
            if state is None:
                continue
            size_bytes, nodes = state
            # float64 in this order, then truncated for each use, as upstream computes.
            share = int(float(size_bytes) * (float(nodes) / float(snapshot.num_nodes)))
            images.append((snapshot.image_presence(name), np.int64(share * uses)))
        return images


def _score(total_bytes: ScoreArray, most: int) -> ScoreArray:
    """Return scores of 0 to 100 for weighted bytes, clipped to two bounds."""
    clamped = np.where(total_bytes < _LEAST_BYTES, _LEAST_BYTES, np.minimum(total_bytes, most))
    return MAX_NODE_SCORE * (clamped - _LEAST_BYTES) // (most - _LEAST_BYTES)
