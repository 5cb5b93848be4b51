"""The hints of a profile: whose are asked about what, and the one nobody registered."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.own import LoadedConfiguration
from moorage.framework.points import EventRegistration
from moorage.framework.profile import Profile
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import build_core
from moorage.service.intake.hint_map import build_hints
from moorage.state.contracts import Hint
from scheduler.tests.service.build import pod

ADD = ClusterEvent(Resource.NODE, Action.ADD)
TAINT = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
BOTH = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
ADD_AND_LABEL = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
UPDATE = ClusterEvent(Resource.NODE, Action.UPDATE)
CLAIM = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
EVERYTHING = ClusterEvent(Resource.WILDCARD, Action.ALL)


class Registered(Profile):
    """A profile whose plugins registered these."""

    def __init__(self, **events: list[ClusterEvent]) -> None:
        self.events = events

    def registrations(self) -> dict[str, Any]:
        return {
            name: [EventRegistration(event, lambda *_: False) for event in events]
            for name, events in self.events.items()
        }


@pytest.mark.parametrize(
    ("events", "asked"),
    [
        pytest.param([ADD], [ADD, TAINT], id="added nodes: changed taints, too"),
        pytest.param(
            [ADD_AND_LABEL, CLAIM], [ADD_AND_LABEL, CLAIM, TAINT], id="added nodes among others"
        ),
        pytest.param([ADD, TAINT], [ADD, TAINT], id="taints are registered as well"),
        pytest.param([BOTH], [BOTH], id="taints in the same registration"),
        pytest.param([ADD, UPDATE], [ADD, UPDATE], id="taints as part of any update"),
        pytest.param([LABEL], [LABEL], id="no added nodes"),
        pytest.param([CLAIM], [CLAIM], id="no nodes"),
        pytest.param([EVERYTHING], [EVERYTHING], id="everything"),
        pytest.param([], [], id="no events: only the periodic flush moves its pods"),
    ],
)
def test_a_hint_for_added_nodes_counts_for_changed_taints(events, asked):
    hints = build_hints(Registered(Mine=events, Other=[CLAIM]))
    assert [each.event for each in hints if each.plugin == "Mine"] == asked
    assert [each.event for each in hints if each.plugin == "Other"] == [CLAIM]
    extra = [each for each in hints if each.event == TAINT and TAINT not in events]
    # Its answer is always Queue; the plugin's own hint was not made for it.
    assert all(each.hint is None for each in extra)
    own = [each.hint for each in hints if each not in extra]
    assert [hint and hint(pod(), None, None) for hint in own] == [Hint.SKIP] * len(own)


def test_a_changed_taint_retries_pods_that_lacked_room():
    core = build_core(
        LoadedConfiguration(), in_tree_registry(), clock=ManualClock(), streams=Streams(1)
    )
    core.queue.add(pod())
    queued = core.queue.pop()
    assert queued is not None
    queued.rejected_by(["NodeResourcesFit"])
    core.queue.add_unschedulable_if_not_present(queued)
    core.queue.move_all(TAINT, None, None)
    assert core.queue.counts().backoff == 1
