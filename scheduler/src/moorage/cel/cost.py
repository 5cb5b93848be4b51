"""What a CEL expression costs at most: an upper bound, known before it is evaluated.

The CEL runtime counts nothing but the steps of loops, and cannot be interrupted. So the cost is
bounded before each evaluation from the tree of the expression and the sizes of its variables. A
bound that is low enough also bounds the time and the memory of the evaluation.

Rules mirrored: the estimate of cel-go ``checker/cost.go`` and of kubernetes v1.36
``apiserver/pkg/cel/library/cost.go``. One unit is one simple operation, or ten bytes of text that
are read or made. Where the runtime here takes longer than cel-go, the operation costs more:
functions that are Python, regular expressions with repetitions, and texts searched for texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from moorage.cel.authorizer import authorizer_functions
from moorage.cel.bounds import (
    LARGEST,
    TEXT_FACTOR,
    Bound,
    Sizes,
    capped,
    collection,
    flat,
    of_text,
    total,
    union,
)
from moorage.cel.functions import cel_functions
from moorage.cel.tree import Call, Constant, ListOf, Loop, MapOf, Name, Select, Tree

_LIST: Final = 10  # createListBaseCost
_MAP: Final = 30  # createMapBaseCost
_PYTHON: Final = 50
"""Units for a call of a function in Python: about 3 µs."""
_DECIDING: Final = 350_000
"""Units for a check of rights, so that an expression has two of them at most."""
_COMPILE: Final = 20
"""Units for each part of a regular expression, compiled with every match: up to 3 µs."""
_CLASS_PARTS: Final = 1500
"""Parts that a class of Unicode counts as: up to 3 ms."""
_PARTS_MAX: Final = 350_000
"""Size at which RE2 refuses a regular expression."""
_REPETITIONS_MAX: Final = 1000
"""Largest product of nested repetitions that RE2 compiles."""
_NUMBER_TEXT: Final = 64
"""Bytes of a number or a time as text."""
_FLOAT_TEXT: Final = 1400
"""Bytes of a number with the largest precision of ``format``."""
_SCALAR: Final = Bound()

Arguments = Sequence[Sizes]
_Answer = tuple[int, Sizes]


class Cost(NamedTuple):
    """The highest possible cost of an expression.

    Parameters
    ----------
    units
        As Kubernetes counts.
    compiling
        Units for compiling regular expressions, which Kubernetes does not count.
    deciding
        Units for checks of rights, which take next to no time here.
    result
        Bound of the result.
    """

    units: int
    compiling: int
    result: Sizes
    deciding: int = 0

    @property
    def all_units(self) -> int:
        """All units, a measure of time: a million takes 150 ms at most."""
        return self.units + self.compiling - self.deciding


def cost_bound(tree: Tree, variables: Mapping[str, Sizes], *, steps_max: int = LARGEST) -> Cost:
    """Return the highest possible cost of an expression.

    Parameters
    ----------
    tree
        The expression.
    variables
        Sizes of each variable; a missing one is a number.
    steps_max
        Most steps that the runtime makes in all loops together.
    """
    walk = _Walk(variables, steps_max)
    result = walk.visit(tree, 1)
    return Cost(walk.cost + walk.deciding, walk.compiling, result, walk.deciding)


class _Walk:
    """Adds up costs; each part counts as often as the loops around it make steps."""

    def __init__(self, variables: Mapping[str, Sizes], steps_max: int) -> None:
        self.cost = self.compiling = self.deciding = 0
        self._variables = dict(variables)
        self._steps_max = steps_max

    def visit(self, tree: Tree, times: int) -> Sizes:
        """Add the cost of an expression and return the bound of its result."""
        if isinstance(tree, Constant):
            return of_text(len(tree.value))
        if isinstance(tree, Name):
            self._add(1, times)
            return self._variables.get(tree.name, _SCALAR)
        if isinstance(tree, Select):
            operand = self.visit(tree.operand, times)
            self._add(1, times)
            return _SCALAR if tree.is_test else operand.field(tree.field)
        if isinstance(tree, Call):
            return self._call_sizes(tree, times)
        if isinstance(tree, ListOf):
            self._add(_LIST + len(tree.elements) // 2, times)
            return collection([self.visit(each, times) for each in tree.elements])
        if isinstance(tree, MapOf):
            self._add(_MAP, times)
            keys = [self.visit(each, times) for each in tree.keys]
            return collection([self.visit(each, times) for each in tree.values], keys)
        return self._loop(tree, times)

    def _add(self, cost: int, times: int) -> None:
        self.cost = capped(self.cost + cost * min(times, self._steps_max))

    def _call_sizes(self, tree: Call, times: int) -> Sizes:
        if tree.function == "_?_:_":
            return self._choice(tree.arguments, times)
        arguments = [self.visit(each, times) for each in tree.arguments]
        if tree.function in _SELECTIONS and isinstance(tree.arguments[1], Constant):
            self._add(1, times)
            return arguments[0].field(tree.arguments[1].value.decode(errors="replace"))
        if tree.function in _SEARCHES:
            patterns = _literal(tree.arguments[-1]) or arguments[-1].texts
            self._add(_search_cost(arguments), times)
            steps = min(times, self._steps_max)
            self.compiling = capped(self.compiling + steps * _compile_cost(arguments, patterns))
        if tree.function == "check":
            steps = min(times, self._steps_max)
            self.deciding = capped(self.deciding + steps * _DECIDING)
        shortest = 0
        if tree.function in _SHORTEST and isinstance(tree.arguments[1], Constant):
            shortest = len(tree.arguments[1].value)
        cost, result = _CALLS.get(tree.function, _other)(arguments, shortest)
        self._add(cost, times)
        return result

    def _choice(self, arguments: tuple[Tree, ...], times: int) -> Sizes:
        """Only the more expensive of two alternatives counts."""
        self.visit(arguments[0], times)
        before, results = (self.cost, self.deciding), []
        highest = before
        for each in arguments[1:]:
            self.cost, self.deciding = before
            results.append(self.visit(each, times))
            highest = max(highest[0], self.cost), max(highest[1], self.deciding)
        self.cost, self.deciding = highest
        return union(results)

    def _loop(self, tree: Loop, times: int) -> Sizes:
        range_, start = self.visit(tree.range, times), self.visit(tree.start, times)
        hidden = {name: self._variables.get(name) for name in (*tree.elements, tree.collected)}
        self._variables[tree.collected] = start
        result = start
        if range_.items:
            self._variables.update(dict.fromkeys(tree.elements, range_.element()))
            steps = capped(times * range_.items)
            self.visit(tree.condition, steps)
            result = _repeated(start, self.visit(tree.step, steps), range_.items)
        self._variables[tree.collected] = result
        result = self.visit(tree.result, times)
        for name, value in hidden.items():
            if value is None:
                self._variables.pop(name, None)
            else:
                self._variables[name] = value
        return result


def _repeated(start: Sizes, once: Sizes, steps: int) -> Sizes:
    """Return the bound of what a loop collects; a step of the macros adds the same to it."""
    if not once.items:
        return union([start, once])
    items, text, weight = (capped(n * steps) for n in (once.items, once.text, once.weight))
    return union([start, Bound(items, text, weight, flat(once.element()))])


_SELECTIONS: Final = frozenset({"_[_]", "_[?_]", "_?._"})
_SEARCHES: Final = frozenset({"matches", "find", "findAll"})
_SHORTEST: Final = frozenset({"replace", "split"})
_REPETITION: Final = re.compile(r"\{(\d{1,4})(?:,(\d{0,4}))?\}")
_CLASS: Final = re.compile(r"\\[pP]")


def _literal(tree: Tree) -> tuple[str, ...] | None:
    return (tree.value.decode(errors="replace"),) if isinstance(tree, Constant) else None


def _search_cost(arguments: Arguments) -> int:
    """Return the cost of going over a text with a regular expression."""
    return capped(_tens(1 + arguments[0].text) * max(_up(arguments[-1].text, 4), 1))


def _compile_cost(arguments: Arguments, patterns: tuple[str, ...] | None) -> int:
    """Return the cost of compiling one of several regular expressions; None are unknown ones."""
    if patterns is None:
        parts = min(arguments[-1].text * _REPETITIONS_MAX, _PARTS_MAX)
    else:
        parts = max(map(_parts, patterns), default=0)
    return _COMPILE * parts


def _parts(pattern: str) -> int:
    """Return the number of parts of a regular expression, at most."""
    repetitions = 1
    for found in _REPETITION.finditer(pattern):
        repetitions *= max(int(found[1]), int(found[2] or 1), 1)
        repetitions = min(repetitions, _REPETITIONS_MAX)
    parts = len(pattern) + _CLASS_PARTS * len(_CLASS.findall(pattern))
    return min(parts * repetitions, _PARTS_MAX)


def _tens(length: int) -> int:
    return _up(length, TEXT_FACTOR)


def _up(number: int, by: int) -> int:
    return -(-number // by)


def _other(arguments: Arguments, _: int) -> _Answer:
    """Answer for a function whose result is no longer than its arguments together."""
    result = total(arguments)
    return 1 + _tens(result.text), result


def _pass_on(arguments: Arguments, _: int) -> _Answer:
    """Answer for a result that is one of the arguments, or inside one."""
    return 1, union(arguments)


def _simple(arguments: Arguments, _: int) -> _Answer:
    """Answer for a number or a truth that is found at once; the length of a text takes a little."""
    return 1 + sum(bound.text for bound in arguments) // 50, _SCALAR


def _read(arguments: Arguments, _: int) -> _Answer:
    """Answer for a number or a truth that is found by reading a text once."""
    return 1 + _tens(sum(bound.text for bound in arguments)), _SCALAR


def _compare(arguments: Arguments, _: int) -> _Answer:
    return min(bound.weight for bound in arguments), _SCALAR


def _is_in(arguments: Arguments, _: int) -> _Answer:
    one, among = arguments
    if among.is_map:
        return 1 + one.weight, _SCALAR
    return 1 + capped(among.items * min(one.weight, among.element().weight)), _SCALAR


def _search_text(arguments: Arguments, _: int) -> _Answer:
    """Answer for a text that is searched for another: each place may be compared."""
    return _text_search(arguments), _SCALAR


def _text_search(arguments: Arguments) -> int:
    return 1 + capped(_tens(arguments[0].text) * max(_tens(arguments[1].text), 1))


def _sum(arguments: Arguments, _: int) -> _Answer:
    result = total(arguments)
    return 1 + _tens(result.text) + result.items, result


def _copy(arguments: Arguments, _: int) -> _Answer:
    """Answer for a text that is as long as the first argument."""
    return 1 + _tens(arguments[0].text), of_text(arguments[0].text)


def _quote(arguments: Arguments, _: int) -> _Answer:
    length = 2 * arguments[0].text + 2
    return 1 + _tens(length), of_text(length)


def _to_text(arguments: Arguments, _: int) -> _Answer:
    length = max(arguments[0].text, _NUMBER_TEXT)
    return 1 + _tens(arguments[0].text), of_text(length)


def _replace(arguments: Arguments, shortest: int) -> _Answer:
    text, new = arguments[0].text, arguments[2].text
    if shortest:
        length = max(text, capped(_up(text, shortest) * new + text % shortest))
    else:
        length = capped((text + 1) * new + text)
    return _text_search(arguments[:2]) + _tens(text) + _tens(length), of_text(length)


def _split(arguments: Arguments, shortest: int) -> _Answer:
    text = arguments[0].text
    pieces = text // shortest + 1 if shortest else text + 1
    inner = of_text(text)
    result = Bound(pieces, 0, 1 + pieces + _tens(text), inner)
    return _text_search(arguments) + _tens(text) + pieces // 2, result


def _find_all(arguments: Arguments, _: int) -> _Answer:
    text = arguments[0].text
    return _PYTHON + text, Bound(text + 1, 0, 2 + text + _tens(text), of_text(text))


def _join(arguments: Arguments, _: int) -> _Answer:
    listed = arguments[0]
    between = arguments[1].text if len(arguments) > 1 else 0
    texts = min(listed.items * listed.element().text, listed.weight * TEXT_FACTOR)
    length = capped(texts + listed.items * between)
    return 1 + listed.items + 2 * _tens(length), of_text(length)


def _format(arguments: Arguments, _: int) -> _Answer:
    text, values = arguments[0].text, arguments[1]
    # Each clause takes one value, and a text may become hexadecimal or be escaped.
    numbers = values.items * _FLOAT_TEXT
    length = capped(text + numbers + 4 * values.weight * TEXT_FACTOR)
    return 1 + values.weight + _tens(text) + _tens(length), of_text(length)


def _python(arguments: Arguments, _: int) -> _Answer:
    """Answer for a function in Python: values are converted, the result is as long as they are."""
    result = total(arguments)
    return _PYTHON + 20 * sum(bound.items for bound in arguments) + result.weight, result


def _functions_of_lists(arguments: Arguments, _: int) -> _Answer:
    return _PYTHON + 20 * capped(sum(bound.weight for bound in arguments)), _SCALAR


_CALLS: Final[Mapping[str, Callable[[Arguments, int], _Answer]]] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compare),
    **dict.fromkeys(("_&&_", "_||_", "!_", "@not_strictly_false"), _simple),
    **dict.fromkeys(("_[_]", "_[?_]", "_?._"), lambda a, _: (1, a[0].element())),
    **dict.fromkeys(
        ("dyn", "optional.of", "optional.ofNonZeroValue", "value", "or", "orValue"), _pass_on
    ),
    **dict.fromkeys(("optional.none", "hasValue", "type", "size"), _simple),
    **dict.fromkeys(("_-_", "_*_", "_/_", "_%_", "-_"), _simple),
    **dict.fromkeys(("int", "uint", "double", "bool", "timestamp", "duration"), _read),
    **dict.fromkeys(("startsWith", "endsWith", "matches"), _read),
    **dict.fromkeys(("contains", "indexOf", "lastIndexOf"), _search_text),
    **dict.fromkeys(("@in", "in", "_in_"), _is_in),
    **dict.fromkeys(
        ("lowerAscii", "upperAscii", "trim", "substring", "reverse", "bytes", "charAt"), _copy
    ),
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), _functions_of_lists),
    **dict.fromkeys(sorted({each.name for each in cel_functions()}), _python),
    **dict.fromkeys(sorted({each.name for each in authorizer_functions()}), _python),
    **dict.fromkeys(("isIP", "isCIDR", "find"), _python),
    "_+_": _sum,
    "string": _to_text,
    "strings.quote": _quote,
    "jsonpatch.escapeKey": _quote,
    "replace": _replace,
    "split": _split,
    "findAll": _find_all,
    "join": _join,
    "format": _format,
}
