"""Why a pod group waits, of the texts of its members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from moorage.api.reasons.codes import ReasonCode, code_of_message
from moorage.engine.groups.decision import GROUP_UNSCHEDULABLE

OF_GROUPS: Final = frozenset(
    {
        ReasonCode.GROUP_MISSING,
        ReasonCode.GROUP_INVALID,
        ReasonCode.GROUP_INCOMPLETE,
        ReasonCode.GROUP_UNSCHEDULABLE,
        ReasonCode.WAITING_FOR_GROUP,
    }
)
"""The codes of reasons that concern a group as a whole."""


def reason_of_group(texts: Iterable[str]) -> tuple[str, str]:
    """Return the code and the text of why a group waits; twice "" for one that was not tried.

    Members that had a place say why the group has none. The others say why they have none
    themselves, which says less; most of them count.

    Parameters
    ----------
    texts
        Why the last attempt of each member failed; "" for a member that was not tried.
    """
    counts = Counter(filter(None, texts))
    of_group = (text for text in counts if text.startswith(GROUP_UNSCHEDULABLE))
    text = next(of_group, max(counts, key=counts.__getitem__, default=""))
    if not text:
        return "", ""
    return code_of_message(text), text.removeprefix(f"{GROUP_UNSCHEDULABLE}: ")
