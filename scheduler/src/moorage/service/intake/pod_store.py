"""The newest version of every pod, by name and by uid."""

from __future__ import annotations

from collections.abc import Collection

from moorage.api.pod import Pod
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo, info_of


class PodStore:
    """The newest version of every pod the API showed and did not delete."""

    def __init__(self) -> None:
        # The pods as compiled for attempts; a newer version takes over most of the compiled parts.
        self._infos: dict[tuple[str, str], PodInfo] = {}
        # Uid -> (namespace, name) of the pods in `_infos`.
        self._names: dict[str, tuple[str, str]] = {}
        self.log: KeyLog[tuple[str, str]] = KeyLog()
        """(namespace, name) of every pod put or removed."""

    def get(self, namespace: str, name: str) -> Pod | None:
        """Return a pod, or None."""
        found = self._infos.get((namespace, name))
        return None if found is None else found.pod

    def info(self, namespace: str, name: str) -> PodInfo | None:
        """Return a pod as compiled for attempts, or None."""
        return self._infos.get((namespace, name))

    def all_pods(self) -> Collection[Pod]:
        """Return every pod."""
        return [info.pod for info in self._infos.values()]

    def put_pod(self, pod: Pod) -> None:
        """Keep a new version."""
        info = info_of(pod)
        key = info.namespace, info.name
        self._infos[key] = info
        self._names[info.uid] = key
        self.log.append(key)

    def name_of(self, uid: str) -> tuple[str, str] | None:
        """Return the namespace and name of the pod with a uid, or None."""
        return self._names.get(uid)

    def remove(self, pod: Pod) -> Pod | None:
        """Forget a pod; return the kept version, None for an unknown pod."""
        info = self._infos.pop((pod.metadata.namespace, pod.metadata.name), None)
        if info is None:
            return None
        self._names.pop(info.pod.uid, None)
        self.log.append((info.namespace, info.name))
        return info.pod
