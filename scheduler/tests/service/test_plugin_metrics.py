"""Metrics that plugins keep themselves, read by their capability `own_metrics`."""

from __future__ import annotations

from collections import Counter, deque
from types import SimpleNamespace
from typing import Any

from moorage.framework.capabilities import Capabilities
from moorage.framework.plugin_metrics import Labels, PluginMetrics
from moorage.observe.series import Histogram
from moorage.service.process.metrics import sources_of_plugins

ERRORS = "scheduler_volume_scheduling_stage_error_total"
WAITS = "scheduler_dra_bindingconditions_wait_duration_seconds"


def profile(*told: PluginMetrics | None) -> Any:
    plugins = {f"P{i}": Capabilities(own_metrics=each) for i, each in enumerate(told)}
    return SimpleNamespace(capabilities=plugins)


def test_counters_of_all_profiles_are_added_up_as_they_are_now() -> None:
    one: Counter[Labels] = Counter({("bind",): 1, ("assume",): 2})
    other: Counter[Labels] = Counter({("bind",): 10})
    sources = sources_of_plugins(
        [
            profile(PluginMetrics(counters={ERRORS: one}), None),
            profile(None, PluginMetrics(counters={ERRORS: other})),
        ]
    )
    assert dict(sources[ERRORS]()) == {("bind",): 11, ("assume",): 2}
    one["bind",] += 5
    assert dict(sources[ERRORS]()) == {("bind",): 16, ("assume",): 2}


def test_observations_are_taken_out_and_stay_in_the_histogram() -> None:
    labels = ("default-scheduler", "gpu.example.com", "success")
    waits: deque[tuple[Labels, float]] = deque([(labels, 0.05), (labels, 3.0)])
    sources = sources_of_plugins([profile(PluginMetrics(observations={WAITS: waits}))])
    for _ in range(2):
        ((found, histogram),) = sources[WAITS]()
        assert isinstance(histogram, Histogram)
        assert (found, histogram.count, histogram.total, len(waits)) == (labels, 2, 3.05, 0)


def test_a_profile_without_metric_plugins_has_no_metric_sources() -> None:
    assert sources_of_plugins([profile(None), profile()]) == {}
