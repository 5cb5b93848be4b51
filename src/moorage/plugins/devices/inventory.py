"""Every slice of the cluster, parsed once and indexed by node and by pool.

Lives as long as the plugin: told of each slice that changes, asked in each cycle.
"""

from __future__ import annotations

from collections.abc import Iterable

from moorage.api.devices import ResourceSlice


class Inventory:
    """The slices the allocator chooses from, by name.

    Parameters
    ----------
    slices
        Put at once, as by `put`.
    """

    def __init__(self, slices: Iterable[ResourceSlice] = ()) -> None:
        raise NotImplementedError("the allocator's inventory is not built yet")

    def put(self, slice_: ResourceSlice) -> None:
        """Add a slice, or replace the one of this name."""
        raise NotImplementedError("the allocator's inventory is not built yet")

    def remove(self, name: str) -> None:
        """Forget a slice; one that is not there is no error."""
        raise NotImplementedError("the allocator's inventory is not built yet")
