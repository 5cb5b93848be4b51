"""Why a pod group waits, of the texts of its members, and rows whose members say so; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from moorage.api.reasons.codes import ReasonCode, code_of_message
from moorage.engine.groups.decision import GROUP_UNSCHEDULABLE
from moorage.service.questions.folding.folds import Fold

_OF_GROUPS: Final = frozenset(
    {
        ReasonCode.GROUP_MISSING,
        ReasonCode.GROUP_INVALID,
        ReasonCode.GROUP_INCOMPLETE,
        ReasonCode.GROUP_UNSCHEDULABLE,
        ReasonCode.WAITING_FOR_GROUP,
    }
)
"""The codes of reasons that concern a group as a whole."""

_WITHOUT_CAUSE: Final = (ReasonCode.GROUP_UNSCHEDULABLE, ReasonCode.WAITING_FOR_GROUP)
"""The codes of members that were turned away with their group, or wait for other members."""

_MEMBER_WITHOUT_NODE: Final = re.compile(
    r"\d+ of \d+ pods needed have a node[^:]* ha(?:s|ve) none: (.+)", re.DOTALL
)
"""The text of `moorage.service.binding.permit_reasons`: how many members have a node, and why."""


def concerns_group(code: str, text: str) -> bool:
    """Whether a reason that `reason_of_group` returned concerns the group as a whole."""
    return code in _OF_GROUPS or _MEMBER_WITHOUT_NODE.match(text) is not None


def reason_of_group(texts: Iterable[str]) -> tuple[str, str]:
    """Return the code and the text of why a group waits; twice "" for one that was not tried.

    A text about the group with its cause says most. Next come the texts of members that have no
    place for a cause of their own. A member that was turned away with its group, or was not tried
    because its group failed a moment ago, says least. Of texts that say as much, the most frequent
    one counts.

    Parameters
    ----------
    texts
        Why the last attempt of each member failed; "" for a member that was not tried.
    """
    counts = Counter(map(_about_group, filter(None, texts)))
    text = max(counts, key=lambda each: (_rank(each), counts[each]), default="")
    if not text:
        return "", ""
    member = _MEMBER_WITHOUT_NODE.match(text)
    return (
        code_of_message(text if member is None else member[1]),
        text.removeprefix(f"{GROUP_UNSCHEDULABLE}: "),
    )


def _about_group(text: str) -> str:
    """Return the part of a text that names the member without a node; else the whole text."""
    if text.startswith(GROUP_UNSCHEDULABLE):
        return text
    note = _MEMBER_WITHOUT_NODE.search(text)
    return text if note is None else note[0]


def _rank(text: str) -> int:
    """Return how much a text says about why the group waits; more is better."""
    if text.startswith(GROUP_UNSCHEDULABLE):
        return 3
    if _MEMBER_WITHOUT_NODE.match(text):
        return 2
    return int(code_of_message(text) not in _WITHOUT_CAUSE)


def with_group_reasons(rows: Iterable[Fold]) -> list[Fold]:
    """Return rows of pods; members of a group wait for the reason for which their group waits.

    Members with scheduling gates keep their own reason, and so do members of a group that does not
    wait as a whole.
    """
    rows, texts = list(rows), dict[str, list[str]]()
    for row in rows:
        if row.group and row.reason != ReasonCode.SCHEDULING_GATED:
            texts.setdefault(row.group, []).append(row.message)
    of_groups = {group: reason_of_group(each) for group, each in texts.items()}
    for at, row in enumerate(rows):
        reason, message = of_groups.get(row.group, ("", ""))
        if concerns_group(reason, message) and row.reason != ReasonCode.SCHEDULING_GATED:
            rows[at] = msgspec.structs.replace(row, reason=reason, message=message)
    return rows
