"""Pods that plugins want tried again at once, on their way to the queue.

Plugins are made before the queue, which asks them, so they cannot call it. A plugin puts pods here;
the queue takes the pods out before it next pops a pod or takes one back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moorage.api.pod import Pod


class Activations:
    """A list of pods to activate.

    Parameters
    ----------
    on_wake
        Called when pods were put in, so that a popper that waits looks again; None where no popper
        waits.
    """

    def __init__(self, on_wake: Callable[[], None] | None = None) -> None:
        self._on_wake = on_wake
        self._pods: list[Pod] = []

    def __len__(self) -> int:
        """Return the number of pods on their way."""
        return len(self._pods)

    def add_pods(self, pods: Iterable[Pod]) -> None:
        """Add pods to activate, in this order."""
        self._pods.extend(pods)
        if self._pods and self._on_wake is not None:
            self._on_wake()

    def take_all(self) -> list[Pod]:
        """Take all pods out."""
        pods, self._pods = self._pods, []
        return pods
