"""The half of a scheduler that decides, over the objects of a cluster in memory.

`ClusterInputs.fill` puts it over them. Objects enter the way they enter a scheduler, through
`moorage.service.intake.ingest`, so nothing decides differently here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from moorage.api.meta import ApiObject
from moorage.base.clock import ManualClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.config.gate_table import (
    COMPOSITE_POD_GROUP,
    DEVICE_TAINT_RULES,
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
)
from moorage.config.own import LoadedConfiguration
from moorage.engine.select_node import TieBreak
from moorage.framework.registry import Registry
from moorage.service.binding.waiting import WaitingPods
from moorage.service.core import Core, CoreInputs, build_core
from moorage.service.groups.releases import node_changed
from moorage.service.intake.ingest import ListerIngest, NodeIngest, PodIngest, SucceededIngest
from moorage.service.intake.kinds import WatchedKind, lister_ingest, watched
from moorage.service.process.facts import Facts
from moorage.virtual.objects import ClusterObjects


class DecidingHalf(msgspec.Struct, frozen=True, kw_only=True):
    """A deciding half with the objects of a model in it.

    Parameters
    ----------
    core
        State, snapshot, profiles and cycles; pending pods are in the queue, and none was tried.
    facts
        Totals.
    clock
        The time of the model; it moves only when told to.
    streams
        The random streams that decisions draw from.
    nodes, pods, succeeded, others
        Take in changes of objects; `others` by the name of the lister.
    kinds
        The watched kinds besides nodes and pods, by the name of the lister.
    """

    core: Core
    facts: Facts
    clock: ManualClock
    streams: Streams
    nodes: NodeIngest
    pods: PodIngest
    succeeded: SucceededIngest
    others: dict[str, ListerIngest[Any]]
    kinds: dict[str, WatchedKind]


class ClusterInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a model: the objects of a cluster, and how its scheduler is configured.

    Parameters
    ----------
    objects
        Every object that is known of the cluster.
    registry
        Every known plugin.
    config
        The scheduler's configuration.
    seed
        Seed of the random streams, which decide among equally good nodes.
    draws
        Random streams that continue those of a running scheduler; None for streams of the seed.
    order
        Ranks of pods by uid, as a running scheduler knows them: of a pending pod among others of
        its priority, of a bound pod on its node. Pods without a rank come last, the oldest first.
    now_ns
        Wall-clock time at which the model begins, nanoseconds since the Unix epoch.
    """

    objects: ClusterObjects
    registry: Registry
    config: LoadedConfiguration = msgspec.field(default_factory=LoadedConfiguration)
    seed: int = 0
    draws: Streams | None = None
    order: Mapping[str, int] = {}
    now_ns: int = 1_767_225_600_000_000_000

    def fill(
        self,
        *,
        clock: ManualClock | None = None,
        waiting: WaitingPods | None = None,
        tie_break: TieBreak | None = None,
    ) -> DecidingHalf:
        """Return a new deciding half over the objects.

        Parameters
        ----------
        clock
            The time of the model; None for a clock that stands at its begin.
        waiting
            Where pods that Permit holds wait; None where no pod is carried that far.
        tie_break
            Chooses one of several best nodes; draws from the streams when None.

        Raises
        ------
        ConfigError
            A profile cannot be built.
        UsageError
            The configuration has extenders, which are programs that would be called.
        """
        if self.config.scheduler.extenders:
            raise UsageError(
                "the configuration has extenders, and no extender is called for a change that is "
                "only tried; leave them out"
            )
        clock = ManualClock(self.now_ns) if clock is None else clock
        streams = Streams(self.seed) if self.draws is None else self.draws.copy()
        core = build_core(
            self.config,
            self.registry,
            clock=clock,
            streams=streams,
            surroundings=CoreInputs(waiting=waiting),
            tie_break=tie_break,
        )
        half = _ingests(core, self.config, clock, streams)
        self._put_all(half)
        return half

    def _put_all(self, half: DecidingHalf) -> None:
        """Hand every object over: first what nodes and pods refer to, pending pods last."""
        for name, ingest in half.others.items():
            found: dict[Any, ApiObject] = self.objects.watched.get(name, {})
            for obj in found.values():
                ingest.on_add(obj)
        for node in self.objects.nodes.values():
            half.nodes.on_add(node)
        for pod in self.objects.succeeded.values():
            half.succeeded.on_add(pod)
        last = len(self.order)
        for pods in (self.objects.scheduled_pods, self.objects.pending_pods):
            for pod in sorted(pods, key=lambda pod: self.order.get(pod.uid, last)):
                half.pods.on_add(pod)


def _ingests(
    core: Core, config: LoadedConfiguration, clock: ManualClock, streams: Streams
) -> DecidingHalf:
    """Return a deciding half with the parts that take in objects, as a scheduler has them."""
    facts, profiles = Facts(clock), core.profiles.values()
    kinds = {
        kind.lister: kind
        for kind in watched(
            profiles,
            pod_groups=config.gates(GENERIC_WORKLOAD),
            composite_groups=config.gates(COMPOSITE_POD_GROUP),
            taint_rules=config.gates(DEVICE_TAINT_RULES),
            jobs=bool(core.hold_back_after_seconds) or config.own.start_estimates is not None,
        )
    }
    others: dict[str, ListerIngest[Any]] = {
        name: lister_ingest(kind, core.snapshot, queue=core.queue, facts=facts)
        for name, kind in kinds.items()
    }
    holds = any(profile.group_holders for profile in profiles)
    pods = PodIngest(
        core.cache,
        core.queue,
        core.store,
        profiles=core.profiles.keys(),
        writes=None,
        facts=facts,
        waiting=core.waiting,
        announce=config.gates(GANG_SCHEDULING) or holds,
    )
    nodes = NodeIngest(core.cache, core.queue, facts, changed=partial(node_changed, core))
    return DecidingHalf(
        core=core,
        facts=facts,
        clock=clock,
        streams=streams,
        nodes=nodes,
        pods=pods,
        succeeded=SucceededIngest(core.snapshot.groups, core.queue, facts),
        others=others,
        kinds=kinds,
    )
