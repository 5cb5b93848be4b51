"""Amounts of resources as text for people."""

from __future__ import annotations

from typing import Final

_NANO: Final = 10**9
_GIB: Final = _NANO * 2**30
_BYTES: Final = ("memory", "ephemeral-storage")


def amount(resource: str, nano: int) -> str:
    """Return an amount for people: memory in GiB, other resources in their own unit."""
    if resource in _BYTES:
        return f"{nano / _GIB:.1f}Gi"
    return f"{nano / _NANO:.2f}".rstrip("0").rstrip(".")


def percent(used: int, allocatable: int) -> str:
    """Return the used share; ``-`` where there is nothing to use."""
    return f"{100 * used // allocatable}%" if allocatable else "-"
