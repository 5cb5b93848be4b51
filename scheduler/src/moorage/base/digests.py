"""Digests: what shows that two runs came to the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest(placements: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 over (pod, node) pairs in the order given."""
    summed = hashlib.sha256()
    for pod, node in placements:
        summed.update(f"{pod}\t{node}\n".encode())
    return summed.hexdigest()
