"""The empty set of names, made once: CPython makes each empty frozenset anew, with 216 bytes."""

from __future__ import annotations

from typing import Final

NO_NAMES: Final[frozenset[str]] = frozenset()
"""No name."""
