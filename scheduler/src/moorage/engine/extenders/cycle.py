"""The scheduling cycle of a profile with HTTP extenders: the only attempts that await.

Events keep flowing while an extender is asked, and rows change. So an attempt searches twice. After
the first search it asks the extenders about the feasible nodes. After all answers it searches
again, without awaiting. It chooses a node that the extenders accepted and that still passes every
Filter; score, tie-break and assume see one state of the cluster, as in `cycle`. A pod that no
extender is interested in is decided by `cycle` alone.

Rules: scheduling spec, cycle sections 3.1, 3.5, 7 and 10 (kubernetes v1.36
``pkg/scheduler/schedule_one.go`` and ``pkg/scheduler/extender.go``).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.errors import ExtenderError
from moorage.engine.answers import Rejection, Rows
from moorage.engine.attempt import WHOLE, Attempt, CycleError, Scope
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, failed
from moorage.engine.extenders.replies import ExtenderReplies
from moorage.engine.notes.attempt_note import NOTHING_FOUND
from moorage.engine.search import Search, diagnose
from moorage.framework.diagnosis import NO_NODES
from moorage.framework.extender import EXTENDER, SCORE_FACTOR, Extender, Victims, take_part
from moorage.framework.points import PostFilterPlugin
from moorage.framework.preemption import NARROWING, Candidate, Narrowing
from moorage.framework.runner import PostFilterAnswer, PostFilterOutcome, post_filter_one
from moorage.framework.status import Code, Status, error, unresolvable, unschedulable
from moorage.snapshot.pod_info import PodInfo

_log = logging.getLogger(__name__)

_ROUNDS: Final = 3
"""Most rounds of asking extenders again because the nodes they accepted are gone. A guess."""

_MOVED: Final = "the nodes changed while extenders were asked about them"


OnReplies: TypeAlias = Callable[[PodInfo, ExtenderReplies], None]
"""(pod, the replies of the extenders about it): the callable changes neither."""


class ExtendedCycle(Cycle):
    """Decides with the help of extenders."""

    async def together(self, calls: Sequence[Awaitable[None]]) -> None:
        """Await several calls: one after another here, at once where there is an event loop."""
        for call in calls:
            await call

    def asking(self, pod: PodInfo, scope: Scope = WHOLE) -> Awaitable[Decision] | None:
        """Return the decision with extenders; None where no extender takes part."""
        return self.decide_asking(pod, scope) if self.asks(pod.pod) else None

    def asks(self, pod: Pod) -> bool:
        """Whether an extender takes part in the attempt of a pod."""
        return take_part(self.profile.extenders, pod)

    async def decide_asking(
        self,
        pod: PodInfo,
        scope: Scope = WHOLE,
        *,
        replies: ExtenderReplies | None = None,
        on_replies: OnReplies | None = None,
    ) -> Decision:
        """Choose a node that the extenders accept, or say why there is no such node.

        Parameters
        ----------
        pod, scope
            The pod, and the bounds of the attempt.
        replies
            The replies to the first question of this attempt, if it was asked already.
        on_replies
            Called with the replies of each round; None without a reader.
        """
        heard = ExtenderReplies()
        try:
            for _ in range(_ROUNDS):
                if self.snapshot.num_nodes == 0:
                    return failed(self.begin(pod, scope), unresolvable(NO_NODES))
                start = self._sampler.rotation.start
                heard, replies = replies or ExtenderReplies(), None
                if not heard.nodes_sent:
                    await self._ask_extenders(pod, scope, heard)
                if heard.failure:
                    return self.noted(failed(self.begin(pod, scope), error(heard.failure)), heard)
                if on_replies is not None:
                    on_replies(pod, heard)
                # From here on nothing is awaited while there is a node to choose.
                self._sampler.rotation.start = start
                search = self.search(self.begin(pod, scope), shortcut=bool(heard.only))
                rows = search.answers.feasible(search.view, search.filtered)
                accepted = self.accepted(rows, heard)
                if len(accepted):
                    return self.noted(self.choose(search, accepted, heard), heard)
                if not len(rows) or not self._moved(rows, heard):
                    return self.noted(await self._turned_away(search, heard), heard)
            return self.noted(failed(self.begin(pod, scope), error(_MOVED)), heard)
        except CycleError as broken:
            return self.noted(failed(self.begin(pod, scope), broken.status), heard)

    def noted(self, decision: Decision, heard: ExtenderReplies) -> Decision:
        """Return a decision whose note has the extenders' answers, if notes are written."""
        if self._notes is None:
            return decision
        note = NOTHING_FOUND if decision.note is None else decision.note
        names = self.snapshot.names
        nodes = [decision.node_name] if note.near is None else [names[r] for r in note.near.rows]
        answers = tuple([each.answer(nodes) for each in heard.answers.values()])
        note = msgspec.structs.replace(note, extenders=answers)
        return msgspec.structs.replace(decision, note=note)

    # -- asking --------------------------------------------------------------------------------

    async def _ask_extenders(self, pod: PodInfo, scope: Scope, heard: ExtenderReplies) -> None:
        """Search, and ask the extenders about the feasible nodes: the nominated node first."""
        search = self.search(self.begin(pod, scope))
        if search.nominated_row is not None:
            name = self.snapshot.names[search.nominated_row]
            heard.nodes_sent = (name,)
            try:
                heard.passed = await self._ask_filters(pod.pod, (name,), heard)
            except ExtenderError as problem:
                _log.info("%s cannot go to its nominated node %s: %s", pod.key, name, problem)
            if heard.passed:
                heard.only = name
                return
            search = self.search(self.begin(pod, scope), shortcut=False)
        rows = self.in_order(search, search.answers.feasible(search.view, search.filtered))
        heard.nodes_sent = tuple(map(self.snapshot.names.__getitem__, rows.tolist()))
        await self.ask_about_nodes(pod.pod, heard)

    async def ask_about_nodes(self, pod: Pod, heard: ExtenderReplies) -> None:
        """Ask which of the nodes pass, and for the scores of these nodes."""
        try:
            heard.passed = await self._ask_filters(pod, heard.nodes_sent, heard)
        except ExtenderError as problem:
            heard.failure = str(problem)
            return
        if len(heard.passed) > 1:
            await self._ask_scores(pod, heard)

    async def _ask_filters(
        self, pod: Pod, names: Sequence[str], heard: ExtenderReplies
    ) -> tuple[str, ...]:
        """Ask one extender after another, each about the nodes the previous extender accepted."""
        left = tuple(names)
        for extender in self.profile.extenders:
            left, nodes = self._still_there(left, heard)
            if not left:
                break
            if not (extender.filters and extender.interested(pod)):
                continue
            replies = heard.replies_of(extender)
            try:
                passed, failed, unresolved = await extender.filter(pod, nodes)
            except ExtenderError as problem:
                replies.failed(str(problem))
                if not extender.ignorable:
                    raise
                _log.info("extender %s is left out of filtering: %s", extender.name, problem)
                continue
            for name, text in failed.items():
                heard.statuses[name] = unschedulable(text)
            for name, text in unresolved.items():
                heard.statuses[name] = unresolvable(text)
            accepted = frozenset(passed)
            if len(accepted) < len(left):  # an extender accepts no node it was not asked about
                if self._notes is not None:
                    replies.filtered(left, accepted, heard.statuses)
                left = tuple(name for name in left if name in accepted)
        return left

    async def _ask_scores(self, pod: Pod, heard: ExtenderReplies) -> None:
        """Ask all extenders at once; an extender that fails adds no score."""
        _, nodes = self._still_there(heard.passed, heard)

        async def ask(extender: Extender) -> None:
            try:
                scores = await extender.prioritize(pod, nodes)
            except ExtenderError as problem:
                heard.replies_of(extender).failed(str(problem))
                _log.info("extender %s is left out of scoring: %s", extender.name, problem)
                return
            heard.replies_of(extender).scored(scores)
            heard.add_scores(scores, extender.weight * SCORE_FACTOR)

        scoring = [e for e in self.profile.extenders if e.prioritizes and e.interested(pod)]
        if scoring:
            await self.together([ask(extender) for extender in scoring])

    def _still_there(
        self, names: tuple[str, ...], heard: ExtenderReplies
    ) -> tuple[tuple[str, ...], list[Node]]:
        """Leave out the nodes that are gone, and return the objects of the others."""
        rows = heard.rows_of(names, self.snapshot.table)
        if len(rows) < len(names):
            names = tuple(self.snapshot.names[row] for row in rows)
        return names, list(map(self.snapshot.table.nodes.__getitem__, rows))

    # -- deciding ------------------------------------------------------------------------------

    def accepted(self, rows: Rows, heard: ExtenderReplies) -> Rows:
        """Return the rows that every extender accepted."""
        if not len(rows):
            return rows
        accepted = heard.rows_of(heard.passed, self.snapshot.table)
        return rows if len(accepted) == self.snapshot.num_nodes else rows[np.isin(rows, accepted)]

    def _moved(self, rows: Rows, heard: ExtenderReplies) -> bool:
        """Whether extenders were not asked about a feasible row, or an accepted node is gone."""
        asked = frozenset(heard.nodes_sent)
        return bool(heard.only) or any(self.snapshot.names[row] not in asked for row in rows)

    def choose(self, search: Search, rows: Rows, heard: ExtenderReplies) -> Decision:
        """Score the rows that every extender accepted, and take the best.

        Raises
        ------
        CycleError
            A plugin broke.
        """
        if search.notes is not None:
            search.notes.extended = True
        if len(rows) == 1:
            return self._taken(search, int(rows[0]))
        total_n = self.totals(search, rows)
        if heard.scores:
            total_n = total_n + heard.scores_at(rows, self.snapshot.table)
        return self.select(search, rows, total_n)

    async def _turned_away(self, search: Search, heard: ExtenderReplies) -> Decision:
        diagnosed = self._with_statuses(search, heard)
        diagnosis = diagnose(diagnosed)
        if diagnosed is not search:
            rejectors = diagnosis.unschedulable_plugins | {EXTENDER}
            diagnosis = msgspec.structs.replace(diagnosis, unschedulable_plugins=rejectors)
        after: PostFilterOutcome | None = None
        if search.attempt.wants_post_filter:
            after = await self._post_filter_asking(diagnosed, heard)
        return self.decision_of(diagnosed, Rejection(diagnosis, after))

    def _with_statuses(self, search: Search, heard: ExtenderReplies) -> Search:
        """Put the statuses with which extenders rejected feasible rows into the filter result.

        Preemption cannot help on a row without a reason, and such a row counts in no reason.
        """
        positions = np.flatnonzero(search.filtered.passed)
        if not len(positions):
            return search
        filtered, rows = search.filtered.copy(), search.view.row_numbers()
        intern = self.profile.handle.reasons.intern
        for position in positions.tolist():
            name = self.snapshot.names[int(rows[position])]
            status = heard.statuses.get(name)
            code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if status is None else status.code
            reason = 0 if status is None else intern(*status.reasons)
            filtered.extend(position, code, reason)
        return msgspec.structs.replace(search, filtered=filtered, known=None)

    # -- preemption ----------------------------------------------------------------------------

    async def _post_filter_asking(
        self, search: Search, heard: ExtenderReplies
    ) -> PostFilterOutcome:
        """Run PostFilter; where it finds candidates, let the extenders narrow them down.

        The plugin that finds them is asked twice, every other one at most once.
        """
        attempt = search.attempt
        state, pod = attempt.state, attempt.pod.pod
        asking = [e for e in self.profile.extenders if e.preempts and e.interested(pod)]
        if not asking:
            return self.post_filter(search)
        narrowing = Narrowing()
        state.write(NARROWING, narrowing)
        plugins = _AskedTwice(attempt, narrowing)
        outcome = self.post_filter(search, ask=plugins.until_offered)
        if narrowing.offered:
            await self._narrow(pod, narrowing, asking, heard)
            outcome = self.post_filter(search, ask=plugins.afterwards)
        state.delete(NARROWING)
        return outcome

    async def _narrow(
        self, pod: Pod, narrowing: Narrowing, asking: Sequence[Extender], heard: ExtenderReplies
    ) -> None:
        victims: Victims = {
            each.node_name: (tuple(info.pod for info in each.victims), each.violations)
            for each in narrowing.offered
        }
        for extender in asking:
            if not victims:
                break
            try:
                kept = await extender.preempt(pod, victims, on_node=self._pods_on)
                victims = _with_victims(extender, kept)
            except ExtenderError as problem:
                heard.replies_of(extender).failed(str(problem))
                if not extender.ignorable:
                    narrowing.set_remaining(failure=str(problem))
                    return
                _log.info("extender %s is left out of preemption: %s", extender.name, problem)
        narrowing.set_remaining([*self._candidates_of(victims)])

    def _candidates_of(self, victims: Victims) -> list[Candidate]:
        """Return the remaining candidates, without nodes and pods that are gone meanwhile."""
        candidates = []
        for name, (pods, violations) in victims.items():
            infos = (self.snapshot.table.pod_info(each.uid) for each in pods)
            there = tuple(info for info in infos if info is not None)
            if there and self.snapshot.row_of(name) is not None:
                candidates.append(Candidate(name, there, violations))
        return candidates

    def _pods_on(self, node_name: str) -> Sequence[Pod]:
        row = self.snapshot.row_of(node_name)
        return () if row is None else [info.pod for info in self.snapshot.pods(row)]


def _with_victims(extender: Extender, victims: Victims) -> Victims:
    """Leave out nodes that an ignorable extender named without victims.

    Raises
    ------
    ExtenderError
        Another extender named a node without victims.
    """
    for name, (pods, _) in victims.items():
        if not pods and not extender.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{name}"')
    return {name: entry for name, entry in victims.items() if entry[0]}


class _AskedTwice:
    """Asks PostFilter plugins until one offers candidates; goes on after the extenders' answer."""

    def __init__(self, attempt: Attempt, narrowing: Narrowing) -> None:
        self._state = attempt.state
        self._pod = attempt.pod
        self._narrowing = narrowing
        self._answers: dict[str, PostFilterAnswer] = {}

    def until_offered(
        self, plugin: PostFilterPlugin, statuses: Mapping[str, Status]
    ) -> PostFilterAnswer:
        """Ask a plugin, unless an earlier plugin has offered candidates: then the plugin waits."""
        if self._narrowing.offered:
            return None, unschedulable()
        answer = post_filter_one(plugin, self._state, self._pod, statuses)
        if not self._narrowing.offered:
            self._answers[plugin.name] = answer
        return answer

    def afterwards(
        self, plugin: PostFilterPlugin, statuses: Mapping[str, Status]
    ) -> PostFilterAnswer:
        """Repeat earlier answers; ask the plugin that offered, and the plugins after it."""
        answer = self._answers.get(plugin.name)
        if answer is None:
            return post_filter_one(plugin, self._state, self._pod, statuses)
        return answer
