"""Interned label sets of pods, counted by use, so that ids stay few as pods come and go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

LabelSet = tuple[str, Mapping[str, str]]
_Key = tuple[str, frozenset[tuple[str, str]]]


class LabelSets:
    """Distinct (namespace, labels) of bound pods as small ids."""

    def __init__(self) -> None:
        self._items: list[LabelSet | None] = []
        self._uses: list[int] = []
        self._ids: dict[_Key, int] = {}
        self._free: list[int] = []

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
        key = (namespace, frozenset(labels.items()))
        found = self._ids.get(key)
        if found is None:
            if self._free:
                found = self._free.pop()
                self._items[found] = (namespace, labels)
            else:
                found = len(self._items)
                self._items.append((namespace, labels))
                self._uses.append(0)
            self._ids[key] = found
        self._uses[found] += 1
        return found

    def release(self, label_set: int) -> int | None:
        """Count one use less; return the id if nobody uses it any more and it may be reused."""
        self._uses[label_set] -= 1
        if self._uses[label_set] > 0:
            return None
        namespace, labels = self.item(label_set)
        del self._ids[(namespace, frozenset(labels.items()))]
        self._items[label_set] = None
        self._free.append(label_set)
        return label_set

    def copy(self) -> LabelSets:
        """Return an independent copy."""
        twin = LabelSets()
        twin._items, twin._uses = self._items[:], self._uses[:]
        twin._ids, twin._free = dict(self._ids), self._free[:]
        return twin
