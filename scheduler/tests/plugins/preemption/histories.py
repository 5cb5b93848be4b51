"""A cluster with a history of pods and nominations, decided about by several cycles that agree."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage.base.clock import ManualClock, rfc3339
from moorage.base.rng import Streams
from moorage.config.plugin_args import DefaultPreemptionArgs
from moorage.engine.attempt import Scope
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.select_node import smallest_name
from moorage.framework.handle import Handle
from moorage.framework.preemption import PREEMPTION, TRIED, PreemptionReport
from moorage.framework.profile import Profile
from moorage.framework.status import ReasonTable
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.engine.builders import told
from scheduler.tests.plugins.preemption.test_against_reference import REGISTRY, SPEC, Evictions

BUSY = Scope(explain=True)


class HistoryWorld:
    """One cluster.

    Parameters
    ----------
    percentage, absolute
        Arguments of DefaultPreemption: how many candidates are enough.

    Attributes
    ----------
    spec
        The profile of all cycles.
    """

    spec = SPEC

    def __init__(self, percentage: int, absolute: int) -> None:
        self.clock = ManualClock()
        self.snapshot = Snapshot()
        self.nominations: dict[str, Sequence[PodInfo]] = {}
        self.log: KeyLog[str] = KeyLog(8)
        self.snapshot.nominations, self.snapshot.nominations_log = self.nominations, self.log
        self._args = DefaultPreemptionArgs(
            min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute
        )
        self.serial = 0
        self.evictions = Evictions()
        self.placed: list[str] = []

    def cycle(self, kind: type[Profile] = Profile, *, reuse: bool) -> Cycle:
        """Return a cycle over the cluster with the default profile."""
        arguments = {**self.spec.plugin_args, "DefaultPreemption": self._args}
        spec = msgspec.structs.replace(self.spec, plugin_args=arguments)
        handle = Handle(
            profile_name="default-scheduler",
            snapshot=self.snapshot,
            reasons=ReasonTable(),
            clock=self.clock,
            streams=Streams(1),
            evictions=self.evictions,
        )
        return Cycle(kind(spec, REGISTRY, handle), self.snapshot, smallest_name, reuse=reuse)

    def place(self, name: str, pod: PodInfo) -> None:
        """Put a pod on a node; nothing if there is no such node."""
        if self.snapshot.row_of(name) is not None:
            self.snapshot.table.add_pod(pod, name)
            self.placed.append(pod.uid)

    def take_away(self, index: int) -> None:
        """Remove one of the pods."""
        if self.placed:
            self.snapshot.table.remove_pod(self.placed.pop(index % len(self.placed)))

    def begin_leaving(self, index: int) -> None:
        """Let one of the pods be the victim of an earlier preemptor, which stops slowly."""
        if self.placed:
            uid = self.placed[index % len(self.placed)]
            info, name = self.snapshot.table.pod_info(uid), self.snapshot.table.node_of_pod(uid)
            assert info is not None
            assert name is not None
            self.evictions.requested = {*self.evictions.requested, uid}
            now = rfc3339(self.clock.now_ns())
            metadata = msgspec.structs.replace(info.pod.metadata, deletion_timestamp=now)
            self.snapshot.table.update_pod(
                msgspec.structs.replace(info.pod, metadata=metadata), name
            )

    def nominate(self, name: str, pod: PodInfo) -> None:
        """Nominate a pod; one of that name is nominated nowhere else then."""
        for other, pods in list(self.nominations.items()):
            left = tuple(each for each in pods if each.uid != pod.uid)
            if len(left) < len(pods):
                self._put(other, left)
        self._put(name, (*self.nominations.get(name, ()), pod))

    def decide_alike(self, info: PodInfo, cycles: Sequence[Cycle], *, follow: bool) -> None:
        """Decide by each cycle, compare all that is told, and do as it says where asked to."""
        found, *others = (cycle.decide(info, BUSY) for cycle in cycles)
        for other in others:
            assert told(other) == told(found)
            assert reported(other) == reported(found)
        if not follow:
            return
        if found.outcome is Outcome.BIND:
            self.place(found.node_name, info)
        elif found.victims and found.nomination:
            self.nominate(found.nomination.node_name, info)
            for victim in found.victims:
                self.snapshot.table.remove_pod(victim.metadata.uid)
                self.placed.remove(victim.metadata.uid)

    def _put(self, name: str, pods: Sequence[PodInfo]) -> None:
        self.nominations[name] = pods
        if not pods:
            del self.nominations[name]
        self.log.append(name)


def reported(decision: Decision) -> tuple[str, int | None]:
    """Return what a preemption reports, and how many rows were tried."""
    report: PreemptionReport | None = decision.state.find(PREEMPTION)
    return repr(report), decision.state.find(TRIED)
