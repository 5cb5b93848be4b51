"""Interned label sets of pods, counted by use, so that ids stay few as pods come and go.

Each set can be found by any of its labels, so that a new selector need not be compared with every
set: StatefulSets and indexed Jobs give every pod a set of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moorage.api.selectors import Selector
from moorage.snapshot.selector_index import Pair, wanted_pairs

LabelSet = tuple[str, Mapping[str, str]]
_Key = tuple[str, frozenset[tuple[str, str]]]


class LabelSets:
    """Distinct (namespace, labels) of bound pods as small ids."""

    def __init__(self) -> None:
        self._items: list[LabelSet | None] = []
        self._uses: list[int] = []
        self._ids: dict[_Key, int] = {}
        self._free: list[int] = []
        self._last = 0  # the id used last: replicas come one after another
        # By label the sets that have it. Most labels belong to one set only (an index, a hash), for
        # which a bare id takes a quarter of what a container would.
        self._by_pair: dict[Pair, int | dict[int, None]] = {}

    @property
    def size(self) -> int:
        """Number of ids ever handed out; length of a table by id."""
        return len(self._items)

    def live(self) -> Iterable[int]:
        """Ids in use, ascending."""
        return (i for i, uses in enumerate(self._uses) if uses > 0)

    def item(self, label_set: int) -> LabelSet:
        """Return (namespace, labels) behind an id in use."""
        found = self._items[label_set]
        assert found is not None, f"label set {label_set} is not in use"
        return found

    def use(self, namespace: str, labels: Mapping[str, str]) -> int:
        """Return the id of a label set and count one more use."""
        if self._items and self._items[self._last] == (namespace, labels):
            found = self._last
        else:
            found = self._last = self._id_of(namespace, labels)
        self._uses[found] += 1
        return found

    def _id_of(self, namespace: str, labels: Mapping[str, str]) -> int:
        key = (namespace, frozenset(labels.items()))
        number = self._ids.get(key)
        if number is None:
            if self._free:
                number = self._free.pop()
                self._items[number] = (namespace, labels)
            else:
                number = len(self._items)
                self._items.append((namespace, labels))
                self._uses.append(0)
            self._ids[key] = number
            for pair in labels.items():
                self._file(pair, number)
        return number

    def release(self, label_set: int) -> int | None:
        """Count one use less; return the id if it is unused and may be reused."""
        self._uses[label_set] -= 1
        if self._uses[label_set] > 0:
            return None
        namespace, labels = self.item(label_set)
        del self._ids[(namespace, frozenset(labels.items()))]
        for pair in labels.items():
            self._unfile(pair, label_set)
        self._items[label_set] = None
        self._free.append(label_set)
        return label_set

    def matching(self, selector: Selector, namespaces: frozenset[str] | None) -> list[int]:
        """Return the ids in use that a selector matches, ascending.

        Parameters
        ----------
        selector
            On the labels. If it requires a label to have one of some values, only sets with such a
            label are tested.
        namespaces
            The namespaces that count; None means all.
        """
        matching_sets = []
        for label_set in self._candidates(selector):
            namespace, labels = self.item(label_set)
            if (namespaces is None or namespace in namespaces) and selector.matches(labels):
                matching_sets.append(label_set)
        return matching_sets

    def _candidates(self, selector: Selector) -> Iterable[int]:
        if selector.nothing:
            return ()
        pairs = wanted_pairs(selector)
        if not pairs:
            return self.live()
        found: set[int] = set()
        for pair in pairs:
            sets = self._by_pair.get(pair, ())
            found.update((sets,) if isinstance(sets, int) else sets)
        return sorted(found)

    def _file(self, pair: Pair, label_set: int) -> None:
        known = self._by_pair.get(pair)
        if known is None:
            self._by_pair[pair] = label_set
        elif isinstance(known, int):
            self._by_pair[pair] = {known: None, label_set: None}
        else:
            known[label_set] = None

    def _unfile(self, pair: Pair, label_set: int) -> None:
        known = self._by_pair[pair]
        if not isinstance(known, int):
            del known[label_set]
        if isinstance(known, int) or not known:
            del self._by_pair[pair]
