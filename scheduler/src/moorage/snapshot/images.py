"""The container images on each node, and the number of nodes that have each image.

Mirrors the image states of kubernetes v1.36 ``pkg/scheduler/backend/cache``: the size of an image
is the first size seen since the name became known. Counts are live (upstream's copies may lag until
a node's own row is refreshed).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.snapshot.columns import Columns

ImageSizes = Mapping[str, int]


def image_sizes(node: Node) -> dict[str, int]:
    """Return the size in bytes of every image name of a node; the first size counts."""
    sizes: dict[str, int] = {}
    for image in node.status.images:
        for name in image.names or ():
            sizes.setdefault(name, image.size_bytes)
    return sizes


class Images:
    """Image presence by row: a column for each requested name that at least one node has."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._states: dict[str, tuple[int, int]] = {}
        self._tracked_names: set[str] = set()
        self.epoch = 0
        """Rises whenever an image's presence, size or node count may have changed."""

    def state(self, name: str) -> tuple[int, int] | None:
        """Return (size in bytes, number of nodes with the image); None when no node has it."""
        return self._states.get(name)

    def presence(self, name: str, sizes_by_row: Sequence[ImageSizes]) -> NDArray[np.bool_]:
        """Return bool, (n,): whether each node has the image; read-only."""
        if name not in self._tracked_names:
            self._tracked_names.add(name)
            array = self._columns.ensure(("image", name))
            for row, sizes in enumerate(sizes_by_row):
                array[row] = name in sizes
        return self._columns.view(("image", name))

    def replace(self, row: int, old: ImageSizes, new: ImageSizes) -> None:
        """Note that a row's images changed from `old` to `new`."""
        if old == new:
            return
        self.epoch += 1
        for name in old:
            size, nodes = self._states[name]
            if nodes == 1:
                del self._states[name]
            else:
                self._states[name] = (size, nodes - 1)
        for name, size in new.items():
            first_size, nodes = self._states.get(name, (size, 0))
            self._states[name] = (first_size, nodes + 1)
        for name in self._tracked_names.intersection({*old, *new}):
            if name in self._states:
                self._columns.ensure(("image", name))[row] = name in new
            else:  # on no node any more: roll-outs always ask for new tags
                self._tracked_names.remove(name)
                self._columns.drop(("image", name))
