"""The rules of each served kind: defaults, validation, columns.

Place in the flow: the core of the server (`store`, `requests`) treats objects as plain dicts. It
calls a kind of this package to default, prepare, validate and tabulate them.
"""

from __future__ import annotations

from moorage.apiserver.kinds import registry
from moorage.apiserver.kinds.served import ServedKind

__all__ = ["all_kinds"]


def all_kinds() -> list[ServedKind]:
    """Every kind the server serves, the kinds of `moorage.api.resources` first."""
    return list(registry.all_kinds())
