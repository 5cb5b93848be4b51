"""Counts of pods from a watch: pods with a node, and pods that were tried, by namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from moorage.api.meta import ApiObject, ApiStruct, Condition
from moorage.base.errors import DecodeError, MoorageError

Labels = Mapping[str, str]


class PodSpecPart(ApiStruct, frozen=True, kw_only=True):
    """The read part of a pod's spec."""

    node_name: str = ""


class PodStatusPart(ApiStruct, frozen=True, kw_only=True):
    """The read part of a pod's status."""

    conditions: tuple[Condition, ...] = ()


class CountedPod(ApiObject, frozen=True, kw_only=True):
    """The part of a pod that is read here."""

    spec: PodSpecPart = PodSpecPart()
    status: PodStatusPart = PodStatusPart()

    @property
    def is_scheduled(self) -> bool:
        """Whether the pod has a node."""
        return bool(self.spec.node_name)

    @property
    def is_attempted(self) -> bool:
        """Whether the pod has a node, or a condition that says why not."""
        return self.is_scheduled or any(
            each.type == "PodScheduled" and each.status == "False"
            for each in self.status.conditions
        )

    def has_labels(self, labels: Labels) -> bool:
        """Whether the pod has all of these labels."""
        own = self.metadata.labels
        return all(own.get(name) == value for name, value in labels.items())


class Tally:
    """Counts of the pods of one namespace with some labels."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.scheduled = 0
        self.attempted = 0

    def add(self, pod: CountedPod | None, times: int) -> None:
        """Count a pod once more, or once less."""
        if pod is not None and pod.has_labels(self.labels):
            self.scheduled += times * pod.is_scheduled
            self.attempted += times * pod.is_attempted


class PodTallies:
    """The handler of a watch on all pods.

    Attributes
    ----------
    changed
        Set at each change.
    on_scheduled
        Called with each pod that gets a node.
    """

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.on_scheduled: list[Callable[[CountedPod], None]] = []
        self._pods: dict[str, dict[str, CountedPod]] = {}
        self._tallies: dict[str, list[Tally]] = {}

    def selected_pods(self, namespace: str, labels: Labels) -> list[CountedPod]:
        """Return the pods of a namespace with some labels, in order of their arrival."""
        return [pod for pod in self._pods.get(namespace, {}).values() if pod.has_labels(labels)]

    def tally(self, namespace: str, labels: Labels) -> Tally:
        """Return the counts of a namespace; they follow every later change."""
        tallies = self._tallies.setdefault(namespace, [])
        for each in tallies:
            if each.labels == labels:
                return each
        tally = Tally(dict(labels))
        for pod in self._pods.get(namespace, {}).values():
            tally.add(pod, 1)
        tallies.append(tally)
        return tally

    async def until(self, reached: Callable[[], bool], *, seconds: float) -> bool:
        """Wait until a condition on what was counted holds; return whether it did in that time."""
        try:
            async with asyncio.timeout(seconds):
                while not reached():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            return False
        return True

    # --- a reflector's handler --------------------------------------------------------------

    def on_add(self, pod: CountedPod) -> None:
        """Take in a pod that appeared."""
        self._observe_change(None, pod)

    def on_update(self, old: CountedPod, new: CountedPod) -> None:
        """Take in a change."""
        self._observe_change(old, new)

    def on_delete(self, pod: CountedPod, *, missed: bool) -> None:
        """Take in that a pod is gone."""
        del missed
        self._pods.get(pod.namespace, {}).pop(pod.name, None)
        for tally in self._tallies.get(pod.namespace, ()):
            tally.add(pod, -1)
        self.changed.set()

    def on_synced(self) -> None:
        """Take in that every pod has been reported."""
        self.changed.set()

    def on_undecodable(self, key: tuple[str, str], error: DecodeError) -> None:
        """Refuse to go on without a pod.

        Raises
        ------
        MoorageError
            Always.
        """
        raise MoorageError(f"pod {key[1]} cannot be read: {error}")

    def _observe_change(self, old: CountedPod | None, new: CountedPod) -> None:
        self._pods.setdefault(new.namespace, {})[new.name] = new
        for tally in self._tallies.get(new.namespace, ()):
            tally.add(old, -1)
            tally.add(new, 1)
        if new.is_scheduled and (old is None or not old.is_scheduled):
            for listener in self.on_scheduled:
                listener(new)
        self.changed.set()
