"""Pods on their way into the state, seen by an observer first."""

from __future__ import annotations

from typing import Protocol

from moorage.api.pod import Pod
from moorage.base.errors import DecodeError
from moorage.client.objects import Key
from moorage.service.intake.ingest import PodIngest


class PodObserver(Protocol):
    """Takes notice of pods."""

    def pod_came(self, pod: Pod) -> None:
        """Take in a new pod without a node."""
        ...

    def pod_started(self, pod: Pod) -> None:
        """Take in that a waiting pod got its node."""
        ...

    def pod_gone(self, pod: Pod) -> None:
        """Take in that a pod ended, or was deleted."""
        ...


class ObservedPods:
    """Hands pods to the ingest, and what happened to an observer.

    Parameters
    ----------
    ingest
        Takes the pods in.
    observer
        Takes notice.
    """

    def __init__(self, ingest: PodIngest, observer: PodObserver) -> None:
        self._ingest = ingest
        self._observer = observer
        self._is_synced = False

    def on_add(self, pod: Pod) -> None:
        """Take in a pod that appeared."""
        self._ingest.on_add(pod)
        if self._is_synced and not pod.spec.node_name:
            self._observer.pod_came(pod)

    def on_update(self, old: Pod, new: Pod) -> None:
        """Take in a changed pod."""
        self._ingest.on_update(old, new)
        if new.spec.node_name and not old.spec.node_name:
            self._observer.pod_started(new)

    def on_delete(self, pod: Pod, *, missed: bool) -> None:
        """Take in that a pod is gone, or finished; when, is not known of one that was missed."""
        self._ingest.on_delete(pod, missed=missed)
        if not missed:
            self._observer.pod_gone(pod)

    def on_synced(self) -> None:
        """Take in that every pod of the first list has been reported; later ones are new."""
        self._is_synced = True
        self._ingest.on_synced()

    def on_undecodable(self, key: Key, error: DecodeError) -> None:
        """Take in that the newest version of a pod cannot be read."""
        self._ingest.on_undecodable(key, error)
