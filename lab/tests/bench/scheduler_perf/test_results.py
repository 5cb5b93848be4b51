"""Data items: percentiles, thresholds, histograms, and the sampled throughput."""

from __future__ import annotations

from moorage.api.meta import ObjectMeta
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage_lab.bench.scheduler_perf.cases import (
    LabelValues,
    MetricsCollectorConfig,
    ThresholdMetric,
)
from moorage_lab.bench.scheduler_perf.data_items import (
    DataItem,
    apply_threshold,
    document,
    percentiles,
)
from moorage_lab.bench.scheduler_perf.histograms import histogram_items
from moorage_lab.bench.scheduler_perf.pod_tallies import CountedPod, PodSpecPart
from moorage_lab.bench.scheduler_perf.throughput import Throughput
from moorage_sandbox.testing.virtual_loop import run_virtual

PAGE = """
# TYPE scheduler_a_duration_seconds histogram
scheduler_a_duration_seconds_bucket{result="ok",profile="p",le="0.001"} 0.0
scheduler_a_duration_seconds_bucket{result="ok",profile="p",le="0.002"} 8.0
scheduler_a_duration_seconds_bucket{result="ok",profile="p",le="+Inf"} 10.0
scheduler_a_duration_seconds_count{result="ok",profile="p"} 10.0
scheduler_a_duration_seconds_sum{result="ok",profile="p"} 0.05
scheduler_a_duration_seconds_bucket{result="ok",profile="q",le="0.001"} 0.0
scheduler_a_duration_seconds_bucket{result="ok",profile="q",le="0.002"} 10.0
scheduler_a_duration_seconds_bucket{result="ok",profile="q",le="+Inf"} 10.0
scheduler_a_duration_seconds_count{result="ok",profile="q"} 10.0
scheduler_a_duration_seconds_sum{result="ok",profile="q"} 0.01
scheduler_a_duration_seconds_bucket{result="none",profile="q",le="+Inf"} 0.0
scheduler_a_duration_seconds_count{result="none",profile="q"} 0.0
scheduler_a_duration_seconds_sum{result="none",profile="q"} 0.0
# TYPE scheduler_b_duration_seconds histogram
scheduler_b_duration_seconds_bucket{le="1"} 1.0
scheduler_b_duration_seconds_bucket{le="+Inf"} 1.0
scheduler_b_duration_seconds_count 1.0
scheduler_b_duration_seconds_sum 0.5
"""


def item(metric: str, **data: float) -> DataItem:
    """Return a data item of a workload."""
    return DataItem(data, "pods/s", {"Name": "B/a/w/n", "Metric": metric})


def test_percentiles_are_samples() -> None:
    assert percentiles([4, 1, 3, 2]) == {
        "Average": 2.5,
        "Perc50": 2,
        "Perc90": 4,
        "Perc95": 4,
        "Perc99": 4,
    }


def test_the_document_has_the_fields_of_the_suite() -> None:
    assert document([item("m", Average=1.0)]) == {
        "version": "v1",
        "dataItems": [
            {
                "data": {"Average": 1.0},
                "unit": "pods/s",
                "labels": {"Name": "B/a/w/n", "Metric": "m"},
            }
        ],
    }


def test_every_item_of_a_document_has_every_label() -> None:
    """The suite's dashboard shows only items that have the chosen value of each label."""
    other = DataItem({"Average": 1.0}, "ms", {"Name": "n", "Metric": "m", "result": "scheduled"})
    labels = [each["labels"] for each in document([item("x", Average=1.0), other])["dataItems"]]
    assert labels == [
        {"Name": "B/a/w/n", "Metric": "x", "result": "not applicable"},
        {"Name": "n", "Metric": "m", "result": "scheduled"},
    ]


def test_a_threshold_is_added_and_a_miss_is_told() -> None:
    good, bad, other = item("m", Average=9.0), item("m", Average=5.0), item("x", Average=1.0)
    selected = ThresholdMetric(name="m", data_bucket="Average")
    missed = apply_threshold([good, bad, other], 7, selected)
    assert missed == ["B/a/w/n: expected m Average to be higher: got 5.0, want 7"]
    assert [each.data.get("AverageThreshold") for each in (good, bad, other)] == [7, 7, None]


def test_a_threshold_may_be_an_upper_bound_of_a_labelled_metric() -> None:
    found = DataItem({"Perc99": 9.0}, "ms", {"Name": "n", "Metric": "m", "result": "ok"})
    selected = ThresholdMetric(
        name="m", data_bucket="Perc99", expect_lower=True, labels={"result": "ok"}
    )
    assert apply_threshold([found], 7, selected) == [
        "n: expected m Perc99 to be lower: got 9.0, want 7"
    ]
    assert apply_threshold([found], 0, selected) == []
    elsewhere = ThresholdMetric(name="m", data_bucket="Max", labels={"result": "ok"})
    assert apply_threshold([found], 7, elsewhere) == ["n: m has no Max"]


def test_histograms_are_added_up_over_labels_that_are_not_collected() -> None:
    config = MetricsCollectorConfig(
        {
            "scheduler_a_duration_seconds": [LabelValues("result")],
            "scheduler_b_duration_seconds": None,
            "scheduler_missing_seconds": None,
        }
    )
    first, second = histogram_items(PAGE, config, "n")
    assert first.labels == {
        "Name": "n",
        "Metric": "scheduler_a_duration_seconds",
        "result": "ok",
    }
    rounded = {name: round(value, 3) for name, value in first.data.items()}
    # 18 of 20 observations are between 1 and 2 ms; the bucket above has no upper bound.
    assert rounded == {"Average": 3.0, "Perc50": 1.556, "Perc90": 2.0, "Perc95": 2.0, "Perc99": 2.0}
    assert (second.labels["Metric"], second.data["Average"]) == (
        "scheduler_b_duration_seconds",
        500,
    )


def test_only_the_wanted_values_of_a_label_are_collected() -> None:
    config = MetricsCollectorConfig(
        {"scheduler_a_duration_seconds": [LabelValues("profile", ["q"]), LabelValues("result")]}
    )
    assert [each.labels for each in histogram_items(PAGE, config, "n")] == [
        {
            "Name": "n",
            "Metric": "scheduler_a_duration_seconds",
            "profile": "q",
            "result": "ok",
        }
    ]


def pod(namespace: str = "a", **labels: str) -> CountedPod:
    """Return a pod that has a node."""
    meta = ObjectMeta(name="p", namespace=namespace, labels=labels)
    return CountedPod(metadata=meta, spec=PodSpecPart(node_name="n"))


def sampled(arrivals: list[tuple[float, int]], seconds: float) -> list[DataItem]:
    """Return the results for pods that get nodes after so many seconds."""
    clock = ManualClock()

    async def main() -> list[DataItem]:
        throughput = Throughput(clock, namespaces=["a"], labels={"type": "x"})
        tasks = TaskOwner()
        tasks.spawn(throughput.run(), name="samples")
        passed = 0.0
        for moment, count in arrivals:
            await aio.sleep(moment - passed)
            passed = moment
            for _ in range(count):
                throughput.count_pod(pod(type="x"))
            throughput.count_pod(pod("other", type="x"))
            throughput.count_pod(pod())
        await aio.sleep(seconds - passed)
        await tasks.cancel_all()
        return throughput.items("n")

    return run_virtual(main(), clock)


def test_throughput_is_sampled_from_the_second_interval_on() -> None:
    rate, duration = sampled([(0.5, 3), (1.5, 10), (2.5, 20), (4.5, 8)], 5.5)
    # No pod came in the fourth second, so the eight pods count for two intervals.
    assert rate.labels == {"Name": "n", "Metric": "SchedulingThroughput"}
    assert {name: round(value, 3) for name, value in rate.data.items()} == {
        "Average": 9.5,
        "Perc50": 4.0,
        "Perc90": 20.0,
        "Perc95": 20.0,
        "Perc99": 20.0,
    }
    assert round(duration.data["Duration"], 3) == 4.5


def test_the_whole_time_is_the_sample_of_a_short_workload() -> None:
    rate, _ = sampled([(0.25, 3), (0.5, 2)], 0.9)
    assert round(rate.data["Average"], 3) == 10.0


def test_a_workload_without_scheduled_pods_has_no_throughput() -> None:
    (duration,) = sampled([(0.25, 0)], 0.9)
    assert duration.data == {"Duration": 0.0}
