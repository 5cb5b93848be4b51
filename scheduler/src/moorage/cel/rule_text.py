"""Reads the text of a rule without its tree: names, and fields of ``self``.

Place in the flow: the text of each rule that compiles is read for the checks of rules. A quotation
or a comment does not count.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

QUOTED: Final = re.compile(
    r"""(?:\b[bB]?[rR]|\b[rR][bB])(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')"""
    r"""|\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*""",
    re.S,
)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_FIELD: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)((?:\.[A-Za-z_]\w*)+)(\s*\()?")


class Reading(NamedTuple):
    """The text of a rule, read.

    Parameters
    ----------
    names
        All names in it: of variables, of fields and of functions.
    fields
        (position, names after ``self`` or ``oldSelf``) of each field that the text names directly.
    """

    names: frozenset[str]
    fields: tuple[tuple[int, tuple[str, ...]], ...]


def read_rule(text: str) -> Reading:
    """Read the text of an expression that compiles."""
    bare = QUOTED.sub(lambda match: " " * len(match[0]), text)
    fields = []
    for match in _FIELD.finditer(bare):
        names = match[1][1:].split(".")
        # The last name before a bracket is that of a function.
        fields.append((match.start(1), tuple(names[:-1] if match[2] else names)))
    return Reading(frozenset(_NAME.findall(bare)), tuple(fields))
