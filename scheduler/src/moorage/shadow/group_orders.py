"""Says whether the configuration takes the real nodes of a group's members, in some order.

The members of a group are decided about one after another, each next to those before it. A watch
shows no order, so every order is tried on the state without the members. A group agrees if one
order leads to the real nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.groups.placements import Placements
from moorage.shadow.deciding import Decider, Why
from moorage.shadow.moments import Binding
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.trial import Trial

# A group of equal pods needs about one decision for each; the bound is for unlike pods.
_DECISIONS_MOST: Final = 512


class OtherNode(msgspec.Struct, frozen=True):
    """The configuration's node for a member, and why not the real one."""

    node: str
    why: Why


class _TooManyOrdersError(Exception):
    """There were more orders than are tried."""


class GroupOrders:
    """Compares groups; nothing is kept.

    Parameters
    ----------
    decider
        Decides about one pod at a time.
    snapshot
        The cluster, with all members where they really are.
    """

    def __init__(self, decider: Decider, snapshot: Snapshot) -> None:
        self._decider = decider
        self._snapshot = snapshot

    def may_go_anywhere(self, key: GroupKey, cycle: Cycle) -> bool:
        """Whether nothing confines the members of a group to some nodes."""
        terms = self._snapshot.groups.source.terms_of(key)
        if terms is None or terms.parts is not None:
            return False
        placements, status, _ = Placements(cycle).generated(key)
        return status.ok and all(each.within is None for each in placements)

    def compare(self, members: Sequence[Binding]) -> dict[str, OtherNode] | None:
        """Return the members for which no order leads to the real node, by uid.

        Returns
        -------
        dict or None
            Empty where an order leads to the real nodes of all. None where that is not known: not
            all orders were tried, or the configuration finds no nodes for all members one by one.
        """
        if any(self._snapshot.row_of(each.node) is None for each in members):
            return None
        with self._snapshot.trial() as trial:
            for each in members:
                trial.remove_pod(each.pod.uid)
            search = _Search(self._decider, self._snapshot, trial)
            try:
                if search.leads_to_all(tuple(members)):
                    return {}
            except _TooManyOrdersError:
                return None
            return search.others(members)


class _Search:
    """The orders of one group, in a trial without its members."""

    def __init__(self, decider: Decider, snapshot: Snapshot, trial: Trial) -> None:
        self._decider = decider
        self._snapshot = snapshot
        self._trial = trial
        self._decisions_left = _DECISIONS_MOST
        self._before: tuple[Binding, ...] = ()
        self._longest: tuple[Binding, ...] = ()
        # Sets of members that were placed and led nowhere.
        self._failed: set[frozenset[str]] = set()

    def leads_to_all(self, left: tuple[Binding, ...]) -> bool:
        """Whether an order of the members that are left leads to their real nodes."""
        if len(self._before) > len(self._longest):
            self._longest = self._before
        if not left:
            return True
        placed = frozenset(each.pod.uid for each in self._before)
        if placed in self._failed:
            return False
        for at, member in enumerate(left):
            if not self._takes(member):
                continue
            self._place(member, member.node)
            self._before = (*self._before, member)
            try:
                if self.leads_to_all(left[:at] + left[at + 1 :]):
                    return True
            finally:
                self._before = self._before[:-1]
                self._trial.remove_pod(member.pod.uid)
        self._failed.add(placed)
        return False

    def others(self, members: Sequence[Binding]) -> dict[str, OtherNode] | None:
        """Return the nodes of the members that the longest order leaves; None without nodes."""
        for each in self._longest:
            self._place(each, each.node)
        left = [each for each in members if each not in self._longest]
        nodes = {each.pod.uid: self._other_node(each) for each in left}
        for each in left:
            decision = self._decider.decide(each.pod)
            if not isinstance(decision, Decision) or decision.outcome is not Outcome.BIND:
                return None
            self._place(each, decision.node_name)
        return {uid: other for uid, other in nodes.items() if other is not None}

    def _takes(self, member: Binding) -> bool:
        if not self._decisions_left:
            raise _TooManyOrdersError
        self._decisions_left -= 1
        return self._decider.may_take(member.pod, member.node)

    def _other_node(self, member: Binding) -> OtherNode | None:
        decision = self._decider.decide(member.pod, member.node)
        if not isinstance(decision, Decision):
            return None
        why = self._decider.why_not(member.pod, member.node, decision)
        return OtherNode(decision.node_name, why)

    def _place(self, member: Binding, node: str) -> None:
        row = self._snapshot.row_of(node)
        assert row is not None, f"node {node} is known"
        self._trial.add_pod(member.pod, row)
