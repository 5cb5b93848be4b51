"""The metrics of the records: their number, their memory, and how many were dropped."""

from __future__ import annotations

from moorage.base.clock import ManualClock
from moorage.config.feature_gates import DEFAULT_GATES
from moorage.framework.containment import Containment
from moorage.observe.access import AccessFacts
from moorage.observe.calls import CallFacts
from moorage.service.process.metrics import exposition_of
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.observe.test_metrics import numbers

_NAMES = (
    "moorage_attempt_records",
    "moorage_attempt_records_bytes",
    "moorage_attempt_records_dropped_total",
)


def test_metrics_tell_how_many_records_are_kept_and_dropped_and_their_memory() -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n0", cpu="2")]) as cluster:
            for index in range(3):
                await cluster.create_objects(pod_manifest(f"p{index}", cpu="1"))
            recorder = cluster.scheduler.core.recorder
            assert recorder is not None
            await cluster.until(lambda: len(recorder.ring) == 3)
            text, _ = exposition_of(
                cluster.scheduler,
                calls=CallFacts("server"),
                access=AccessFacts(),
                containment=Containment(),
                gates=DEFAULT_GATES,
            ).page_text("")
            found = numbers(text)
            assert [found[name,] for name in _NAMES] == [3, recorder.ring.nbytes, 0]

    run_virtual(main(), clock)
