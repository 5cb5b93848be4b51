"""Takes over another configuration while the scheduler runs: validated whole, then put in force.

`Reload.prepare` builds everything that a configuration makes, and refuses what cannot change alive;
it touches nothing that runs. `Reload.put_in_force` then replaces it all in one step, which the pump
takes between two attempts. Queue, cache and snapshot stay: they are what is believed of the
cluster, and no configuration makes them.

In-tree plugins whose arguments are unchanged keep their instance, with their books of pods on the
way to a node. New cycles begin without any reused answer. Every pod that waits is tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from moorage.api.meta import ObjectReference
from moorage.base.errors import ConfigError
from moorage.base.verbosity import V0
from moorage.client.event_series import EventNote
from moorage.client.events import EventRecorder
from moorage.client.extender import HttpExtender
from moorage.config.merge import ProfileSpec, expand_profiles
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.service.attempts.extenders import OpenExtenders
from moorage.service.attempts.pump import Pump
from moorage.service.attempts.queue_of_profiles import hints_of, pre_enqueue_of
from moorage.service.core import Core, Deciding, opening
from moorage.service.intake.kinds import watched
from moorage.service.process.facts import Facts
from moorage.snapshot.group_labels import CUSTOM_SOURCE, LABEL_SOURCE
from moorage.state.contracts import HintMap, PreEnqueueMap

_log = logging.getLogger(__name__)

LIVE: Final = (
    "profiles",
    "extenders",
    "percentage_of_nodes_to_score",
    "percentage_of_placements_to_score",
)
"""The fields of KubeSchedulerConfiguration that a reload may change."""
TAKEN_OVER: Final = "taken over"
REFUSED: Final = "refused"
_ABOUT: Final = ObjectReference(api_version="v1", kind="Namespace", name="kube-system")
"""The Events about a reload are about this object: a scheduler has no object of its own."""


class Prepared(msgspec.Struct, frozen=True):
    """A configuration that can be put in force, with everything that is made from it."""

    config: LoadedConfiguration
    extenders: list[HttpExtender]
    deciding: Deciding
    pre_enqueue: PreEnqueueMap
    hints: HintMap


class Reload:
    """Prepares configurations, puts them in force, and tells in log, metric and Event.

    Parameters
    ----------
    core
        The deciding half.
    config
        The configuration in force.
    extenders
        The connections to extenders.
    pump
        The running pump.
    build_pump
        Builds a pump for the profiles that the core has then.
    facts, recorder
        Receive the count and the Event of each reload.
    """

    def __init__(
        self,
        core: Core,
        config: LoadedConfiguration,
        *,
        extenders: OpenExtenders,
        pump: Pump,
        build_pump: Callable[[], Pump],
        facts: Facts,
        recorder: EventRecorder,
    ) -> None:
        self._core = core
        self.config = config
        """The configuration in force."""
        self._extenders = extenders
        self.pump = pump
        """Schedules one pod after another."""
        self._build_pump = build_pump
        self._facts = facts
        self._recorder = recorder

    def prepare(self, config: LoadedConfiguration, registry: Registry) -> Prepared:
        """Build everything that a configuration makes, without touching what runs.

        Parameters
        ----------
        config
            Loaded and checked, with its plugins from outside enabled.
        registry
            Every known plugin; those from files freshly imported.

        Raises
        ------
        ConfigError
            A profile cannot be built, or the configuration changes what only a new start can
            change; every reason is listed.
        """
        specs = expand_profiles(config.scheduler, registry, gates=config.gates)
        faults = [*self._fixed(config), *self._changed_profiles(specs, registry)]
        if faults:
            raise ConfigError(faults)
        core, opened = self._core, self._extenders.extenders
        if config.scheduler.extenders != self.config.scheduler.extenders:
            opened = self._extenders.opened(config.scheduler.extenders)
        deciding = core.maker.make(
            config, specs, registry=registry, extenders=opened, before=core.profiles
        )
        faults = list(self._more_kinds(deciding))
        if faults:
            raise ConfigError(faults)
        facts = core.plugin_facts
        return Prepared(
            config,
            opened,
            deciding,
            pre_enqueue_of(deciding.profiles, facts),
            hints_of(deciding.profiles),
        )

    def put_in_force(self, prepared: Prepared, registry: Registry) -> None:
        """Put a prepared configuration in force before the next attempt.

        Parameters
        ----------
        prepared, registry
            As `prepare` took and gave them. A pod may have come meanwhile that forbids the change;
            the reload is refused then.
        """
        self.pump.between_attempts(lambda: self._take_over(prepared, registry))

    def refused(self, reasons: Sequence[str]) -> None:
        """Tell that a reload was refused; the configuration in force stays."""
        self._facts.reloads[REFUSED] += 1
        for reason in reasons:
            _log.warning("reload refused: %s", reason)
        note = f"The configuration in force stays: {'; '.join(reasons)}"
        self._emit_event("Warning", "ReloadRefused", note)

    def _take_over(self, prepared: Prepared, registry: Registry) -> None:
        config, core = prepared.config, self._core
        specs = [profile.spec for profile in prepared.deciding.profiles.values()]
        faults = list(self._changed_profiles(specs, registry))
        if faults:
            self.refused(faults)
            return
        added = prepared.deciding.profiles.keys() - core.profiles.keys()
        core.take_over(prepared.deciding)
        self._extenders.use(prepared.extenders)
        self.pump.adopt(self._build_pump())
        core.queue.plugins.replace(prepared.pre_enqueue, prepared.hints)
        for pod in core.store.all_pods():
            if pod.spec.scheduler_name in added and not pod.spec.node_name:
                core.snapshot.groups.put_pod(pod)
                core.queue.add(pod)
        self.config = config
        self._facts.reloads[TAKEN_OVER] += 1
        names = ", ".join(prepared.deciding.profiles)
        _log.log(V0, "reload: a new configuration is in force; it serves %s", names)
        self._emit_event(
            "Normal", "Reloaded", f"A new configuration is in force; it serves {names}"
        )

    def _emit_event(self, type_: str, reason: str, note: str) -> None:
        self._recorder.record_event(
            EventNote(
                regarding=_ABOUT,
                controller=next(iter(self._core.profiles)),
                type="Normal" if type_ == "Normal" else "Warning",
                reason=reason,
                action="Reload",
                note=note,
                by_note=True,
            )
        )

    # --- what only a new start can change ---------------------------------------------------------

    def _fixed(self, new: LoadedConfiguration) -> Iterator[str]:
        """Yield a reason for each changed field that is read at the start only."""
        for before, after, live in (
            (self.config.scheduler, new.scheduler, LIVE),
            (self.config.own, new.own, ("profiles",)),
        ):
            for field in msgspec.structs.fields(before):
                changed = getattr(before, field.name) != getattr(after, field.name)
                if changed and field.name not in live:
                    yield f"{field.encode_name}: cannot change while the scheduler runs: restart it"
        names = {profile.scheduler_name: None for profile in new.scheduler.profiles}
        for name in names:
            if self.config.own.profile(name) != new.own.profile(name):
                yield (
                    f"profile {name}: groupMode, groupOrders, completeGroups and "
                    "holdBackAfterSeconds cannot be changed or set while the scheduler runs: "
                    "restart it"
                )
        if self._extenders.needs_more(new.scheduler.extenders):
            yield (
                "extenders: a first extender, or one that needs whole nodes or victims, cannot be "
                "added while the scheduler runs, which does not keep these objects: restart it"
            )

    def _changed_profiles(self, specs: Sequence[ProfileSpec], registry: Registry) -> Iterator[str]:
        """Yield a reason for each profile that may not change in this way."""
        old = [profile.spec for profile in self._core.profiles.values()]
        sorts = [_queue_sort(each) for each in (old[0], specs[0])]
        if sorts[0] != sorts[1]:
            yield (
                f"plugins.queueSort: {sorts[0][0]} cannot change while the scheduler runs, because "
                "the pods in the queue are in its order: restart the scheduler"
            )
        names = {spec.scheduler_name for spec in specs}
        waiting: dict[str, int] = {}
        for pod in self._core.store.all_pods():
            name = pod.spec.scheduler_name
            if name in self._core.profiles and name not in names and not pod.spec.node_name:
                waiting[name] = waiting.get(name, 0) + 1
        for name, count in sorted(waiting.items()):
            yield f"profile {name}: cannot be removed while pods wait for it: {count} have no node"
        for source in (CUSTOM_SOURCE, LABEL_SOURCE):
            if set(opening(source, old, registry)) != set(opening(source, specs, registry)):
                yield (
                    "profiles: plugins that find pod groups (Coscheduling) cannot be added or "
                    "removed while the scheduler runs: restart it"
                )
                return

    def _more_kinds(self, new: Deciding) -> Iterator[str]:
        """Yield a reason for each kind that plugins wait for and that is not watched."""
        before = watched(self._core.profiles.values(), pod_groups=True)
        known = {kind.lister for kind in before}
        for kind in watched(new.profiles.values(), pod_groups=True):
            if kind.lister not in known:
                yield (
                    f"profiles: a plugin waits for changes of {kind.resource.plural}, which the "
                    "scheduler does not watch: restart it"
                )


def _queue_sort(spec: ProfileSpec) -> tuple[str, object]:
    name = spec.points["queueSort"][0]
    return name, spec.plugin_args.get(name)
