"""What each served kind knows about itself: defaults, rules, columns.

Place in the flow: the core of the server (`store`, `requests`) treats objects as plain dicts and
asks a kind from here to default, prepare, validate and tabulate them.
"""

from __future__ import annotations

from moorage.apiserver.kind import Kind
from moorage.apiserver.kinds import registry

__all__ = ["all_kinds"]


def all_kinds() -> list[Kind]:
    """Every kind the server serves, the kinds of `moorage.api.resources` first."""
    return list(registry.all_kinds())
