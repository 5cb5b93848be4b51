"""The nominations as the snapshot reads them: compiled pods by node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from moorage.api.pod import Pod
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.state.nominations import Nominator


class Nominations(Mapping[str, Sequence[PodInfo]]):
    """The nominated pods by the name of their node, brought up to date when they are read.

    Parameters
    ----------
    nominator
        Holds the nominations; its log says which nodes to look at again.
    """

    def __init__(self, nominator: Nominator) -> None:
        self._nominator = nominator
        self._by_node: dict[str, tuple[PodInfo, ...]] = {}
        self._position = nominator.log.position
        self._newest_pod: PodInfo | None = None

    def _current(self) -> dict[str, tuple[PodInfo, ...]]:
        log = self._nominator.log
        if self._position == log.position:
            return self._by_node
        moved = log.since(self._position)
        if moved is None:  # too much happened since the last look
            moved = [*self._by_node, *(name for _, name in self._nominator if name)]
            moved = list(dict.fromkeys(moved))
        self._position = log.position
        for node_name in moved:
            pods = tuple(map(self._info, self._nominator.for_node(node_name)))
            if pods:
                self._by_node[node_name] = pods
            else:
                self._by_node.pop(node_name, None)
        return self._by_node

    def _info(self, pod: Pod) -> PodInfo:
        if pod.spec.containers:
            return info_of(pod)
        # A pod that is being tried is known by its name alone; all such pods are compiled alike.
        self._newest_pod = info_of(pod, like=self._newest_pod)
        return self._newest_pod

    def __getitem__(self, node_name: str) -> Sequence[PodInfo]:
        return self._current()[node_name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._current())

    def __len__(self) -> int:
        return len(self._current())
