"""A try of a group with sub-groups: the tree of its parts, each part placed next to those before.

The members of a part are placed one after another. A part that stays incomplete is taken off its
nodes, so that others get its room. A part with a topology is tried in one domain after another,
until it is complete. Pods beyond the minima come last, once the root is complete: no part takes
more than it needs before all have what they need.

The groups of a composite group are placed so, too, but for the pods beyond the minima: each group
takes as many places as it can get.

Facts: kubernetes v1.37 ``pkg/scheduler/schedule_one_podgroup.go``. The order of the parts is that
of their pods here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Final, TypeAlias, cast

import msgspec

from moorage.engine.attempt import Scope
from moorage.engine.cycle import Cycle
from moorage.engine.groups.decision import GROUP_UNSCHEDULABLE, Member, PartOutcome
from moorage.engine.groups.placements import domains_listed, pods_wanted
from moorage.engine.groups.sub_groups.domains import domains_of, taken_domain
from moorage.engine.groups.trying import MembersOnTrial, Steps, Suspendable
from moorage.framework.group import GroupProgress
from moorage.framework.points import Plugin
from moorage.framework.runner import run_placement_feasible
from moorage.framework.status import SUCCESS, Status, unschedulable
from moorage.snapshot.pod_groups import GroupTerms
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.sub_groups.parts import Part

NOT_TRIED: Final = "the group was not tried: the composite group has too few places without it"

PartSteps: TypeAlias = Generator[Suspendable | None, None, bool]
"""A try of a part that stops after each member; it returns whether the part is complete."""


class SubGroups:
    """Tries groups with sub-groups.

    Parameters
    ----------
    cycle
        The cycle of the members' profile.
    """

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle

    def tried(
        self,
        terms: GroupTerms,
        pods: Sequence[PodInfo],
        scope: Scope,
        scopes: Mapping[str, Scope],
    ) -> Steps:
        """Place the pods of each part; undo every placement.

        Parameters
        ----------
        terms
            The demands of the group.
        pods
            Its pods without a place.
        scope
            The bounds for pods that may go anywhere.
        scopes
            The bounds of pods whose places are known, by uid. Then no topology is asked.
        """
        assert terms.parts is not None, "a group without sub-groups"
        with MembersOnTrial(self._cycle.profile, self._cycle.snapshot) as tried:
            attempt = _Try(self._cycle, tried, terms, pods, scopes)
            complete = yield from attempt.part(terms.parts.root, scope)
            # A minimum of the whole group may be larger than those of its parts together.
            complete = complete and (yield from attempt.others())
            complete = complete and tried.placed >= attempt.missing
            if terms.parts.composite:
                complete = complete and tried.placed > 0
                tried.end(complete=complete, status=attempt.status_of(terms.parts.root))
            else:
                tried.end(complete=complete)
            decision = msgspec.structs.replace(
                tried.group_decision(), parts=attempt.outcomes(complete=complete)
            )
        if complete:
            return decision
        generator = self._generator(terms) if terms.parts.confined else ""
        return msgspec.structs.replace(decision, detail=attempt.detail(), generator=generator)

    def _generator(self, terms: GroupTerms) -> str:
        """Return the plugin whose events may give a sub-group another domain; "" for none."""
        profile = self._cycle.profile
        generators = cast("Sequence[Plugin]", profile.points["placementGenerate"])
        names = [plugin.name for plugin in generators]
        holder = profile.group_holders.get(terms.key.source, "")
        return holder if holder in names else next(iter(names), "")


class _Try:
    """One try of the parts of a group."""

    def __init__(
        self,
        cycle: Cycle,
        tried: MembersOnTrial,
        terms: GroupTerms,
        pods: Sequence[PodInfo],
        scopes: Mapping[str, Scope],
    ) -> None:
        parts = terms.parts
        assert parts is not None, "a group without sub-groups"
        self._cycle = cycle
        self._key = terms.key
        self._parts = parts
        self._tried = tried
        self._scopes = scopes
        self._pods: dict[str, list[PodInfo]] = {}
        for pod in pods:
            self._pods.setdefault(parts.part_of(pod.pod), []).append(pod)
        self._ranks = {name: rank for rank, name in enumerate(self._pods)}
        members = cycle.snapshot.groups.members(terms.key)
        self._placed: dict[str, list[str]] = {}
        for uid in members.placed_uids():
            self._placed.setdefault(parts.part_of(members.pods[uid]), []).append(uid)
        self.missing = max(0, terms.minimum - members.placed)
        self._why: dict[str, str] = {}
        # The last status of each part, by name and whether it is made of parts.
        self._statuses: dict[tuple[str, bool], Status] = {}
        # The bounds of the leaves that are complete: further pods go there, too.
        self._open: dict[str, Scope] = {}

    def detail(self) -> str:
        """Return which part has no places, and why, for people; "" where none says so."""
        whys = list(self._why.values())
        more = len(whys) - 1
        others = f"; {more} more {'has' if more == 1 else 'have'} no places" if more > 0 else ""
        return f"{whys[0]}{others}" if whys else ""

    def status_of(self, part: Part) -> Status:
        """Return why a part is not complete, or Success; Success for one that was not tried."""
        return self._statuses.get((part.name, part.of_parts), SUCCESS)

    def outcomes(self, *, complete: bool) -> tuple[PartOutcome, ...]:
        """Return the outcome for each group of a composite group, the composite group first.

        A part of a group that has no places has none either.
        """
        if not self._parts.composite:
            return ()
        outcomes, root = list[PartOutcome](), self._parts.root
        above = SUCCESS if complete else unschedulable(GROUP_UNSCHEDULABLE)
        left = [(root, above)]
        while left:
            part, above = left.pop()
            own = self._statuses.get((part.name, part.of_parts), unschedulable(NOT_TRIED))
            status = above if own.ok else own
            if part is root and complete:
                status = SUCCESS
            outcomes.append(PartOutcome(part.name, part.of_parts, status))
            left += [(each, status) for each in reversed(part.parts)]
        return tuple(outcomes)

    # -- one part ------------------------------------------------------------------------------

    def part(self, part: Part, scope: Scope) -> PartSteps:
        """Place the pods of a part and of all parts below it, in one domain if it asks for that."""
        if not part.topology_key or self._scopes:
            return (yield from self._anywhere(part, scope))
        return (yield from self._in_one_domain(part, scope))

    def _anywhere(self, part: Part, scope: Scope) -> PartSteps:
        if not part.of_parts:
            return (yield from self._leaf(part, scope))
        complete, left = 0, len(part.parts)
        for child in sorted(part.parts, key=self._rank):
            number = self._tried.number
            done = yield from self.part(child, scope)
            if self._tried.broken:
                return False
            complete, left = complete + done, left - 1
            if not done:
                for leaf in child.leaves():
                    self._open.pop(leaf.name, None)
                taken = self._tried.back_to(number)
                self._tried.leave_out(taken, f"sub-group {child.name} has too few places")
            if complete + left < part.minimum:
                break
        self._note(part, complete, left)
        return complete >= part.minimum

    def _leaf(self, part: Part, scope: Scope) -> PartSteps:
        """Place as many pods of a leaf as it needs; of a PodGroup, as many as have a place."""
        number, tried, every = self._tried.number, self._tried, self._parts.composite
        before, pods = len(self._placed.get(part.name, ())), self._pods.get(part.name, ())
        placed, left = before, len(pods)
        for pod in pods:
            if (placed >= part.minimum and not every) or (every and placed + left < part.minimum):
                break
            if not (yield from self._place(pod, scope)):
                return False
            placed, left = before + tried.placed_after(number), left - 1
        self._note(part, placed, left)
        if placed < part.minimum:
            self._why[part.name] = _reason(part, placed, tried.members_after(number))
            return False
        self._why.pop(part.name, None)
        self._open[part.name] = scope
        return True

    def _note(self, part: Part, placed: int, left: int) -> None:
        """Note what the plugins say of a part of a composite group."""
        if self._parts.composite:
            progress = GroupProgress(placed, left, part.minimum)
            status = run_placement_feasible(self._cycle.profile, self._key, progress)
            self._statuses[part.name, part.of_parts] = status

    def _place(self, pod: PodInfo, scope: Scope) -> PartSteps:
        """Place a pod if it has a place; False if no other pod is to be tried."""
        if not self._tried.add(self._cycle.decide(pod, self._scopes.get(pod.uid, scope))):
            return False
        yield self._tried
        return True

    def others(self) -> PartSteps:
        """Place the pods that complete parts do not need, each in the domain of its part."""
        tried = {each.decision.pod.uid for each in self._tried.members_after(0)}
        for name, scope in self._open.items():
            for pod in self._pods.get(name, ()):
                if pod.uid not in tried and not (yield from self._place(pod, scope)):
                    return False
        return True

    # -- topology ------------------------------------------------------------------------------

    def _in_one_domain(self, part: Part, scope: Scope) -> PartSteps:
        """Try the domains; no pod is evicted for a place in one."""
        leaves = [leaf.name for leaf in part.leaves()]
        pods = [pod for name in leaves for pod in self._pods.get(name, ())]
        placed = [uid for name in leaves for uid in self._placed.get(name, ())]
        taken, fault = taken_domain(self._cycle, part.topology_key, placed)
        if fault:
            self._why[part.name] = f"sub-group {part.name}: {fault}"
            self._statuses[part.name, part.of_parts] = unschedulable(self._why[part.name])
            return False
        counts = Counter({name: len(self._placed.get(name, ())) for name in leaves})
        missing = part.missing(counts)
        tried, results = self._tried, dict[str, str]()
        domains = domains_of(self._cycle, part.topology_key, pods, scope.within, taken)
        # A part that fits nowhere is tried once for its reasons, where most pods could fit.
        most = max((domain.bound for domain in domains), default=0)
        fullest, placed_most = list[Member](), -1
        for domain in domains:
            if domain.bound < missing and (most >= missing or placed_most >= 0):
                results[domain.name] = f"at most {domain.bound}"
                continue
            within = msgspec.structs.replace(scope, within=domain.within, post_filter=False)
            number = tried.number
            complete = yield from self._anywhere(part, within)
            if complete or tried.broken:
                self._forget(leaves)
                return complete
            count = tried.placed_after(number)
            results[domain.name] = str(count)
            members = tried.back_to(number)
            if count > placed_most:
                fullest, placed_most = members, count
            yield tried
        self._forget(leaves)
        tried.put_back(fullest)
        why = self._why[part.name] = self._no_domain(part, missing, taken, results)
        self._statuses[part.name, part.of_parts] = unschedulable(why)
        return False

    def _forget(self, leaves: Sequence[str]) -> None:
        """Forget the reasons of leaves in single domains."""
        for name in leaves:
            self._why.pop(name, None)

    def _no_domain(
        self, part: Part, missing: int, taken: str | None, results: Mapping[str, str]
    ) -> str:
        wanted, key = pods_wanted(missing), part.topology_key
        if not results:
            return f"sub-group {part.name}: no node has the label {key}"
        if taken is not None:
            return (
                f"sub-group {part.name}: its pods run in {taken} of {key}, which takes "
                f"{results[taken]} of {wanted}"
            )
        listed = domains_listed(list(results.items()))
        return f"sub-group {part.name}: no domain of {key} takes {wanted} ({listed})"

    def _rank(self, part: Part) -> int:
        """Return the place of a part's first pod in the order of the pods."""
        return min(
            (self._ranks.get(leaf.name, len(self._ranks)) for leaf in part.leaves()), default=0
        )


def _reason(part: Part, placed: int, members: Sequence[Member]) -> str:
    """Return why a leaf has too few places."""
    without = [each for each in members if not each.node_name]
    begin = f"sub-group {part.name}: {placed} of {part.minimum} pods needed have a place"
    if not without:
        return begin
    others = f" and {len(without) - 1} more have" if len(without) > 1 else " has"
    return f"{begin}, {without[0].decision.pod.key}{others} none: {without[0].message}"
