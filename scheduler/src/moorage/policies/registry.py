"""The kinds of this room: policies and their bindings, and configurations of webhooks."""

from __future__ import annotations

from moorage.kinds.served import ServedKind
from moorage.policies import admission_policy, webhooks

POLICY_KINDS: tuple[ServedKind, ...] = (*admission_policy.KINDS, *webhooks.KINDS)
"""To be given to `moorage.kinds.all_kinds`, because their rules compile expressions."""
