"""The amounts of states of nodes that were computed before.

A placed pod leaves a node in a state that was graded before the placement. And nodes of a cluster
are alike. So most states come again, and their amounts are kept. Which device of a node is free to
which part does not matter for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from moorage.plugins.gpu_share.typical import FloatArray, IntArray, NodeStates

_STATES_MOST: Final = 65_536  # kept; a guess: 16 MB where nodes have eight devices


class KnownStates:
    """Computes an amount for states of nodes, each state once.

    Parameters
    ----------
    compute
        The amount of each state, of states and of names of models. It depends on the state alone,
        and not on the order of its devices.
    cpu_step
        Returns int64, (s,), for millicores of the same form: equal numbers where the amounts are
        equal. None where each millicore counts.
    """

    def __init__(
        self,
        compute: Callable[[NodeStates, Sequence[str]], FloatArray],
        cpu_step: Callable[[IntArray], IntArray] | None = None,
    ) -> None:
        self._compute = compute
        self._cpu_step = cpu_step
        self._known: dict[bytes, float] = {}

    def amounts_of(self, states: NodeStates, models: Sequence[str]) -> FloatArray:
        """Return float64, (s,): the amount of each state.

        Parameters
        ----------
        states
            The nodes.
        models
            Names of the models, by index. Names are appended only.
        """
        keys, known = self._keys(states), self._known
        new = {key: at for at, key in enumerate(keys) if key not in known}
        if new:
            at_u = np.fromiter(new.values(), np.int64, len(new))
            amount_u = self._compute(NodeStates(*(each[at_u] for each in states)), models)
            if len(known) + len(new) > _STATES_MOST:
                known = self._known = {key: known[key] for key in keys if key in known}
            known.update(zip(new, amount_u.tolist(), strict=True))
        return np.array([known[key] for key in keys], np.float64)

    def _keys(self, states: NodeStates) -> list[bytes]:
        """Return the state of each node as bytes."""
        count, devices = states.free_sd.shape
        packed = np.empty((count, devices + 2), np.int64)
        packed[:, :devices] = states.free_sd
        packed[:, :devices].sort(axis=1)
        packed[:, -2] = states.model_s
        packed[:, -1] = self._cpu_step(states.cpu_s) if self._cpu_step else states.cpu_s
        text, width = packed.tobytes(), packed.itemsize * (devices + 2)
        return [text[start : start + width] for start in range(0, len(text), width)]
