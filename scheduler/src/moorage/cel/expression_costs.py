"""The cost of an expression for an object, before it is evaluated.

Place in the flow: `runtime` gives each compiled expression its costs, and `evaluation` compares
them with the limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from moorage.cel.bounds import LARGEST, TEXT_FACTOR, Bound, Known, Sizes
from moorage.cel.cost import Cost, cost_bound
from moorage.cel.tree import Tree, read_tree

_STEPS_MAX: Final = 10_000
"""Most steps of all loops of one evaluation; the runtime has a fixed limit and stops there."""
_TOO_DEEP: Final = Cost(LARGEST, 0, Bound(LARGEST, LARGEST, LARGEST))


class Costs:
    """The costs of one expression.

    Parameters
    ----------
    expression
        The expression, compiled by the CEL runtime.
    names
        Its variables.
    """

    def __init__(self, expression: Any, names: Iterable[str]) -> None:
        self._expression = expression
        self._names = tuple(names)
        self._tree: Tree | None = None
        # By the sizes of the variables together, each rounded up to a power of two.
        self._by_size: dict[tuple[int, int], Cost] = {}

    def of_size(self, values: int, characters: int) -> Cost:
        """Return the highest cost for variables of this size together, whatever they are."""
        key = values.bit_length(), characters.bit_length()
        cost = self._by_size.get(key)
        if cost is None:
            # A character is at most four bytes.
            items, text = 2 ** key[0], 4 * 2 ** key[1]
            whole = Bound(items, text, items + text // TEXT_FACTOR)
            cost = self._by_size[key] = self._cost(dict.fromkeys(self._names, whole))
        return cost

    def of_values(self, values: Mapping[str, Any]) -> Cost:
        """Return the highest cost for these variables, converted for the runtime."""
        return self._cost({name: Known([value]) for name, value in values.items()})

    def _cost(self, variables: Mapping[str, Sizes]) -> Cost:
        try:
            if self._tree is None:
                self._tree = read_tree(self._expression.serialize())
            return cost_bound(self._tree, variables, steps_max=_STEPS_MAX)
        except RecursionError:
            return _TOO_DEEP
