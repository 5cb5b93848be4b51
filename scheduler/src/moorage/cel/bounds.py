"""How large a value of a CEL expression can become.

Place in the flow: `moorage.cel.cost` walks the tree of an expression and gives each part a
bound. A variable is `Known` where its value is at hand, or has the largest sizes that are allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

LARGEST: Final = 2**62
"""Where bounds end, so that the numbers stay small."""
TEXT_FACTOR: Final = 10
"""Bytes of text that cost as much as one value (StringTraversalCostFactor of cel-go: 0.1)."""
_VALUES_MAX: Final = 2000
"""Values that are followed one by one; more have one bound for all of them."""
_DEPTH_MAX: Final = 6
"""Depth down to which lists and maps have bounds of their own; a guess, `object.a.b.c` and more."""


class Bound(NamedTuple):
    """The largest sizes of a value.

    Parameters
    ----------
    items
        Elements of the value itself, if it is a list or a map.
    text
        Bytes of the value itself, if it is a text or bytes.
    weight
        All values in it, counted once for each place, and one more for each ten bytes of text.
    inner
        Bound of its elements, keys and fields; None where only the whole is known.
    fields
        Bounds of fields by name, where these are known.
    """

    items: int = 0
    text: int = 0
    weight: int = 1
    inner: Bound | None = None
    fields: Mapping[str, Bound] = {}

    def element(self) -> Sizes:
        """Return the bound of an element, a key or a field."""
        return self if self.inner is None else self.inner

    def field(self, name: str) -> Sizes:
        """Return the bound of the field with a name."""
        return self.fields.get(name) or self.element()

    @property
    def is_map(self) -> bool:
        """Whether it is certainly a map."""
        return False

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The values, where all of them are known and texts."""
        return None


class Known:
    """Some values, one of which a part of an expression has.

    Parameters
    ----------
    values
        Values of Python: text, bytes, numbers, lists and maps of these.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values
        self._fields: dict[str, Sizes] = {}

    @cached_property
    def items(self) -> int:
        """Most elements of a list or map."""
        return max((len(v) for v in self._values if isinstance(v, list | Mapping)), default=0)

    @cached_property
    def text(self) -> int:
        """Most bytes of a text."""
        return max((_length(v) for v in self._values if isinstance(v, str | bytes)), default=0)

    @cached_property
    def weight(self) -> int:
        """Most values and text in a value."""
        return max((_weight(value) for value in self._values), default=1)

    @cached_property
    def inner(self) -> Sizes | None:
        """Bound of the elements, keys and fields."""
        found = [key for v in self._values if isinstance(v, Mapping) for key in v]
        found += [each for v in self._values if isinstance(v, Mapping) for each in v.values()]
        found += [each for v in self._values if isinstance(v, list) for each in v]
        return _known(found)

    def element(self) -> Sizes:
        """Return the bound of an element, a key or a field."""
        return self.inner or Bound()

    def field(self, name: str) -> Sizes:
        """Return the bound of the field with a name."""
        if name not in self._fields:
            self._fields[name] = _known(
                [v[name] for v in self._values if isinstance(v, Mapping) and name in v]
            )
        return self._fields[name]

    @property
    def is_map(self) -> bool:
        """Whether all values are maps."""
        return all(isinstance(value, Mapping) for value in self._values)

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The values, where all of them are texts."""
        texts = tuple(value for value in self._values if isinstance(value, str))
        return texts if len(texts) == len(self._values) else None


Sizes = Bound | Known


def _known(values: list[Any]) -> Sizes:
    if len(values) <= _VALUES_MAX:
        return Known(values)
    weight = Known(values).weight
    return Bound(weight, weight * TEXT_FACTOR, weight)


def union(bounds: Iterable[Sizes]) -> Sizes:
    """Return the bound of a value that is one of several."""
    each = list(bounds)
    if len(each) == 1:
        return each[0]
    inners = [bound.element() for bound in each if bound.items]
    return Bound(
        max((bound.items for bound in each), default=0),
        max((bound.text for bound in each), default=0),
        max((bound.weight for bound in each), default=1),
        flat(union(inners)) if inners else None,
    )


def total(bounds: Iterable[Sizes]) -> Bound:
    """Return the bound of a value made of several, one after the other."""
    each = list(bounds)
    inners = [bound.element() for bound in each if bound.items]
    return Bound(
        capped(sum(bound.items for bound in each)),
        capped(sum(bound.text for bound in each)),
        capped(sum(bound.weight for bound in each)),
        flat(union(inners)) if inners else None,
    )


def collection(elements: Sequence[Sizes], others: Sequence[Sizes] = ()) -> Bound:
    """Return the bound of a list of elements, or of a map with ``others`` as keys."""
    inside = [*elements, *others]
    weight = 1 + sum(bound.weight for bound in inside)
    inner = flat(union(inside)) if inside else None
    return Bound(len(elements), 0, capped(weight), inner)


def of_text(length: int) -> Bound:
    """Return the bound of a text."""
    return Bound(0, capped(length), 1 + capped(length) // TEXT_FACTOR)


def flat(sizes: Sizes, depth: int = _DEPTH_MAX) -> Bound:
    """Return a bound without the values; below a depth it covers everything inside."""
    if isinstance(sizes, Bound):
        return sizes
    if not sizes.items:
        return Bound(0, sizes.text, sizes.weight)
    if not depth:
        return Bound(sizes.weight, sizes.weight * TEXT_FACTOR, sizes.weight)
    return Bound(sizes.items, sizes.text, sizes.weight, flat(sizes.element(), depth - 1))


def capped(number: int) -> int:
    """Return a number that is at most the largest one."""
    return min(number, LARGEST)


def _length(text: str | bytes) -> int:
    return len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode())


def _weight(value: Any) -> int:
    if isinstance(value, str | bytes):
        return 1 + _length(value) // TEXT_FACTOR
    if isinstance(value, Mapping):
        return 1 + sum(_weight(key) + _weight(each) for key, each in value.items())
    if isinstance(value, list):
        return 1 + sum(map(_weight, value))
    return 1
