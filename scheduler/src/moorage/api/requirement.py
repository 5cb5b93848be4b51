"""Compiled label requirements and their AND; the core under `moorage.api.selectors`.

A requirement is normalised (values sorted, each once), so that equal selectors compare and hash
equal and can be interned. Mirrors kubernetes v1.36 ``apimachinery/pkg/labels/selector.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from moorage.api.names import label_value_faults, qualified_name_faults

_INT64: Final = re.compile(r"[-+]?[0-9]+")
_INT64_DIGITS_MAX: Final = 1000  # leading zeros are legal, endless ones are not
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


class Operator(StrEnum):
    """The operator of a requirement; equality is In with one value."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class Requirement(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """One condition on labels. Build it with `make_requirement`, which checks it."""

    key: str
    op: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil the condition; NotIn holds where the key is absent."""
        value = labels.get(self.key)
        op = self.op
        if op is Operator.IN:
            return value is not None and value in self.values
        if op is Operator.NOT_IN:
            return value is None or value not in self.values
        if op is Operator.EXISTS:
            return value is not None
        if op is Operator.DOES_NOT_EXIST:
            return value is None
        number = None if value is None else parse_int64(value)
        bound = parse_int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if op is Operator.GT else number < bound


class Selector(msgspec.Struct, frozen=True, cache_hash=True):
    """Requirements that must all hold, sorted; or, if ``nothing``, a selector no labels match."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the selector matches all labels."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil every requirement."""
        if self.nothing:
            return False
        # A loop, not all(): this is the innermost call of affinity and spreading.
        for requirement in self.requirements:  # noqa: SIM110
            if not requirement.matches(labels):
                return False
        return True


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(nothing=True)


def parse_int64(text: str) -> int | None:
    """Return the value of a decimal int64: optional sign, ASCII digits only; None if it is not."""
    if len(text) > _INT64_DIGITS_MAX or not _INT64.fullmatch(text):
        return None
    number = int(text)
    return number if _INT64_MIN <= number <= _INT64_MAX else None


def make_requirement(key: str, op: Operator, values: Iterable[str] = ()) -> Requirement:
    """Check and normalise one requirement.

    Raises
    ------
    ValueError
        Bad key, bad value, or a number of values the operator does not take.
    """
    operands = tuple(values)
    wanted = tuple(sorted(set(operands)))
    if faults := qualified_name_faults(key):
        raise ValueError(f'key: Invalid value: "{key}": {"; ".join(faults)}')
    if op in {Operator.IN, Operator.NOT_IN}:
        if not wanted:
            raise ValueError(
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
            )
    elif op in {Operator.EXISTS, Operator.DOES_NOT_EXIST}:
        if wanted:
            shown = " ".join(wanted)
            raise ValueError(
                f"values: Invalid value: [{shown}]: "
                "values set must be empty for exists and does not exist"
            )
    elif len(operands) != 1:
        raise ValueError("values: Invalid value: for 'Gt', 'Lt' operators, exactly one is required")
    elif parse_int64(wanted[0]) is None:
        raise ValueError(
            f'values[0]: Invalid value: "{wanted[0]}": '
            "for 'Gt', 'Lt' operators, the value must be an integer"
        )
    for index, text in enumerate(wanted):
        if faults := label_value_faults(text):
            raise ValueError(
                f'values[{index}][{key}]: Invalid value: "{text}": {"; ".join(faults)}'
            )
    return Requirement(key, op, wanted)


def make_selector(requirements: Iterable[Requirement]) -> Selector:
    """Join requirements into a normalised selector."""
    return Selector(tuple(sorted(set(requirements))))
