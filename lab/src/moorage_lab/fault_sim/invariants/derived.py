"""The columns of a scheduler, compared with those of a table that is built afresh.

A scheduler keeps its table by increments: each event changes a few cells. Here a table is built
from the objects that the watches have told, and from the pods that are assumed; every cell and
every index must be the same. So a wrong increment is found when it happens, and not when a decision
goes wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from moorage.service.scheduler import Scheduler
from moorage.snapshot.labels import ABSENT
from moorage.snapshot.schema import FIXED
from moorage.snapshot.table import NodeTable
from moorage_lab.fault_sim.cluster import SimCluster
from moorage_lab.fault_sim.invariants.inside import synced
from moorage_lab.fault_sim.invariants.invariant import Invariant

# Set columns are compared by content. A port that two pods share is freed by the first that goes,
# as upstream, so the ports of a node depend on its past.
_SETS = ("taints", "features", "ports")
_NUMBERS = tuple(key for key in FIXED if key not in _SETS)

Facts = dict[str, dict[str, Any]]


def differences(updated: NodeTable, afresh: NodeTable) -> Iterator[str]:
    """Yield what a table that was kept by increments says otherwise than a new one.

    Parameters
    ----------
    updated, afresh
        The tables.
    """
    resources = sorted({*updated.exact_limit, *afresh.exact_limit})
    one, other = _by_node(updated, resources, updated), _by_node(afresh, resources, updated)
    for name in sorted({*one, *other}):
        if name not in one or name not in other:
            yield f"node {name} is in one table only"
            continue
        for fact, value in other[name].items():
            if one[name][fact] != value:
                yield f"node {name}: {fact} is {one[name][fact]}, and {value} in a new table"
    for what, value in _of_all(afresh).items():
        if (said := _of_all(updated)[what]) != value:
            yield f"{what}: {said}, and {value} in a new table"


def _by_node(table: NodeTable, resources: list[str], like: NodeTable) -> Facts:
    """Return what the columns say of each node; the labels and selectors are those of `like`."""
    view = table.columns.view
    columns: dict[str, list[Any]] = {key: view(key).tolist() for key in _NUMBERS}
    for family in ("allocatable", "allocatable_float", "requested"):
        columns |= {f"{family} {name}": view((family, name)).tolist() for name in resources}
    for key in like.labels.keys:
        column = table.label_column(key)
        values = [None if each == ABSENT else column.values[each] for each in column.ids]
        columns[f"label {key}"] = values
    for selected in like.pods.count_keys:
        columns[f"count of {selected}"] = table.pods.counts(selected).tolist()
    columns["taints"] = [table.taints.at(row) for row in range(table.columns.n)]
    columns["features"] = [table.features.at(row) for row in range(table.columns.n)]
    columns["pods"] = [
        sorted((info.uid, info.pod.metadata.resource_version) for info in pods.values())
        for pods in table.pods_by_row
    ]
    columns["version"] = [node.metadata.resource_version for node in table.nodes]
    return {
        name: {fact: column[row] for fact, column in columns.items()}
        for row, name in enumerate(table.names)
    }


def _of_all(table: NodeTable) -> dict[str, Any]:
    """Return what the indexes of a table say."""
    volumes = table.volume_pods
    return {
        "hidden pods": sorted(info.uid for info in table.hidden_pods),
        "pods": table.pod_total,
        "affinity terms": {
            (each.kind, each.term, each.weight): (each.uses, each.counts()) for each in table.terms
        },
        "pods with volumes": {
            name: sorted(volumes.on_node(name)) for name in sorted(volumes.nodes())
        },
        "order of nodes": sorted(table.order.names()),
    }


def _afresh(scheduler: Scheduler) -> NodeTable:
    """Build a table from the objects that the watches of a scheduler have told."""
    parts, dump = scheduler.parts, scheduler.core.cache.dump()
    table = NodeTable()
    for node in parts.nodes.known_objects.values():
        table.add_node(node)
    for pod in parts.others[0].known_objects.values():
        if pod.spec.node_name and pod.uid not in dump.assumed:
            table.add_pod(pod, pod.spec.node_name)
    for uid in dump.assumed:
        table.add_pod(dump.pods[uid], dump.node_of_pod[uid])
    return table


def _inputs(scheduler: Scheduler) -> object:
    """Return what decides both tables: nothing is compared again before it changes."""
    parts, core = scheduler.parts, scheduler.core
    table = core.snapshot.table
    logs = (table.node_log, table.pod_log, table.version_log)
    objects = (*parts.nodes.known_objects.values(), *parts.others[0].known_objects.values())
    return (
        [each.metadata.resource_version for each in objects],
        core.cache.assumed(),
        [log.position for log in logs],
        table.columns.generation,
    )


def _derived(cluster: SimCluster) -> Iterable[str]:
    for scheduler in synced(cluster):
        inputs, oracle = _inputs(scheduler), cluster.oracles[scheduler]
        if oracle.compared != inputs:
            oracle.compared = inputs
            yield from differences(scheduler.core.snapshot.table, _afresh(scheduler))


DERIVED: tuple[Invariant[SimCluster], ...] = (
    Invariant(
        "derived",
        "What a scheduler keeps by increments equals what a new one would build.",
        "a snapshot that misses an update (kubernetes#89908)",
        _derived,
    ),
)
