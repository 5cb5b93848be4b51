"""Every kind that the API server serves.

The kinds of `moorage.kinds`, those of `moorage.policies`, and definitions of custom resources,
whose rules compile expressions.
"""

from __future__ import annotations

from moorage.kinds import all_kinds, registry
from moorage.kinds.served import ServedKind
from moorage.policies.registry import POLICY_KINDS
from moorage_sandbox.apiserver.custom import definition

_MORE: tuple[ServedKind, ...] = (*POLICY_KINDS, *definition.KINDS)
GROUPS: tuple[tuple[ServedKind, ...], ...] = (*registry.GROUPS, _MORE)


def served_kinds(*, of_1_37: bool = False) -> list[ServedKind]:
    """Every served kind, in the order of `moorage.kinds.built_in.stored_resources`.

    Parameters
    ----------
    of_1_37
        Whether the server plays 1.37, which has versions of kinds that 1.36 lacks.
    """
    return all_kinds(*_MORE, of_1_37=of_1_37)
