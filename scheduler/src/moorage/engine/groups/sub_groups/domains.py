"""The topology domains in which one sub-group is tried: the fullest with room for it first."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage.engine.cycle import Cycle
from moorage.engine.groups.numbers import GroupNumbers, ViewSums
from moorage.engine.groups.room import judges_of_room, places
from moorage.snapshot.labels import ABSENT
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView


class Domain(msgspec.Struct, frozen=True):
    """The nodes with one value of a label.

    Parameters
    ----------
    name
        The value.
    within
        The nodes.
    bound
        A number of pods that is never exceeded by those that fit.
    """

    name: str
    within: NodeView
    bound: int


def domains_of(
    cycle: Cycle, key: str, pods: Sequence[PodInfo], within: NodeView | None, only: str | None
) -> list[Domain]:
    """Return the domains of a label, in the order in which they are tried.

    Parameters
    ----------
    cycle
        The cycle of the pods' profile, on the cluster as it is on trial.
    key
        The node label.
    pods
        The pods that are tried.
    within
        The nodes to choose from; None for all.
    only
        The one domain to return; None for every domain.
    """
    snapshot = cycle.snapshot
    rows = (snapshot.all() if within is None else within).row_numbers()
    by_name = {
        name: snapshot.rows(part)
        for name, part in snapshot.label_column(key).rows_by_value(rows)
        if only is None or name == only
    }
    views = list(by_name.values())
    if not views:
        return []
    bounds, rooms = [len(pods)] * len(views), [0] * len(views)
    if pods and judges_of_room(cycle.profile):
        sums = ViewSums(views)
        bounds = GroupNumbers(cycle, pods).bounds(sums)
        rooms = sums.of(places(snapshot, pods)).tolist()
    ranked = sorted(
        zip(by_name, views, bounds, rooms, strict=True),
        key=lambda each: (
            each[2] < len(pods),
            each[3] if each[2] >= len(pods) else -each[2],
            each[0].encode(),
        ),
    )
    return [Domain(name, view, bound) for name, view, bound, _ in ranked]


def taken_domain(cycle: Cycle, key: str, uids: Sequence[str]) -> tuple[str | None, str]:
    """Return the domain of pods that have a node (None for no pods), and what is wrong or "".

    Parameters
    ----------
    cycle
        The cycle of the pods' profile.
    key
        The node label.
    uids
        The pods.
    """
    table, column = cycle.snapshot.table, cycle.snapshot.label_column(key)
    taken: str | None = None
    for uid in uids:
        row, info = table.row_of(table.node_of_pod(uid) or ""), table.pod_info(uid)
        if row is None or info is None:
            continue
        value = int(column.ids[row])
        if value == ABSENT:
            return None, f"pod {info.key} runs on a node without the label {key}"
        if taken is not None and column.values[value] != taken:
            return None, f"pods run in two domains of {key}: {taken}, {column.values[value]}"
        taken = column.values[value]
    return taken, ""
