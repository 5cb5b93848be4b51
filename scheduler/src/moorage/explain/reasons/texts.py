"""The one table of codes and their texts, in the order of the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.reasons.codes import ReasonCode
from moorage.explain.reasons.about_nodes import ABOUT_NODES
from moorage.explain.reasons.about_others import ABOUT_OTHERS
from moorage.explain.reasons.about_volumes import ABOUT_VOLUMES
from moorage.explain.reasons.before_nodes import BEFORE_NODES
from moorage.explain.reasons.reason_text import ReasonText

_ALL: Final = {**BEFORE_NODES, **ABOUT_NODES, **ABOUT_VOLUMES, **ABOUT_OTHERS}
TEXTS: Final[Mapping[ReasonCode, ReasonText]] = {code: _ALL[code] for code in ReasonCode}
"""Each code and its text."""
