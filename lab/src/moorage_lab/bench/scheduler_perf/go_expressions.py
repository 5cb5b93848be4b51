"""Expressions of Go templates: fields, variables, literals, calls and chains of calls.

`go_template` finds the actions of a template, this module evaluates what stands in them. The
functions are those of kubernetes v1.36 test/integration/scheduler_perf/operations.go
(``getTemplateFuncs``), the newer Int and JSON, the older div and mod of v1.32, and of Go's
text/template those that compare, combine and print.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from moorage.base.errors import DecodeError

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
    | (?P<number>[+-]?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<name>\$\w*(?:\.\w+)*|\.\w+(?:\.\w+)*|\.|\w+)
    | (?P<mark>:=|[(),|=])
    )""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of an action: its kind (string, number, name or mark) and its text."""

    kind: str
    text: str


def tokens_of(action: str) -> list[Token]:
    """Return the pieces of an action.

    Raises
    ------
    DecodeError
        The action has a character that no expression has.
    """
    tokens, position = [], 0
    while position < len(action.rstrip()):
        match = _TOKEN.match(action, position)
        if match is None:
            raise DecodeError(f"unexpected {action[position:].strip()[:20]!r} in {{{{{action}}}}}")
        tokens.append(Token(str(match.lastgroup), match[0].strip()))
        position = match.end()
    return tokens


def text_of(value: Any) -> str:
    """Return a value as Go prints it.

    Raises
    ------
    DecodeError
        There is no value: a parameter that the template prints was not given.
    """
    if value is None:
        raise DecodeError("a parameter that the template prints was not given")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


class Evaluator:
    """Evaluates one expression after the other, with the same names.

    Parameters
    ----------
    dot
        The value of ``.``; its fields are the parameters.
    variables
        Values by name, with the ``$``.
    """

    def __init__(self, dot: Any, variables: dict[str, Any]) -> None:
        self._dot = dot
        self.variables = variables

    def value(self, tokens: Sequence[Token]) -> Any:
        """Return the value of an expression.

        Raises
        ------
        DecodeError
            It cannot be read, or a function cannot take its arguments.
        """
        value, rest = self._chain(list(tokens))
        if rest:
            raise DecodeError(f"unexpected {rest[0].text!r} in an action")
        return value

    def _chain(self, tokens: list[Token]) -> tuple[Any, list[Token]]:
        value, rest = self._command(tokens, ())
        while rest and rest[0].text == "|":
            value, rest = self._command(rest[1:], (value,))
        return value, rest

    def _command(self, tokens: list[Token], last: tuple[Any, ...]) -> tuple[Any, list[Token]]:
        """Evaluate a call, or a single operand; the value of the command before comes last."""
        if not tokens:
            raise DecodeError("an action has an empty command")
        function = FUNCTIONS.get(tokens[0].text) if tokens[0].kind == "name" else None
        rest = tokens[1:] if function else tokens
        operands: list[Any] = []
        while rest and rest[0].text not in ("|", ")"):
            value, rest = self._operand(rest)
            operands.append(value)
        if function is None:
            if len(operands) != 1 or last:
                raise DecodeError(f"{tokens[0].text!r} is no function that templates have")
            return operands[0], rest
        try:
            return function(*operands, *last), rest
        except (TypeError, ValueError, ZeroDivisionError, LookupError) as error:
            raise DecodeError(f"{tokens[0].text}: {error}") from error

    def _operand(self, tokens: list[Token]) -> tuple[Any, list[Token]]:
        token, rest = tokens[0], tokens[1:]
        if token.text == "(":
            value, rest = self._chain(rest)
            if not rest or rest[0].text != ")":
                raise DecodeError("a parenthesis is not closed")
            return value, rest[1:]
        if token.kind == "string":
            raw = token.text.startswith("`")
            return (token.text[1:-1] if raw else ast.literal_eval(token.text)), rest
        if token.kind == "number":
            whole = re.fullmatch(r"[+-]?[\d_]+", token.text)
            return (int(token.text) if whole else float(token.text)), rest
        if token.kind == "name":
            return self._value_of(token.text), rest
        raise DecodeError(f"unexpected {token.text!r} in an action")

    def _value_of(self, name: str) -> Any:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name in FUNCTIONS:
            return FUNCTIONS[name]()
        first, *fields = name.split(".")
        if first.startswith("$"):
            if first not in self.variables:
                raise DecodeError(f"undefined variable {first}")
            value = self.variables[first]
        elif first:
            raise DecodeError(f"{first!r} is no function that templates have")
        else:
            value = self._dot
        for field in filter(None, fields):
            if not isinstance(value, Mapping):
                raise DecodeError(f"{name}: there is no field {field!r}")
            value = value.get(field)
        return value


_CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "nil": None}


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(f"cannot cast {value!r} to float64")
    return float(value)


def _whole(function: Callable[..., float]) -> Callable[..., int]:
    return lambda *values: math.trunc(function(*values))


def _add(*values: Any) -> float:
    return sum(map(_float, values), 0.0)


def _multiply(*values: Any) -> float:
    return math.prod(map(_float, values), start=1.0)


def _subtract(first: Any, second: Any) -> float:
    return _float(first) - _float(second)


def _divide(first: Any, second: Any) -> float:
    return _float(first) / _float(second)


def _mod(first: Any, second: Any) -> int:
    if not int(_float(second)):
        raise ZeroDivisionError("division by zero")
    return int(math.fmod(int(_float(first)), int(_float(second))))


def _and(*values: Any) -> Any:
    return next((value for value in values if not value), values[-1])


def _or(*values: Any) -> Any:
    return next((value for value in values if value), values[-1])


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        value = value[key]
    return value


def _printf(form: str, *values: Any) -> str:
    plain = tuple(text_of(value) if isinstance(value, bool) else value for value in values)
    return re.sub(r"%([-+#0 ]*\d*)v", r"%\1s", form) % plain


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "AddFloat": _add,
    "AddInt": _whole(_add),
    "DivideFloat": _divide,
    "DivideInt": _whole(_divide),
    "Int": _whole(_float),
    "JSON": lambda value: json.dumps(value, separators=(",", ":")),
    "Mod": _mod,
    "MultiplyFloat": _multiply,
    "MultiplyInt": _whole(_multiply),
    "SubtractFloat": _subtract,
    "SubtractInt": _whole(_subtract),
    "and": _and,
    "div": _whole(_divide),
    "eq": lambda first, *others: any(first == other for other in others),
    "ge": operator.ge,
    "gt": operator.gt,
    "index": _index,
    "le": operator.le,
    "len": len,
    "lt": operator.lt,
    "mod": _mod,
    "ne": operator.ne,
    "not": operator.not_,
    "or": _or,
    "print": lambda *values: "".join(map(text_of, values)),
    "printf": _printf,
}
"""The functions that templates may call, by name."""
