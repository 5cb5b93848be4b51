"""The number of pods that get a node in a second, sampled every second.

Source: kubernetes v1.36 test/integration/scheduler_perf/util.go (``throughputCollector``). One
difference: where no whole interval was seen, the whole time is the one sample; the suite leaves
out the result of so short a workload.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage_lab.bench.scheduler_perf.cases import THROUGHPUT
from moorage_lab.bench.scheduler_perf.data_items import DataItem, percentiles
from moorage_lab.bench.scheduler_perf.pod_tallies import CountedPod, Labels

_SAMPLE_SECONDS: Final = 1.0


class Throughput:
    """Counts pods of some namespaces, from its making on.

    Parameters
    ----------
    namespaces, labels
        The pods that count.
    """

    def __init__(self, clock: Clock, *, namespaces: Collection[str], labels: Labels) -> None:
        self._clock = clock
        self._namespaces = frozenset(namespaces)
        self._labels = labels
        self._begin_ns = self._last_ns = clock.monotonic_ns()
        self._samples: list[float] = []
        self.scheduled = 0
        """Number of pods that got a node."""

    def count_pod(self, pod: CountedPod) -> None:
        """Take in a pod that got a node."""
        if pod.namespace in self._namespaces and pod.has_labels(self._labels):
            self.scheduled += 1
            self._last_ns = self._clock.monotonic_ns()

    @property
    def seconds(self) -> float:
        """Time from the beginning until the last pod got its node."""
        return (self._last_ns - self._begin_ns) / NS_PER_SECOND

    async def run(self) -> None:
        """Sample until cancelled."""
        last, sampled_ns, skipped = 0, 0, 0
        while True:
            await aio.sleep(_SAMPLE_SECONDS)
            now = self._clock.monotonic_ns()
            if not self.scheduled:
                continue
            if not sampled_ns:
                # The first interval began before there were pods.
                last, sampled_ns = self.scheduled, now
            elif self.scheduled == last:
                skipped += 1
            else:
                rate = (self.scheduled - last) * NS_PER_SECOND / (now - sampled_ns)
                self._samples += [rate] * (skipped + 1)
                last, sampled_ns, skipped = self.scheduled, now, 0

    def items(self, name: str) -> list[DataItem]:
        """Return the results, under a name; none if no pod got a node."""
        samples = self._samples
        if not samples and self.scheduled and self.seconds:
            samples = [self.scheduled / self.seconds]
        duration = DataItem(
            {"Duration": self.seconds}, "s", {"Name": name, "Metric": "SchedulingDuration"}
        )
        if not samples:
            return [duration]
        labels = {"Name": name, "Metric": THROUGHPUT}
        return [DataItem(percentiles(samples), "pods/s", labels), duration]
