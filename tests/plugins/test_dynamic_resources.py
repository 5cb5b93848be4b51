"""DynamicResources for pods without claims: its answers, and its missing state."""

from __future__ import annotations

from moorage.framework.cycle_state import CycleState
from moorage.framework.status import SKIP, SUCCESS, error, unschedulable
from moorage.snapshot.pod_info import PodInfo
from tests.plugins.builders import cluster, make, node, pod


def test_a_pod_without_claims_is_skipped_and_scores_nothing():
    snapshot = cluster(node("a"), node("b"))
    plugin, _ = make("DynamicResources", snapshot)
    state, asked = CycleState(), PodInfo(pod())
    assert plugin.pre_enqueue(pod()) == SUCCESS
    assert plugin.pre_filter(state, asked, snapshot) == (None, SKIP)
    assert plugin.filter(state, asked, snapshot.all()) is None
    raw = plugin.score(state, asked, snapshot.all())
    assert raw.tolist() == plugin.normalize(state, asked, raw).tolist() == [0, 0]
    assert plugin.post_filter(state, asked, {}) == (
        None,
        unschedulable("no new claims to deallocate"),
    )
    assert plugin.reserve(state, asked, "a") == SUCCESS
    assert plugin.pre_bind_pre_flight(state, asked, "a") == SKIP
    assert plugin.pre_bind(state, asked, "a") == SUCCESS


def test_where_pre_filter_did_not_get_this_far_everything_later_is_an_error():
    plugin, _ = make("DynamicResources")
    state, asked = CycleState(), PodInfo(pod())
    assert plugin.post_filter(state, asked, {}) == (None, error("not found"))
    assert plugin.reserve(state, asked, "a") == error("not found")
    assert plugin.pre_bind_pre_flight(state, asked, "a") == error("not found")
