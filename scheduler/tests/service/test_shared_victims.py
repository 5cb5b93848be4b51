"""Two preemptors that evict the same pod: the second is let in, though no event is left to come."""

from __future__ import annotations

from moorage.base.clock import ManualClock
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual


def test_a_victim_that_another_preemptor_evicts_does_not_keep_the_gate_shut() -> None:
    """The second one's last victim is gone before its first is, while the gate is shut."""
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n", cpu="4")]) as cluster:
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            await cluster.create_objects({**kind, "metadata": {"name": "high"}, "value": 10})
            low = [pod_manifest(f"low-{i}", cpu="2") for i in range(2)]
            await cluster.create_objects(*low)
            await cluster.until(lambda: all(cluster.placements().values()))
            high = [pod_manifest(f"high-{i}", cpu="2", priorityClassName="high") for i in range(2)]
            await cluster.create_objects(*high)
            await cluster.until(
                lambda: cluster.placements() == {"default/high-0": "n", "default/high-1": "n"},
                seconds=10,
            )

    run_virtual(main(), clock)
