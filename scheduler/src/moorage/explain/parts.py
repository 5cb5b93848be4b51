"""The parts of a pod that are at fault: the plugin is asked again about each part by itself.

A plugin rejects a node because of one of several ports, constraints, terms or expressions. Only
parts that are at fault on some node are named, each with the number of these nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.engine.inquiry import BoolArray
from moorage.explain.rejections import Rejection

T = TypeVar("T")

_PARTS_MOST: Final = 16
"""Parts that are asked about one by one, at most; a guess."""


def parts_at_fault(
    rejection: Rejection,
    parts: Sequence[T],
    pod_with: Callable[[Sequence[T]], Pod],
    *,
    because: str = "",
) -> list[tuple[T, BoolArray]]:
    """Return the parts because of which a plugin rejects some rows.

    Parameters
    ----------
    rejection
        The rejection.
    parts
        All parts that the plugin compares.
    pod_with
        Returns the pod with some of these parts alone.
    because
        Text of the reason that is about these parts; "" for every reason.

    Returns
    -------
    list of tuple
        (part, bool, (rows,): where it is at fault), in the order of the pod.

    Notes
    -----
    A part is at fault where the plugin rejects the pod with this part alone. On a row that no part
    alone explains, it is at fault where the pod without this part passes; else all parts are.
    """
    failed_n = rejection.failed(pod_with(parts), because=because)
    if not failed_n.any():
        return []
    if not 1 < len(parts) <= _PARTS_MOST:
        return [(part, failed_n) for part in parts]
    masks = [rejection.failed(pod_with([part]), because=because) for part in parts]
    left_n = failed_n & ~np.logical_or.reduce(masks)
    if left_n.any():
        masks = _together(rejection, parts, pod_with, (masks, left_n, because))
    return [(part, mask_n) for part, mask_n in zip(parts, masks, strict=True) if mask_n.any()]


def _together(
    rejection: Rejection,
    parts: Sequence[T],
    pod_with: Callable[[Sequence[T]], Pod],
    masks_left_because: tuple[list[BoolArray], BoolArray, str],
) -> list[BoolArray]:
    """Add the parts that only together are at fault on the rows that are left."""
    masks, left_n, because = masks_left_because
    cures = []
    for index in range(len(parts)):
        others = [*parts[:index], *parts[index + 1 :]]
        cures.append(left_n & ~rejection.failed(pod_with(others), because=because))
    uncured_n = left_n & ~np.logical_or.reduce(cures)
    return [mask_n | cure_n | uncured_n for mask_n, cure_n in zip(masks, cures, strict=True)]


def with_spec(pod: Pod, **fields: object) -> Pod:
    """Return a pod with other fields of its spec."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))
