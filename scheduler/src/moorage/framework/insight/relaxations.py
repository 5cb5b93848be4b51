"""Relaxations: changes of a pod that ask less of a plugin, for explanations."""

from __future__ import annotations

import msgspec

from moorage.api.patch_operations import Operation


class Relaxation(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a pod with which a plugin may let the pod on more nodes.

    Parameters
    ----------
    kind
        A word for the kind of change, such as ``gpu``.
    text
        The change as a sentence without a subject: "ask for 2 GPUs instead of 4".
    patch
        Operations of RFC 6902 on the pod.
    given_up
        The share of the demand that is given up, from 0 to 1; None where a rule is dropped.
    """

    kind: str
    text: str
    patch: tuple[Operation, ...]
    given_up: float | None = None


Ladder = tuple[Relaxation, ...]
"""Relaxations of one demand, the least change first. Each lets the pod on every node on which the
one before lets it."""
