"""``moorage.Cluster``: a cluster in memory for Python programs, where pods can be placed.

The scheduler's own parts decide, as in `run`, with a model that stays from one call to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from moorage.api.codec import decode
from moorage.api.pod import Pod
from moorage.base.errors import ConfigError, UsageError
from moorage.config.load import load_config
from moorage.plugins.from_outside import with_plugins
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage_lab.traces.arrivals import Planned, most_common
from moorage_lab.traces.columns import Coming
from moorage_lab.traces.fragmentation import fragmentation
from moorage_lab.traces.inputs import START_NS, Preparing
from moorage_lab.traces.sources import manifests_of
from moorage_lab.traces.tables import Table

_SHARE_OF_PODS = 0.95

Manifests = str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]]
"""A YAML or JSON text with objects in it, a file, an object, or several."""


class Cluster:
    """Nodes, pods and other objects in memory, and a scheduler that decides about them.

    Parameters
    ----------
    objects
        What is in the cluster.
    config
        The scheduler's configuration file; the default profile if None.
    plugins
        Plugins from outside, such as ``file.py:name``.
    seed
        Decides among equally good nodes.

    Raises
    ------
    ConfigError
        An object cannot be read, or the configuration has faults; every fault is listed.
    UsageError
        A plugin cannot be loaded, or there are no nodes.

    Examples
    --------
    >>> import moorage
    >>> node = {
    ...     "apiVersion": "v1",
    ...     "kind": "Node",
    ...     "metadata": {"name": "n1"},
    ...     "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    ... }
    >>> pod = {
    ...     "apiVersion": "v1",
    ...     "kind": "Pod",
    ...     "metadata": {"name": "web"},
    ...     "spec": {"containers": [{"name": "main", "image": "web"}]},
    ... }
    >>> moorage.Cluster([node]).place(pod).columns["node"]
    ['n1']
    """

    def __init__(
        self,
        objects: Iterable[Mapping[str, Any]],
        *,
        config: str | Path | None = None,
        plugins: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        self._preparing = Preparing()
        for each in objects:
            self._preparing.add_object(dict(each))
        self._refuse()
        if not self._preparing.objects.nodes:
            raise UsageError("there are no nodes in the cluster")
        known = with_plugins(load_config(config), plugins)
        inputs = ClusterInputs(
            objects=self._preparing.objects,
            registry=known.registry,
            config=known.config,
            seed=seed,
            now_ns=START_NS,
        )
        self._model = ClusterModel(inputs)
        self._model.settle()

    @classmethod
    def from_dump(
        cls,
        file: str | Path,
        *,
        config: str | Path | None = None,
        plugins: Sequence[str] = (),
        seed: int = 0,
    ) -> Self:
        """Return the cluster of a dump: `moorage snapshot save`, or a List of kubectl.

        Pods of the dump that have no node are tried at once.

        Parameters
        ----------
        file
            JSON or YAML.
        config, plugins, seed
            As of the class.
        """
        return cls(manifests_of(str(file)), config=config, plugins=plugins, seed=seed)

    def place(self, pods: Manifests) -> Table:
        """Put pods into the cluster, and let the scheduler decide until nothing moves any more.

        Returns
        -------
        Table
            Namespace, name, node ("" for none) and reason of each of the pods.

        Raises
        ------
        ConfigError
            A server would refuse one of the pods; none of them is put.
        UsageError
            The text is no text of objects, or one of them is no pod.
        """
        found = _listed(pods)
        others = sorted({str(each.get("kind")) for each in found} - {"Pod"})
        if others:
            raise UsageError(f"only pods are placed, and there is a {', a '.join(others)}")
        coming = self._preparing.coming([Coming(dict(each)) for each in found])
        self._refuse()
        new = [decode(Pod, each.pod) for each in coming]
        taken = [pod.full_name for pod in new if pod.key in self._model.objects.pods]
        if taken:
            raise UsageError(f"there is a pod {', '.join(taken)} already")
        put = [self._model.add_pod(pod) for pod in new]
        self._model.settle()
        return self._placements(put)

    def fragmentation(self) -> dict[str, float]:
        """Return the share of each free resource that the usual pods of the cluster cannot use.

        Returns
        -------
        dict
            From 0 to 1, by resource; the usual pods are the most common requests, of 95 % of the
            pods in the cluster, with a node or without.
        """
        pods = list(self._model.objects.pods.values())
        shapes = most_common([Planned(0.0, pod, None, 0) for pod in pods], share=_SHARE_OF_PODS)
        asked = {name for amounts, _ in shapes for name, amount in amounts.items() if amount}
        snapshot = self._model.half.core.snapshot
        return fragmentation(snapshot, shapes, sorted(asked, key=lambda name: ("/" in name, name)))

    @property
    def pods(self) -> Table:
        """Every pod: namespace, name, node and reason."""
        return self._placements(self._model.objects.pods.values())

    @property
    def nodes(self) -> Table:
        """A row a node and resource: what it offers, and what its pods request."""
        snapshot = self._model.half.core.snapshot
        rows = []
        for row in range(snapshot.num_nodes):
            node = snapshot.node(row)
            for resource in sorted(node.status.allocatable):
                offered = int(snapshot.allocatable(resource)[row])
                requested = int(snapshot.requested(resource)[row])
                if resource == "pods":
                    offered = int(snapshot.allowed_pods[row])
                    requested = int(snapshot.pod_count[row])
                rows.append((node.name, resource, requested, offered))
        names = ("node", "resource", "requested", "allocatable")
        return Table({name: [row[n] for row in rows] for n, name in enumerate(names)})

    def _placements(self, pods: Iterable[Pod]) -> Table:
        reasons = self._model.reasons()
        rows = []
        for pod in pods:
            now = self._model.current(pod)
            node = "" if now is None else now.spec.node_name
            gone = "it was evicted" if now is None else reasons.get(pod.uid, "it was not tried yet")
            rows.append((pod.namespace, pod.name, node, "" if node else gone))
        names = ("namespace", "name", "node", "reason")
        return Table({name: [row[n] for row in rows] for n, name in enumerate(names)})

    def _refuse(self) -> None:
        faults, self._preparing.left_out = self._preparing.left_out, []
        if faults:
            raise ConfigError(faults)

    def __repr__(self) -> str:
        objects = self._model.objects
        return f"Cluster of {len(objects.nodes)} nodes and {len(objects.pods)} pods"

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>{self.nodes.to_html(most=20)}"


def _listed(pods: Manifests) -> list[Mapping[str, Any]]:
    if isinstance(pods, Mapping):
        return [pods]
    if isinstance(pods, str | Path):
        is_text = isinstance(pods, str) and ("\n" in pods or pods.lstrip().startswith("{"))
        return [*manifests_of(str(pods), text=str(pods).encode() if is_text else None)]
    return list(pods)
