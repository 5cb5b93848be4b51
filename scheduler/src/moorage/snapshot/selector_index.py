"""Finds, among many selectors, the few that may match a pod, without testing each selector.

A selector that wants a label to have one of some values is filed under these (key, value) pairs.
So a pod with n labels looks up n + 1 pairs of its namespace, however many selectors there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from moorage.api.selectors import Operator, Selector

T = TypeVar("T", bound=Hashable)

Pair = tuple[str, str]


class _Drawer(Generic[T]):
    """The items of one namespace: by wanted label, and the items without a wanted label."""

    __slots__ = ("by_pair", "rest")

    def __init__(self) -> None:
        self.by_pair: dict[Pair, dict[T, None]] = {}
        self.rest: dict[T, None] = {}


class SelectorIndex(Generic[T]):
    """Items filed by the selector and namespaces they are about, in order of filing."""

    __slots__ = ("_by_namespace", "_size")

    def __init__(self) -> None:
        self._by_namespace: dict[str | None, _Drawer[T]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, item: T, selector: Selector, namespaces: frozenset[str] | None) -> None:
        """File an item that is not there yet.

        Parameters
        ----------
        item
            The value that `candidates` returns.
        selector
            A selector on labels of pods.
        namespaces
            Namespaces of pods that the item may match; None means any.
        """
        self._size += 1
        if selector.nothing:
            return
        pairs = wanted_pairs(selector)
        for namespace in _names(namespaces):
            drawer = self._by_namespace.setdefault(namespace, _Drawer())
            if not pairs:
                drawer.rest[item] = None
            for pair in pairs:
                drawer.by_pair.setdefault(pair, {})[item] = None

    def remove(self, item: T, selector: Selector, namespaces: frozenset[str] | None) -> None:
        """Take out an item; selector and namespaces are the same as for `add`."""
        self._size -= 1
        if selector.nothing:
            return
        pairs = wanted_pairs(selector)
        for namespace in _names(namespaces):
            drawer = self._by_namespace[namespace]
            drawer.rest.pop(item, None)
            for pair in pairs:
                found = drawer.by_pair[pair]
                del found[item]
                if not found:
                    del drawer.by_pair[pair]
            if not drawer.rest and not drawer.by_pair:
                del self._by_namespace[namespace]

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[T]:
        """Yield each item once whose selector and namespaces may match; no match is missed."""
        for drawer in (self._by_namespace.get(namespace), self._by_namespace.get(None)):
            if drawer is None:
                continue
            yield from drawer.rest
            if drawer.by_pair:
                for pair in labels.items():
                    found = drawer.by_pair.get(pair)
                    if found is not None:
                        yield from found


def _names(namespaces: frozenset[str] | None) -> tuple[str | None, ...]:
    return (None,) if namespaces is None else tuple(sorted(namespaces))


def wanted_pairs(selector: Selector) -> tuple[Pair, ...]:
    """Return pairs of which every matching pod has one; none when no such pairs exist.

    An item is filed under pairs of one key only, so a pod, with one value a key, finds it once.
    """
    wanted = [r for r in selector.requirements if r.op is Operator.IN]
    if not wanted:
        return ()
    narrowest = min(wanted, key=lambda requirement: len(requirement.values))
    return tuple((narrowest.key, value) for value in narrowest.values)
