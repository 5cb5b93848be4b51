"""A rehearsal: a world in which time passes, pods are decided about, and changes happen.

Flow: a change of an object enters through the ingests of the deciding half (`world`), as a watch
event would. `settle` pops pods and has each one decided by the scheduler's own parts; their effects
(`carrying`) come back as changes a moment later, by the agenda. It ends when nothing is due.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from moorage.api.meta import ApiObject, Condition, OwnerReference
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, ManualClock, rfc3339
from moorage.base.ids import name_suffix, new_uid
from moorage.base.rng import Streams
from moorage.nodeagent.stopping import stopping_of
from moorage.service.backfill import Backfill
from moorage.service.failure import FailureHandler
from moorage.service.group_attempt import GroupAttempts
from moorage.service.outcomes import Outcomes
from moorage.service.pump import Pump
from moorage.service.skipping import Skipping
from moorage.service.slots import BindingSlots
from moorage.what_if.agenda import Agenda, HeldPods
from moorage.what_if.carrying import CALL_SECONDS, Bindings, Evictions, Reports
from moorage.what_if.lists import Key, Objects, is_finished
from moorage.what_if.world import Filled, World

# A pod of the sandbox is ready that long after its binding; a guess for other clusters.
_START_SECONDS: Final = 1.0
# Nothing bound, evicted or made for so long: from here on pods are only tried again. More than the
# longest backoff (10 s) and than the usual wait at Permit (60 s).
_PATIENCE_NS: Final = 180 * NS_PER_SECOND
# Attempts for each pod that may be tried: a guess, far above what any sensible cluster needs.
_ATTEMPTS_PER_POD: Final = 40
_ATTEMPTS_LEAST: Final = 2_000
_YEAR_SECONDS: Final = 31_536_000
# How long the pods of a node that is gone are kept (kubernetes v1.36 podgc, quarantineTime).
_QUARANTINE_SECONDS: Final = 40.0
# Between two changes: every backoff is over.
_REST_SECONDS: Final = 15
# Larger than the versions of a server, so that changes count as newer.
_FIRST_VERSION: Final = 10**15
# Their pods are bound to one node, and come back there only.
_OF_ONE_NODE: Final = ("DaemonSet", "Node")


class Eviction(msgspec.Struct, frozen=True):
    """A pod that had to leave its node.

    Parameters
    ----------
    pod
        The pod as it was.
    by
        The preemptor; None where a change made the pod leave.
    successor
        Uid of the pod that its owner made instead, "" for none.
    lost
        Whether the pod has no owner that would make another.
    """

    pod: Pod
    by: Pod | None
    successor: str = ""
    lost: bool = False


class Rehearsal:
    """One course of a world.

    Parameters
    ----------
    world
        The world at the start; it stays as it is.
    earlier
        The rehearsal that this one continues, under another configuration.

    Attributes
    ----------
    objects
        The objects as they are now.
    evictions
        The pods that had to leave, by uid, in order.
    bound
        Uids of the pods that were bound, in order, and their nodes.
    is_quiet
        Whether the last `settle` came to an end by itself.
    names
        Random streams of uids and names.
    listeners
        Called with every pod that has changed, or is gone.
    """

    def __init__(self, world: World, *, earlier: Rehearsal | None = None) -> None:
        self.world = world
        self.objects: Objects = world.objects.copy()
        self.evictions: dict[str, Eviction] = {} if earlier is None else dict(earlier.evictions)
        self.bound: dict[str, str] = {} if earlier is None else dict(earlier.bound)
        self.is_quiet = True
        self.listeners: list[Callable[[Pod], None]] = []
        # Name of a pod that a StatefulSet will make again -> uid of the pod that left.
        self._awaited: dict[Key, str] = {}
        self.names: Streams = Streams(world.seed) if earlier is None else earlier.names
        self._uids = self.names.stream("what-if/uids")
        self._suffixes = self.names.stream("what-if/names")
        self._version = _FIRST_VERSION
        self._clock = ManualClock(world.now_ns)
        self._agenda = Agenda(self._clock)
        held = HeldPods(self._agenda)
        self.filled: Filled = world.fill(clock=self._clock, waiting=held)
        self._reports = Reports(self, self._agenda, now_ns=self._clock.now_ns)
        self._slots = BindingSlots()
        self._failures = FailureHandler(
            self.filled.core.queue,
            self.filled.core.store.get,
            recorder=None,
            writes=self._reports,
            attempts=self.filled.facts.attempts,
        )
        self._bindings = Bindings(
            self.filled.core,
            failures=self._failures,
            facts=self.filled.facts,
            slots=self._slots,
            cluster=self,
            agenda=self._agenda,
            held=held,
        )
        self._pump = self._attempts()
        self._progress_ns = self._clock.now_ns()
        self._attempted = 0

    def _attempts(self) -> Pump:
        """Return the scheduler's own parts that decide, over the counterparts of this room."""
        core, facts = self.filled.core, self.filled.facts
        skipping = Skipping(core.queue, core.cache, recorder=None, facts=facts)
        evictions = Evictions(core, self, self._agenda)
        backfill = None
        if core.hold_back_after_seconds:
            backfill = Backfill(core, after_seconds=core.hold_back_after_seconds, clock=self._clock)
        groups = GroupAttempts(
            core,
            binding_cycles=self._bindings,
            failures=self._failures,
            evictor=evictions,
            reports=None,
            facts=facts,
            skipping=skipping,
            backfill=backfill,
        )
        outcomes = Outcomes(
            binding_cycles=self._bindings,
            failures=self._failures,
            evictor=evictions,
            facts=facts,
            plugin_facts=core.plugin_facts,
        )
        return Pump(
            cycles=core.cycles,
            queue=core.queue,
            wake=self._slots.wake,
            slots=self._slots,
            waiting=core.waiting,
            skipping=skipping,
            groups=groups if core.snapshot.groups.has_source else None,
            outcomes=outcomes,
            facts=facts,
            backfill=backfill,
        )

    # --- time -----------------------------------------------------------------------------------

    def settle(self, *, within_seconds: float = math.inf) -> None:
        """Let time pass until nothing is due any more, or until pods are only tried again.

        Parameters
        ----------
        within_seconds
            Longest time that passes; all of it passes if something is due later.
        """
        self._progressed()
        last_ns = self._clock.now_ns() + min(within_seconds, _YEAR_SECONDS) * NS_PER_SECOND
        most = self._attempted + _ATTEMPTS_LEAST + _ATTEMPTS_PER_POD * len(self.objects.pods)
        while self._attempt_all(most):
            due_ns = self._next_ns()
            if due_ns is None or due_ns > self._progress_ns + _PATIENCE_NS:
                self.is_quiet = True
                if within_seconds == math.inf:
                    self._clock.advance(_REST_SECONDS)
                return
            if due_ns > last_ns:
                self._clock.advance_ns(round(last_ns) - self._clock.now_ns())
                return
            if due_ns == self._agenda.next_ns:
                # Whatever happens in one moment is seen together.
                while self._agenda.next_ns == due_ns:
                    self._agenda.make_next()
            else:
                self._clock.advance_ns(due_ns - self._clock.now_ns())
                self.filled.core.queue.flush_backoff()
        self.is_quiet = False

    def soon(self, act: Callable[[], None]) -> None:
        """Let a controller act, a moment later."""
        self._agenda.after(CALL_SECONDS, act)

    @property
    def now_ns(self) -> int:
        """Wall-clock time of the world, nanoseconds since the Unix epoch."""
        return self._clock.now_ns()

    def rewind_draws(self) -> None:
        """Draw again what a running scheduler would draw next, as if nothing had been tried yet."""
        begin = self.world.draws
        if begin is not None:
            self.filled.streams.rewind(begin)

    def _attempt_all(self, most: int) -> bool:
        """Try every pod that can be tried now; False when too many attempts were made."""
        while not self._slots.full:
            queued = self.filled.core.queue.pop()
            if queued is None:
                break
            self._attempted += 1
            if self._attempted > most:
                return False
            asking = self._pump.attempt(queued)
            assert asking is None, "a world has no extenders"
            self._bindings.carry_on()
        return True

    def _next_ns(self) -> int | None:
        """Return when something is due, wall-clock nanoseconds."""
        moments = [self._agenda.next_ns]
        if self.filled.core.queue.counts().backoff:
            # A scheduler looks once a second.
            moments.append((self._clock.now_ns() // NS_PER_SECOND + 1) * NS_PER_SECOND)
        return min((each for each in moments if each is not None), default=None)

    def _progressed(self) -> None:
        self._progress_ns = self._clock.now_ns()

    # --- pods -----------------------------------------------------------------------------------

    def current(self, pod: Pod) -> Pod | None:
        """Return the newest version of a pod, None if it is gone."""
        found = self.objects.pods.get(pod.key)
        return found if found is not None and found.uid == pod.uid else None

    def reasons(self) -> dict[str, str]:
        """Return why pods have no node, by uid; a pod at Permit, or gated, has a reason as well."""
        core, found = self.filled.core, dict(self._reports.reasons)
        for pending in core.queue.pending().gated:
            why = ", ".join(pending.gating_reasons)
            found[pending.pod.uid] = f"held before the queue by {pending.gating_plugin}: {why}"
        for waiting in core.waiting.all():
            plugins = ", ".join(waiting.pending)
            found[waiting.pod.uid] = f"waits at Permit for {plugins}"
        return found

    def add_pod(self, pod: Pod) -> Pod:
        """Put a new pod; a uid and the time of creation are filled in."""
        metadata = msgspec.structs.replace(
            pod.metadata,
            uid=pod.uid or new_uid(self._uids),
            resource_version=self._next_version(),
            creation_timestamp=rfc3339(self._clock.now_ns()),
        )
        pod = msgspec.structs.replace(pod, metadata=metadata)
        self.objects.pods[pod.key] = pod
        self._progressed()
        left = self.evictions.get(self._awaited.pop(pod.key, ""))
        if left is not None:
            self.evictions[left.pod.uid] = msgspec.structs.replace(left, successor=pod.uid)
        self.filled.pods.on_add(pod)
        self._tell(pod)
        return pod

    def update_pod(self, pod: Pod) -> None:
        """Put a new version of a pod."""
        old = self.objects.pods[pod.key]
        metadata = msgspec.structs.replace(pod.metadata, resource_version=self._next_version())
        new = msgspec.structs.replace(pod, metadata=metadata)
        self.objects.pods[new.key] = new
        self.filled.pods.on_update(old, new)
        self._tell(new)

    def bind(self, pod: Pod, node_name: str) -> bool:
        """Bind a pod; False if it is gone or being deleted."""
        current = self.current(pod)
        if current is None or current.metadata.deletion_timestamp:
            return False
        self.bound[pod.uid] = node_name
        self._reports.reasons.pop(pod.uid, None)
        self._progressed()
        spec = msgspec.structs.replace(current.spec, node_name=node_name)
        status = msgspec.structs.replace(current.status, nominated_node_name="")
        self.update_pod(msgspec.structs.replace(current, spec=spec, status=status))
        self._agenda.after(_START_SECONDS, lambda: self._run(current))
        return True

    def _run(self, pod: Pod) -> None:
        """Let a bound pod run."""
        current = self.current(pod)
        if current is None or current.metadata.deletion_timestamp:
            return
        now = rfc3339(self._clock.now_ns())
        ready = Condition(type="Ready", status="True", last_transition_time=now)
        others = [each for each in current.status.conditions if each.type != "Ready"]
        status = msgspec.structs.replace(
            current.status, phase="Running", conditions=[*others, ready]
        )
        self.update_pod(msgspec.structs.replace(current, status=status))

    def leave(
        self, pod: Pod, *, by: Pod | None = None, at_once: bool = False, returns: bool = True
    ) -> None:
        """Delete a pod; its owner makes another.

        Parameters
        ----------
        by
            The preemptor; None where a change makes the pod leave.
        at_once
            Whether the pod is gone at once, as from a node that is gone.
        returns
            Whether its owner makes another.
        """
        current = self.current(pod)
        if current is None or current.metadata.deletion_timestamp:
            return
        self._progressed()
        owner = controller_of(current)
        if returns and current.spec.node_name:
            self.evictions[pod.uid] = Eviction(current, by, lost=owner is None)
        seconds = 0.0
        if at_once or not current.spec.node_name:
            self._gone(current)
        else:
            grace = current.spec.termination_grace_period_seconds
            grace = 30 if grace is None else grace
            end = rfc3339(self._clock.now_ns() + grace * NS_PER_SECOND)
            metadata = msgspec.structs.replace(
                current.metadata, deletion_timestamp=end, deletion_grace_period_seconds=grace
            )
            marked = msgspec.structs.replace(current, metadata=metadata)
            self.update_pod(marked)
            ends_ns = stopping_of(marked).ended_ns
            seconds = max(0.0, (ends_ns - self._clock.now_ns()) / NS_PER_SECOND)
            self._agenda.after(seconds, lambda: self._gone(marked))
        if not returns or owner is None:
            return
        sets = self.objects.manifests.get(("apps", "StatefulSet"), {})
        if owner.kind == "StatefulSet":
            self._awaited[current.key] = current.uid
            seconds += CALL_SECONDS  # the name has to be free
            if (current.namespace, owner.name) in sets:
                return  # `stateful_sets` makes the pod again
        else:
            seconds = CALL_SECONDS
        self._agenda.after(seconds, lambda: self._replace(current, owner, at_once=at_once))

    def _gone(self, pod: Pod) -> None:
        current = self.current(pod)
        if current is not None:
            del self.objects.pods[pod.key]
            self._progressed()
            self.filled.pods.on_delete(current, missed=False)
            self._tell(current)

    def _replace(self, pod: Pod, owner: OwnerReference, *, at_once: bool) -> None:
        """Make the pod that an owner makes for a pod that leaves."""
        if at_once and owner.kind in _OF_ONE_NODE:
            return  # its node is gone
        name = pod.name
        if owner.kind != "StatefulSet":
            name = f"{owner.name}-{name_suffix(self._suffixes)}"
            self._awaited[pod.namespace, name] = pod.uid
        self.add_pod(fresh(pod, name=name))

    def _tell(self, pod: Pod) -> None:
        for listener in self.listeners:
            listener(pod)

    # --- other objects --------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Add or change a node."""
        old = self.objects.nodes.get(node.name)
        uid = node.metadata.uid or new_uid(self._uids)
        metadata = msgspec.structs.replace(
            node.metadata, uid=uid, resource_version=self._next_version()
        )
        node = msgspec.structs.replace(node, metadata=metadata)
        self.objects.nodes[node.name] = node
        self._progressed()
        if old is None:
            self.filled.nodes.on_add(node)
        else:
            self.filled.nodes.on_update(old, node)

    def put(self, lister: str, key: Key, obj: ApiObject) -> None:
        """Add or change an object of another watched kind."""
        known = self.objects.lister(lister)
        old = known.get(key)
        known[key] = obj
        ingest = self.filled.others.get(lister)
        if ingest is None:
            return  # the profiles do not watch this kind
        if old is None:
            ingest.on_add(obj)
        else:
            ingest.on_update(old, obj)

    def remove(self, lister: str, key: Key) -> None:
        """Remove an object of another watched kind, if it is there."""
        old = self.objects.lister(lister).pop(key, None)
        ingest = self.filled.others.get(lister)
        if old is not None and ingest is not None:
            ingest.on_delete(old, missed=False)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods go after a while, one after another, as no kubelet runs them."""
        pods = self.pods_on(name)
        node = self.objects.nodes.pop(name)
        self._progressed()
        self.filled.nodes.on_delete(node, missed=False)
        for number, pod in enumerate(pods):
            seconds = _QUARANTINE_SECONDS + 2 * CALL_SECONDS * number
            self._agenda.after(seconds, partial(self.leave, pod, at_once=True))

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """Return the unfinished pods of a node, by name."""
        found = [
            pod
            for pod in self.objects.pods.values()
            if pod.spec.node_name == node_name and not is_finished(pod)
        ]
        return sorted(found, key=lambda pod: pod.key)

    def world_now(self) -> World:
        """Return the world as it is now."""
        return msgspec.structs.replace(
            self.world, objects=self.objects.copy(), now_ns=self._clock.now_ns()
        )

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)


def controller_of(pod: Pod) -> OwnerReference | None:
    """Return the owner that would make another pod."""
    return next((each for each in pod.metadata.owner_references if each.controller), None)


def fresh(pod: Pod, *, name: str) -> Pod:
    """Return a pod as its owner would make it again: without node, status and identity."""
    metadata = msgspec.structs.replace(
        pod.metadata, name=name, uid="", deletion_timestamp=None, deletion_grace_period_seconds=None
    )
    spec = msgspec.structs.replace(pod.spec, node_name="")
    status = msgspec.structs.replace(type(pod.status)(), phase="Pending")
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status)
