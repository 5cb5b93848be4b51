"""Every kind that the API server serves.

The kinds of `moorage.kinds`, and those whose rules compile expressions: definitions of custom
resources, admission policies, and configurations of webhooks.
"""

from __future__ import annotations

from moorage.apiserver.custom import definition
from moorage.apiserver.policies import admission_policy, extending
from moorage.kinds import all_kinds, registry
from moorage.kinds.served import ServedKind

_MORE: tuple[ServedKind, ...] = (*admission_policy.KINDS, *definition.KINDS, *extending.KINDS)
GROUPS: tuple[tuple[ServedKind, ...], ...] = (*registry.GROUPS, _MORE)


def served_kinds() -> list[ServedKind]:
    """Every served kind, in the order of `moorage.kinds.built_in.stored_resources`."""
    return all_kinds(*_MORE)
