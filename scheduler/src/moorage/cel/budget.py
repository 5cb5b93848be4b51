"""How much the expressions about one object, or of one policy, may cost together.

Place in the flow: rules and policies ask here before each evaluation. The CEL runtime cannot be
interrupted, so the cost is bounded before. Mirrors kubernetes v1.36 apiserver/pkg/apis/cel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.cel.runtime import Program
from moorage.cel.values import Size

# Highest cost that is certainly evaluated in 50 ms, which may pass in this process.
_QUICK_COST: Final = 400_000
# Cost of evaluating the simplest rule, and of converting a value for the runtime.
_QUESTION: Final = 200
_VALUE: Final = 5
_CALL_COST_MAX: Final = 1_000_000
"""Highest cost of one expression (PerCallLimit)."""
_OBJECT_COST_MAX: Final = 10_000_000
"""Highest cost of all expressions for an object or a policy (RuntimeCELCostBudget)."""
USED_UP: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
"""Message for an object whose rules cost too much."""


class MayTakeLong(Exception):  # noqa: N818
    """The expressions about an object may take more than about 50 ms."""


class Budget:
    """The cost of the evaluations for one object, bounded before each of them.

    Parameters
    ----------
    only_quick
        Raise `MayTakeLong` before an evaluation that may take long.
    """

    def __init__(self, *, only_quick: bool) -> None:
        self._only_quick = only_quick
        self._units = 0
        self._time = 0

    def allows(self, program: Program, values: Mapping[str, Any], size: Size) -> bool:
        """Take the highest possible cost of an expression; whether an evaluation may cost so much.

        The size of the variables gives a bound in no time. Only where that is high, the values
        themselves are read.

        Raises
        ------
        MayTakeLong
            The evaluation would be allowed, and may take long.
        """
        cost = program.costs.of_size(size.nodes, size.characters)
        if cost.units > _CALL_COST_MAX or self._time + cost.all_units > _QUICK_COST:
            cost = program.costs.of_values(values)
        self._units += cost.units
        self._time += _QUESTION + _VALUE * size.nodes + cost.all_units
        if cost.units > _CALL_COST_MAX or self._units > _OBJECT_COST_MAX:
            return False
        if self._only_quick and self._time > _QUICK_COST:
            raise MayTakeLong
        return True
