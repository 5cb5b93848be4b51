"""Extension points of a pod group's attempt: placements of the group, and making room for it.

Three optional methods of a plugin, found by their names in every enabled plugin; they run only in
attempts for groups. Weights of placement scores are the plugins' score weights, else 1.

Rules mirrored: kubernetes v1.36 ``staging/src/k8s.io/kube-scheduler/framework/interface.go``
(PlacementGenerate, PlacementScore) and the PostFilter of pod groups.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Protocol, runtime_checkable

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import StateKey
from moorage.framework.points import Plugin, ScoreArray
from moorage.framework.status import SUCCESS, Status, error
from moorage.snapshot.pod_groups import GroupKey, GroupTerms
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

ON_TRIAL: Final = "on trial"
CARRIED_OUT: Final = "carried out"

FAILED_RECENTLY: Final = "failed recently"
"""Part of the message of a member that is not tried because its group failed a moment ago."""

GROUP_PHASE: StateKey[str] = StateKey("group phase")
"""`ON_TRIAL` while Reserve and Permit of a member are taken back afterwards, so that no pod may be
allowed, rejected or activated on their account; `CARRIED_OUT` when they run for real, one member
after another. In that case every other member that can be tried is tried too. Absent for a pod on
its own.
"""


class Placement(msgspec.Struct, frozen=True):
    """Nodes among which all pods of a group are to be placed.

    Parameters
    ----------
    name
        For people: the value of the topology label.
    within
        The rows; None means every node.
    preferred
        Whether the placement is taken only if no other placement has nodes for more pods.
    """

    name: str = ""
    within: NodeView | None = None
    preferred: bool = False


class FilledPlacement(msgspec.Struct, frozen=True):
    """A placement, and the pods that found a node in the placement, each with its row."""

    placement: Placement
    pods: tuple[tuple[PodInfo, int], ...]


@runtime_checkable
class GroupGatePlugin(Plugin, Protocol):
    """Rejects members of a group before the group is tried."""

    def group_ready(self, pod: Pod) -> Status:
        """Return Success, or the rejection of an attempt with this pod.

        A rejected pod waits for the plugin's own events; the rest of its group is unchanged.
        """
        ...


@runtime_checkable
class PlacementGeneratePlugin(Plugin, Protocol):
    """Generates the placements to try.

    Of several such plugins the first counts that answers with anything but every node. In 1.37 the
    group goes to nodes that a placement of each of these plugins has.
    """

    def generate_placements(
        self, key: GroupKey, terms: GroupTerms | None
    ) -> tuple[Sequence[Placement], Status]:
        """Return placements, the better of equally scored placements first; Success or Error.

        Placements that are `preferred` stand before all others. No placement rejects the group.
        """
        ...


class GroupProgress(msgspec.Struct, frozen=True):
    """The state of a group's attempt: members with a place, earlier ones too, and members left.

    For each group of a composite group there is one, with its minimum: of pods, or of the groups
    below it, which are counted then.
    """

    placed: int
    remaining: int
    minimum: int | None = None


@runtime_checkable
class PlacementFeasiblePlugin(Plugin, Protocol):
    """Says, before the first member is tried and after each one, whether the group may be placed.

    In 1.37 only; of the plugins of Kubernetes only GangScheduling may have the method.
    """

    def placement_feasible(self, key: GroupKey, progress: GroupProgress) -> Status:
        """Return Success; Wait where later members may help; a rejection where none can; Error."""
        ...


@runtime_checkable
class PlacementScorePlugin(Plugin, Protocol):
    """Scores placements; asked once about all placements in which the group fits."""

    def score_placements(
        self, key: GroupKey, filled: Sequence[FilledPlacement]
    ) -> tuple[ScoreArray, Status]:
        """Return int64, (placements,), 0 to 100; Success or Error."""
        ...


class GroupWhatIf(Protocol):
    """The group's attempt without some pods, lent to a plugin that makes room for the group."""

    def without(self, uids: Collection[str]) -> Status:
        """Try the whole group again as if these pods were gone; no pod is evicted."""
        ...

    def put_back(self, pods: Sequence[PodInfo]) -> bool:
        """Put pods back that `without` took away, if the group fits all the same.

        In 1.36 the group is tried again. In 1.37 its members keep the places of `without`.
        """
        ...


@runtime_checkable
class GroupPostFilterPlugin(Plugin, Protocol):
    """Proposes victims when a group as a whole does not fit."""

    def post_filter_group(
        self, terms: GroupTerms | None, pods: Sequence[PodInfo], what_if: GroupWhatIf
    ) -> tuple[Sequence[Pod], Status]:
        """Return the pods to evict, most important first; Success, a rejection or Error."""
        ...


# -- placements of several plugins ---------------------------------------------------------------

SEPARATOR: Final = "/"
"""Stands between the names of the placements that were intersected."""


def merged_placements(
    snapshot: Snapshot, by_plugin: Sequence[tuple[str, Sequence[Placement]]]
) -> tuple[Sequence[Placement], Status]:
    """Return the common placements of plugins, as in 1.37; none where no nodes are common.

    Each plugin confines the group to one of its placements. So the group may go to the nodes that a
    placement of each plugin has: every combination with such nodes is a placement.

    Parameters
    ----------
    snapshot
        The cluster.
    by_plugin
        The placements of each plugin that confines the group, by its name, in order.

    Notes
    -----
    Kubernetes v1.37 ``pkg/scheduler/framework/runtime``, RunPlacementGeneratePlugins.
    """
    if len(by_plugin) == 1:
        return by_plugin[0][1], SUCCESS
    fault = _fault(by_plugin)
    if fault:
        return (), error(fault)
    placements: Sequence[Placement] = by_plugin[0][1]
    for _, others in by_plugin[1:]:
        placements = [
            common
            for one in placements
            for other in others
            if (common := _common(snapshot, one, other)) is not None
        ]
    return placements, SUCCESS


def _common(snapshot: Snapshot, one: Placement, other: Placement) -> Placement | None:
    """Return the nodes that two placements share as a placement; None for no node."""
    assert one.within is not None, f"placement {one.name} confines nothing"
    assert other.within is not None, f"placement {other.name} confines nothing"
    rows = np.intersect1d(one.within.row_numbers(), other.within.row_numbers())
    if not len(rows):
        return None
    return Placement(f"{one.name}{SEPARATOR}{other.name}", snapshot.rows(rows))


def _fault(by_plugin: Sequence[tuple[str, Sequence[Placement]]]) -> str:
    """Return why names of placements cannot be joined; "" if they can.

    The joined names have to tell the combinations apart.
    """
    owners: dict[str, str] = {}
    for plugin, placements in by_plugin:
        for each in placements:
            if each.within is None or not each.name:
                return f'plugin "{plugin}" returned a placement without a name or without bounds'
            if SEPARATOR in each.name:
                return (
                    f'plugin "{plugin}" returned placement "{each.name}": a name with '
                    f'"{SEPARATOR}" cannot be joined with those of other plugins'
                )
            if each.name in owners:
                return (
                    f'plugins "{owners[each.name]}" and "{plugin}" both returned placement '
                    f'"{each.name}"'
                )
            owners[each.name] = plugin
    return ""
