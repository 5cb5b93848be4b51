"""PreFilter for replicas: what reusable plugins answered is kept with the shape's entry.

Part of a `ShapeCache`. The plugins asked afresh mostly skip, as they did for the last replica;
then nothing has to be put together anew.
"""

from __future__ import annotations

from moorage.engine.shape_entry import Entry
from moorage.framework.cycle_state import CycleState
from moorage.framework.points import PreFilterPlugin
from moorage.framework.profile import Profile
from moorage.framework.runner import (
    PreFilterAnswer,
    PreFilterOutcome,
    pre_filter_one,
    run_pre_filter,
)
from moorage.framework.status import Code
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot


class KnownPreFilters:
    """Runs PreFilter for one profile, plugins answering from entries where they can.

    Parameters
    ----------
    profile, snapshot
        Whose plugins are asked, about what.
    fresh
        Names of the plugins whose answers are never reused.
    """

    def __init__(self, profile: Profile, snapshot: Snapshot, fresh: frozenset[str]) -> None:
        self._profile = profile
        self._snapshot = snapshot
        self._fresh = fresh
        self._asked = [plugin for plugin in profile.pre_filters if plugin.name in fresh]
        self._kept = len(profile.pre_filters) - len(self._asked)

    def run(self, entry: Entry, state: CycleState, pod: PodInfo) -> PreFilterOutcome:
        """Run PreFilter: plugins answer from the entry where they can.

        Where nobody has an objection the outcome is the one of the last such attempt in which
        the same plugins skipped; else the answers are put together as `run_pre_filter` does.
        """
        state.absorb(entry.state)
        answers: dict[str, PreFilterAnswer] = {}
        plain = entry.lets_every_node
        for plugin in self._asked if plain else ():
            answer = answers[plugin.name] = pre_filter_one(plugin, state, pod, self._snapshot)
            if not _is_plain(answer):
                plain = False
                break
        skipping = tuple([status.code is Code.SKIP for _, status in answers.values()])
        known = entry.outcomes.get(skipping) if plain else None
        if known is not None:
            outcome, state.skip_filter = known
            return outcome

        def ask(plugin: PreFilterPlugin) -> PreFilterAnswer:
            found = answers.get(plugin.name)
            return self._ask(entry, plugin, state, pod) if found is None else found

        outcome = run_pre_filter(self._profile, state, pod, self._snapshot, ask=ask)
        if plain:
            entry.outcomes[skipping] = outcome, state.skip_filter
        elif len(entry.pre_filters) == self._kept:
            entry.lets_every_node = all(map(_is_plain, entry.pre_filters.values()))
        return outcome

    def _ask(
        self, entry: Entry, plugin: PreFilterPlugin, state: CycleState, pod: PodInfo
    ) -> PreFilterAnswer:
        """Answer for a PreFilter plugin: from the entry, or by asking it."""
        if plugin.name in self._fresh:
            return pre_filter_one(plugin, state, pod, self._snapshot)
        known = entry.pre_filters.get(plugin.name)
        if known is None:
            entry.state.metered_like(state)
            known = pre_filter_one(plugin, entry.state, pod, self._snapshot)
            state.absorb(entry.state)
            if known[1].code is not Code.ERROR:
                entry.pre_filters[plugin.name] = known
        return known


def _is_plain(answer: PreFilterAnswer) -> bool:
    """Whether a plugin skips, or lets the attempt go on with every node."""
    result, status = answer
    if status.code is Code.SKIP:
        return True
    return status.code is Code.SUCCESS and (result is None or result.node_names is None)
