"""Reads the text of a rule without its tree: names, loops, and fields of ``self``.

Place in the flow: `compiled` reads the text of each rule that compiles, for its checks and for
upper estimates of the rule's cost. A quotation or a comment does not count.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from moorage.apiserver.custom.rules.functions import rule_functions

QUOTED: Final = re.compile(
    r"""(?:\b[bB]?[rR]|\b[rR][bB])(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')"""
    r"""|\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*""",
    re.S,
)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_FIELD: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)((?:\.[A-Za-z_]\w*)+)(\s*\()?")
_CALL: Final = re.compile(r"[A-Za-z_]\w*(?=\s*\()")
_BRACKET: Final = re.compile(r"(?:\b(\w+)\s*)?\(|\)")
_LOOPS: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})
_BINDINGS: Final = _LOOPS | {"bind", "optMap", "optFlatMap"}
_LITERAL: Final = re.compile(r"(?:^|[^\w)\]\s])\s*[\[{]")
_PRODUCTS: Final = frozenset({"replace", "join", "format"})
_SLOW: Final = frozenset({"matches"} | {each.name.split(".")[-1] for each in rule_functions()})
# Calls whose time does not depend on the length of a text.
_QUICK: Final = _BINDINGS | {"has", "dyn", "type"}


class Reading(NamedTuple):
    """The text of a rule, read.

    Parameters
    ----------
    names
        All names in it: of variables, of fields and of functions.
    fields
        (position, names after ``self`` or ``oldSelf``) of each field that the text names directly.
    depth
        Largest depth of nested loops.
    bindings
        Largest depth of nested names for values, where there are lists or maps to hold a value
        twice: ``b = [a, a]``, ``c = [b, b]``, and so on.
    slow_calls
        Number of regular expressions and of calls of `rule_functions`.
    sums, products
        Number of plus signs. Number of calls whose result can be as long as one text times another.
    reads_text
        A call may read the whole of a text.
    length
        Length of the text in characters.
    """

    names: frozenset[str]
    fields: tuple[tuple[int, tuple[str, ...]], ...]
    depth: int
    bindings: int
    slow_calls: int
    sums: int
    products: int
    reads_text: bool
    length: int


def read_rule(text: str) -> Reading:
    """Read the text of an expression that compiles."""
    bare = QUOTED.sub(lambda found: " " * len(found[0]), text)
    called = _CALL.findall(bare)
    fields = []
    for found in _FIELD.finditer(bare):
        names = found[1][1:].split(".")
        # The last name before a bracket is that of a function.
        fields.append((found.start(1), tuple(names[:-1] if found[2] else names)))
    return Reading(
        names=frozenset(_NAME.findall(bare)),
        fields=tuple(fields),
        depth=_depth(bare, _LOOPS),
        bindings=_depth(bare, _BINDINGS) if _LITERAL.search(bare) else 0,
        slow_calls=sum(name in _SLOW for name in called),
        sums=bare.count("+"),
        products=sum(name in _PRODUCTS for name in called),
        reads_text=not _QUICK.issuperset(called),
        length=len(text),
    )


def _depth(bare: str, functions: frozenset[str]) -> int:
    """Return the largest number of calls of functions whose brackets enclose one place."""
    inside: list[bool] = []
    deepest = 0
    for found in _BRACKET.finditer(bare):
        if found[0] == ")":
            inside.pop()
        else:
            inside.append(found[1] in functions)
            deepest = max(deepest, sum(inside))
    return deepest
