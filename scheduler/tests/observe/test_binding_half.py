"""What a live scheduler tells about preemption and the binding half: from pods to numbers.

Left out: the deciding half (``scheduler/tests/engine/test_meter``) and who is evicted.
"""

from __future__ import annotations

from moorage.base.clock import ManualClock
from moorage.framework.cycle_state import CycleState
from moorage.framework.runner import run_permit, run_reserve, run_unreserve
from moorage.framework.runner_binding import run_bind, run_post_bind, run_pre_bind_pre_flight
from moorage.framework.status import SUCCESS, Code, Status, unschedulable
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.engine.test_meter import Listing
from scheduler.tests.framework.builders import Fake, answers, profile
from scheduler.tests.snapshot.builders import pod


def test_a_preemption_is_told_once_it_was_asked_for_and_carried_out() -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1", cpu="4")]) as cluster:
            await cluster.create_objects(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": "high"},
                    "value": 1000,
                },
                pod_manifest("low", cpu="3"),
            )
            facts = cluster.scheduler.facts
            await cluster.until(lambda: facts.bound == 1)
            await cluster.create_objects(pod_manifest("high", cpu="3", priorityClassName="high"))
            await cluster.until(lambda: facts.bound == 2)
            core = cluster.scheduler.core
            assert {end: h.count for end, h in core.evictions.durations.items()} == {"success": 1}
            assert facts.attempts.victims.count == 1
            asked = core.plugin_facts.called_at("DefaultPreemption", "PostFilter")
            assert (
                asked
                == core.plugin_facts.durations["PostFilter", "Success", "default-scheduler"].count
            )

    run_virtual(main(), clock)


def test_plugins_of_the_binding_half_are_timed_with_the_state_of_their_attempt() -> None:
    no = unschedulable("no")
    plugins = [
        Fake("R", reserve=answers(SUCCESS), unreserve=answers(None)),
        Fake("P", permit=answers((no, 0.0))),
        Fake("W", pre_bind_pre_flight=answers(Status(Code.SKIP)), pre_bind=answers(SUCCESS)),
        Fake("B", bind=answers(RuntimeError("broken"))),
        Fake("T", post_bind=answers(None)),
    ]
    given, state, one = profile(*plugins), CycleState(), PodInfo(pod("p"))
    meter = Listing()
    state.meter, state.timed = meter, True

    async def main() -> None:
        await run_bind(given, state, one, "n1")
        await run_post_bind(given, state, one, "n1")

    run_reserve(given, state, one, "n1")
    run_permit(given, state, one, "n1")
    run_unreserve(given, state, one, "n1")
    run_pre_bind_pre_flight(given, state, one, "n1")
    run_virtual(main(), ManualClock())
    assert meter.plugins == [
        "R Reserve Success",
        "P Permit Unschedulable",
        "R Unreserve Success",
        "W PreBindPreFlight Skip",
        "B Bind Error",
        "T PostBind Success",
    ]
