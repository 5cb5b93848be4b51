"""Measures preemption: preemptors are popped and decided, victims evicted, preemptors retried.

Part of `engine_run`. The watch events of API server and kubelets arrive at once: the pod's status
shows a nomination immediately, and a victim is gone as soon as it is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import UsageError
from moorage.config.defaults import default_config
from moorage.config.own import LoadedConfiguration
from moorage.config.plugin_args import DefaultPreemptionArgs
from moorage.config.types import PluginConfig
from moorage.engine.decision import Decision, Outcome
from moorage.framework.preemption import TRIED
from moorage.service.attempts.failure import FailureHandler
from moorage.service.core import Core
from moorage.service.intake.ingest import PodIngest
from moorage.state.queued_pod import QueuedPod
from moorage_lab.bench.timing import Laps

# A pod is tried once to find victims and once to take the place, and again if another pod took the
# place.
_TRIES_MAX = 4


def looking_at_every_node() -> LoadedConfiguration:
    """Return the default configuration, but with preemption that tries every node."""
    plain = default_config()
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=100)
    told = [PluginConfig(name="DefaultPreemption", args=args)]
    profiles = [msgspec.structs.replace(each, plugin_config=told) for each in plain.profiles]
    return LoadedConfiguration(msgspec.structs.replace(plain, profiles=profiles))


class Preempting:
    """One wave of preemptors.

    Parameters
    ----------
    core, pods
        The scheduler, and its source of pod events.
    profile
        The profile that decides.
    clock
        Clock for measuring.

    Attributes
    ----------
    victims
        (pod, node) in the order of eviction.
    decisions_ns
        Time of every decision: of each pod's first and of its second decision.
    seconds_by_part
        Time spent in each step.
    """

    def __init__(self, core: Core, pods: PodIngest, profile: str, *, clock: Clock) -> None:
        self._core = core
        self._pods = pods
        self._cycle = core.cycles[profile]
        self._failures = FailureHandler(core.queue, core.store.get, recorder=None, writes=None)
        self._laps = Laps(clock.monotonic_ns, "queue", "decide", "evict", "assume", "confirm")
        self._searching_ns = 0
        self._tried = 0
        self.victims: list[tuple[str, str]] = []
        self.decisions_ns: list[int] = []

    @property
    def seconds_by_part(self) -> dict[str, float]:
        """Time spent in each step."""
        return self._laps.seconds_by_part()

    @property
    def candidates_per_second(self) -> float:
        """Nodes tried out in a second of decisions that searched for victims."""
        return self._tried * NS_PER_SECOND / self._searching_ns if self._searching_ns else 0.0

    def run(self, pods: Sequence[Pod]) -> list[tuple[str, str]]:
        """Schedule pods that all exist from the beginning; return (pod, node) pairs.

        Raises
        ------
        UsageError
            A pod has no room, whichever pods are evicted.
        """
        self._laps.start_lap()
        for pod in pods:
            self._pods.on_add(pod)
        self._laps.end_lap("queue")
        placements: list[tuple[str, str]] = []
        for _ in range(_TRIES_MAX * len(pods)):
            if len(placements) == len(pods):
                break
            node_name = self._next()
            if node_name:
                placements.append(node_name)
        else:
            raise UsageError("the workload does not settle: pods are tried again and again")
        return placements

    def _next(self) -> tuple[str, str] | None:
        """Try the next pod; return it and its node if it got one."""
        core, laps = self._core, self._laps
        laps.start_lap()
        queued = core.queue.pop()
        if queued is None:
            raise UsageError("the workload does not fit: pods wait for room that nobody makes")
        laps.end_lap("queue")
        decision = self._cycle.decide(queued.info)
        took_ns = laps.end_lap("decide")
        self.decisions_ns.append(took_ns)
        if decision.outcome is not Outcome.BIND:
            self._searching_ns += took_ns
            self._make_room(queued, decision)
            laps.end_lap("evict")
            return None
        core.cache.assume_pod(queued.pod, decision.node_name)
        core.queue.nominator.withdraw_nomination(queued.pod)
        core.queue.end_in_flight(queued.uid)
        laps.end_lap("assume")
        spec = msgspec.structs.replace(queued.pod.spec, node_name=decision.node_name)
        self._pods.on_update(queued.pod, msgspec.structs.replace(queued.pod, spec=spec))
        laps.end_lap("confirm")
        return queued.pod.full_name, decision.node_name

    def _make_room(self, queued: QueuedPod, decision: Decision) -> None:
        """Nominate, and send the watch events of the nomination and of the victims' deletion."""
        if not decision.victims or decision.nomination is None:
            raise UsageError(
                f"the workload does not fit: {queued.pod.full_name}: {decision.message}"
            )
        self._tried += decision.state.find(TRIED) or 0
        self._failures.handle(
            queued,
            decision.status,
            decision.diagnosis,
            message=decision.message,
            nomination=decision.nomination,
        )
        node_name = decision.nomination.node_name
        old = queued.pod
        status = msgspec.structs.replace(old.status, nominated_node_name=node_name)
        # Ingest ignores an update without a new resourceVersion.
        version = f"{len(self.decisions_ns)}"
        metadata = msgspec.structs.replace(old.metadata, resource_version=version)
        self._pods.on_update(old, msgspec.structs.replace(old, metadata=metadata, status=status))
        for victim in decision.victims:
            self._pods.on_delete(victim, missed=False)
            self.victims.append((victim.full_name, node_name))
