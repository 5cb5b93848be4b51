"""A model of a cluster in which time passes, pods are decided about, and changes happen.

Flow: a change of an object enters through the ingests (`deciding_half`), as a watch
event would. `settle` pops pods and has each one decided by the scheduler's own parts; their effects
(`effects`) come back as changes a moment later, by the agenda. It ends when nothing is due.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from moorage.api.meta import Condition, OwnerReference
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, ManualClock, parse_rfc3339, rfc3339
from moorage.base.ids import name_suffix
from moorage.base.rng import Streams
from moorage.client.pod_status import with_condition
from moorage.nodeshapes.stopping import stopping_of
from moorage.service.attempts.flushes import groups_need_look, look_at_groups
from moorage.service.binding.permit_reasons import holders_at_permit
from moorage.service.groups.incomplete_groups import lacking_groups, members_lacking
from moorage.virtual.agenda import Agenda, HeldPods, Order
from moorage.virtual.attempt_loop import AttemptLoop
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.effects import CALL_SECONDS
from moorage.virtual.live_objects import LiveObjects, fresh
from moorage.virtual.objects import Key
from moorage.virtual.owner_kinds import kind_of, may_return, unknown_owner

# A pod of the sandbox is ready that long after its binding; a guess for other clusters.
_START_SECONDS: Final = 1.0
# Nothing bound, evicted or made for so long: from here on pods are only tried again. More than the
# longest backoff (10 s) and than the usual wait at Permit (60 s).
_PATIENCE_NS: Final = 180 * NS_PER_SECOND
# Attempts for each pod that may be tried: a guess, far above what any sensible cluster needs.
_ATTEMPTS_PER_POD: Final = 40
_ATTEMPTS_LEAST: Final = 2_000
# kubernetes v1.36 pkg/scheduler/backend/queue: a look for pods that waited too long.
_LEFTOVER_LOOK_NS: Final = 30 * NS_PER_SECOND
_YEAR_SECONDS: Final = 31_536_000
# Time for which the pods of a node that is gone are kept (kubernetes v1.36 podgc, quarantineTime).
_QUARANTINE_SECONDS: Final = 40.0
# Between two changes: every backoff is over.
_REST_SECONDS: Final = 15
# A pod that should have stopped so long ago is stuck, and stays. A guess.
_STUCK_NS: Final = 60 * NS_PER_SECOND


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
        Whether nothing is known to make another: the pod has no owner, or an unknown one.
    deleted
        Whether it was deleted by name, so that nothing says that it was disrupted.
    """

    pod: Pod
    by: Pod | None
    successor: str = ""
    lost: bool = False
    deleted: bool = False


def _no_limit() -> None:
    """Go on."""


class ClusterModel(LiveObjects):
    """A cluster in memory, from its start to the last change.

    Parameters
    ----------
    inputs
        The cluster and its scheduler at the start; they stay as they are.
    earlier
        The model that this one continues, under another configuration.

    Attributes
    ----------
    evictions
        The pods that had to leave, by uid, in order.
    bound
        Uids of the pods that were bound, in order, and their nodes.
    is_quiet
        Whether the last `settle` came to an end by itself.
    names
        Random streams of uids and names.
    remake
        Puts the pod that an owner makes for one that leaves; bounds of namespaces may refuse it.
    check
        Raises where a limit of the answer is reached; called before each attempt about a pod.
    order
        The order of what happens at one moment.
    """

    def __init__(self, inputs: ClusterInputs, *, earlier: ClusterModel | None = None) -> None:
        clock = ManualClock(inputs.now_ns)
        self._agenda = Agenda(clock)
        held_pods = HeldPods(self._agenda)
        half = inputs.fill(clock=clock, waiting=held_pods)
        self.names: Streams = Streams(inputs.seed) if earlier is None else earlier.names
        self.order: Order = Order(0, self.names) if earlier is None else earlier.order
        super().__init__(inputs.objects.copy(), half, clock, self.order.uids)
        self.inputs = inputs
        self.evictions: dict[str, Eviction] = {} if earlier is None else dict(earlier.evictions)
        self.bound: dict[str, str] = {} if earlier is None else dict(earlier.bound)
        self.is_quiet = True
        self.remake: Callable[[Pod], object] = self.add_pod
        self.check: Callable[[], object] = _no_limit if earlier is None else earlier.check
        # Name of a pod that a StatefulSet will make again -> uid of the pod that left.
        self._awaited: dict[Key, str] = {}
        self._suffixes = self.names.stream("what-if/names")
        self._deciding = AttemptLoop(half, self, self._agenda, held_pods=held_pods, clock=clock)
        self._leftover_ns = clock.now_ns() + self._leftover_max_ns
        if earlier is not None:
            self.touched = dict(earlier.touched)
        self._stop_under_way()

    def take_order(self, number: int) -> None:
        """Let happen in the order of a number what happens at one moment."""
        self.order = Order(number, self.names)
        self._uids = self.order.uids

    def begin_moment(self, pending: Sequence[Pod], *, now_ns: int, draws: Streams) -> None:
        """Begin at a moment of a running scheduler; nothing has been tried here before.

        Parameters
        ----------
        pending
            The pods without a node, in the order of the scheduler's queue.
        now_ns
            The moment, nanoseconds since the Unix epoch.
        draws
            Continue the scheduler's random streams.
        """
        self._clock.advance_ns(max(0, now_ns - self._clock.now_ns()))
        self.inputs = msgspec.structs.replace(self.inputs, draws=draws, now_ns=now_ns)
        self.rewind_draws()
        for pod in pending:
            self.half.pods.on_add(pod)
        self._stop_under_way()
        self.mark()

    def _stop_under_way(self) -> None:
        """Let the pods go that are being deleted already; their room is free then.

        A node agent of ours stops a pod when `stopping_of` says. Where that is over and the pod is
        still there, another kubelet runs it, which may take the whole grace period.
        """
        now_ns = self._clock.now_ns()
        for pod in self.objects.pods.values():
            until = pod.metadata.deletion_timestamp
            if not until or not pod.spec.node_name or pod.spec.node_name not in self.objects.nodes:
                continue
            end_ns = stopping_of(pod).ended_ns
            if end_ns <= now_ns:
                end_ns = parse_rfc3339(until)
            if end_ns + _STUCK_NS > now_ns:
                self._agenda.call_at(max(end_ns, now_ns), partial(self._stopped, pod))

    def _stopped(self, pod: Pod) -> None:
        """Remove a pod that was being deleted; a StatefulSet makes it again now."""
        current = self.current(pod)
        if current is None:
            return
        self.drop_pod(current)
        owner = current.metadata.controller
        if owner is not None and owner.kind == "StatefulSet":
            self._remake(current, owner, CALL_SECONDS)

    # --- time -----------------------------------------------------------------------------------

    def settle(self, *, within_seconds: float = math.inf) -> None:
        """Let time pass until nothing is due any more, or until pods are only tried again.

        Parameters
        ----------
        within_seconds
            Longest time that passes; all of it passes if something is due later.
        """
        self._note_progress()
        last_ns = self._clock.now_ns() + min(within_seconds, _YEAR_SECONDS) * NS_PER_SECOND
        most = self._deciding.attempted + _ATTEMPTS_LEAST
        most += _ATTEMPTS_PER_POD * len(self.objects.pods)
        while self._deciding.attempt_all(self.check, most):
            due_ns = self._next_ns()
            if due_ns is None or due_ns > self._progress_ns + _PATIENCE_NS:
                self.is_quiet = True
                if within_seconds == math.inf:
                    self._clock.advance(_REST_SECONDS)
                return
            if due_ns > last_ns:
                self._clock.advance_ns(round(last_ns) - self._clock.now_ns())
                return
            self._pass(due_ns)
        self.is_quiet = False

    def run(self, goes_on: Callable[[], bool], *, until_ns: int | None = None) -> None:
        """Let time pass as long as more is to come, and then until nothing moves any more.

        Pods that waited too long for an event are tried again, as a running scheduler does.

        Parameters
        ----------
        goes_on
            Whether something is still to come, such as an arrival or the end of a pod.
        until_ns
            Wall-clock time at which to stop in any case; None to stop by itself.
        """
        self.is_quiet = False
        last_ns = math.inf if until_ns is None else until_ns
        while True:
            self._deciding.attempt_all(self.check)
            due_ns = self._next_ns()
            if self.half.core.queue.counts().unschedulable:
                look_ns = self._next_look_ns()
                due_ns = look_ns if due_ns is None else min(due_ns, look_ns)
            if due_ns is None or (not goes_on() and due_ns > self._progress_ns + _PATIENCE_NS):
                self.is_quiet = True
                return
            if due_ns > last_ns:
                assert until_ns is not None, "without a bound no moment is beyond it"
                self._clock.advance_ns(until_ns - self._clock.now_ns())
                return
            self._pass(due_ns)

    def _pass(self, due_ns: int) -> None:
        """Let time pass until something is due, and let it happen."""
        if due_ns == self._agenda.next_ns:
            # All events of one moment are seen together.
            while self._agenda.next_ns == due_ns:
                self.check()
                self._agenda.make_next()
            return
        self._clock.advance_ns(due_ns - self._clock.now_ns())
        self.half.core.queue.flush_backoff()
        look_at_groups(self.half.core, self._deciding.pump)
        if due_ns >= self._leftover_ns and due_ns == self._next_look_ns():
            self._flush_leftover()

    def _next_look_ns(self) -> int:
        """Return when to look next for pods that waited too long, as a scheduler does: by rote."""
        begin_ns = self.inputs.now_ns
        passed = max(self._leftover_ns, self._clock.now_ns()) - begin_ns
        return begin_ns - (-passed // _LEFTOVER_LOOK_NS) * _LEFTOVER_LOOK_NS

    def _flush_leftover(self) -> None:
        """Try the pods again that waited too long, and note when to look the next time."""
        queue, now_ns = self.half.core.queue, self._clock.now_ns()
        queue.flush_unschedulable_leftover()
        since_ns = min((each.since_ns for each in queue.pending().unschedulable), default=now_ns)
        looks = -(-(since_ns + self._leftover_max_ns - now_ns) // _LEFTOVER_LOOK_NS)
        self._leftover_ns = now_ns + max(1, looks) * _LEFTOVER_LOOK_NS

    @property
    def _leftover_max_ns(self) -> int:
        return self.half.core.queue.settings.unschedulable_max_ns

    def call_at(self, due_ns: int, act: Callable[[], None]) -> None:
        """Note a call for a moment, wall-clock nanoseconds."""
        self._agenda.call_at(due_ns, act)

    def soon(self, act: Callable[[], None]) -> None:
        """Let happen what a controller has decided, a call later."""
        self._agenda.after(CALL_SECONDS + self.order.delay_seconds(), act)

    @property
    def attempts(self) -> int:
        """Number of attempts so far."""
        return self._deciding.attempted

    def rewind_draws(self) -> None:
        """Draw again what a running scheduler would draw next, as if nothing had been tried yet."""
        begin = self.inputs.draws
        if begin is not None:
            self.half.streams.rewind(begin)

    def _next_ns(self) -> int | None:
        """Return when something is due, wall-clock nanoseconds."""
        moments = [self._agenda.next_ns]
        core = self.half.core
        if core.queue.counts().backoff or groups_need_look(core, self._deciding.pump):
            # A scheduler looks once a second.
            moments.append((self._clock.now_ns() // NS_PER_SECOND + 1) * NS_PER_SECOND)
        return min((each for each in moments if each is not None), default=None)

    # --- pods -----------------------------------------------------------------------------------

    def reasons(self) -> dict[str, str]:
        """Return why pods have no node, by uid; a pod at Permit, or gated, has a reason as well."""
        core, reasons = self.half.core, dict(self._deciding.reports.reasons)
        # The attempt of a member names the members of its moment, and more of them came since.
        one_by_one = holders_at_permit(core.profiles)
        for key, lack in lacking_groups(core, one_by_one).items():
            for pod, reason in members_lacking(core, key, lack, one_by_one=one_by_one):
                if reason not in reasons.get(pod.uid, reason):
                    reasons[pod.uid] = reason
        for pending in core.queue.pending().gated:
            why = ", ".join(pending.gating_reasons)
            reasons[pending.pod.uid] = f"held before the queue by {pending.gating_plugin}: {why}"
        for waiting in core.waiting.undecided_pods():
            plugins = ", ".join(waiting.pending)
            reasons[waiting.pod.uid] = f"waits at Permit for {plugins}"
        return reasons

    def add_pod(self, pod: Pod) -> Pod:
        """Put a new pod; it is the successor of the pod whose owner made it."""
        left = self.evictions.get(self._awaited.pop(pod.key, ""))
        if left is not None:
            pod = self._with_uid(pod)
            self.evictions[left.pod.uid] = msgspec.structs.replace(left, successor=pod.uid)
        return super().add_pod(pod)

    def predecessor_of(self, pod: Pod) -> str:
        """Return the uid of the pod that left and that a pod not made yet would follow, or ""."""
        return self._awaited.get(pod.key, "")

    def bind(self, pod: Pod, node_name: str) -> bool:
        """Bind a pod; False if it is gone or being deleted."""
        current = self.current(pod)
        if current is None or current.metadata.deletion_timestamp:
            return False
        self.bound[pod.uid] = node_name
        self._deciding.reports.reasons.pop(pod.uid, None)
        self._note_progress()
        spec = msgspec.structs.replace(current.spec, node_name=node_name)
        # Preemption looks at it, and a kubelet says it as soon as it has seen the pod.
        started = rfc3339(self._clock.now_ns())
        status = msgspec.structs.replace(current.status, nominated_node_name="", start_time=started)
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
        conditions = with_condition(current.status.conditions, ready)
        status = msgspec.structs.replace(current.status, phase="Running", conditions=conditions)
        self.update_pod(msgspec.structs.replace(current, status=status))

    def leave(
        self,
        pod: Pod,
        *,
        by: Pod | None = None,
        at_once: bool = False,
        returns: bool = True,
        deleted: bool = False,
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
        deleted
            Whether it is deleted by name, and not evicted.
        """
        current = self.current(pod)
        if current is None or current.metadata.deletion_timestamp:
            return
        self._note_progress()
        owner = current.metadata.controller
        if returns and current.spec.node_name:
            lost = owner is None or bool(unknown_owner(current))
            eviction = Eviction(current, by, lost=lost, deleted=deleted)
            self.evictions[pod.uid] = eviction
        seconds = self._delete(current, at_once=at_once)
        if not returns or owner is None or not self._returns(current, at_once=at_once):
            return
        if owner.kind == "StatefulSet":
            self._awaited[current.key] = current.uid
            self._remake(current, owner, seconds + CALL_SECONDS)  # the name has to be free
        else:
            self._remake(current, owner, CALL_SECONDS)

    def _delete(self, current: Pod, *, at_once: bool) -> float:
        """Delete a pod; return the seconds after which it is gone."""
        if at_once or not current.spec.node_name:
            self.drop_pod(current)
            return 0.0
        grace = current.spec.termination_grace_period_seconds
        grace = 30 if grace is None else grace
        end = rfc3339(self._clock.now_ns() + grace * NS_PER_SECOND)
        metadata = msgspec.structs.replace(
            current.metadata, deletion_timestamp=end, deletion_grace_period_seconds=grace
        )
        marked = msgspec.structs.replace(current, metadata=metadata)
        self.update_pod(marked)
        seconds = self._stopping_seconds(marked) + self.order.delay_seconds()
        self._agenda.after(seconds, lambda: self.drop_pod(marked))
        return seconds

    def _returns(self, pod: Pod, *, at_once: bool) -> bool:
        """Whether the owner of a pod makes another as the nodes are now."""
        node = None if at_once else self.objects.nodes.get(pod.spec.node_name)
        return may_return(pod, node)

    def _remake(self, pod: Pod, owner: OwnerReference, seconds: float) -> None:
        """Make the pod again after a while, unless the controller of its owner is played."""
        known = self.objects.manifests.get(kind_of(owner), {})
        if owner.kind in ("StatefulSet", "Job") and (pod.namespace, owner.name) in known:
            return  # `stateful_sets` or `jobs` makes the pod again
        seconds += self.order.delay_seconds()
        self._agenda.after(seconds, lambda: self._replace(pod, owner))

    def _stopping_seconds(self, pod: Pod) -> float:
        """Return how long a deleted pod stays; without a container there is nothing to stop."""
        if pod.status.phase == "Pending" and not pod.status.pod_ip:
            return CALL_SECONDS
        left_ns = stopping_of(pod).ended_ns - self._clock.now_ns()
        return max(0.0, left_ns / NS_PER_SECOND)

    def _replace(self, pod: Pod, owner: OwnerReference) -> None:
        """Make the pod that an owner makes for a pod that leaves."""
        name = pod.name
        if owner.kind != "StatefulSet":
            name = self.name_successor(f"{owner.name}-", pod)
        self.remake(fresh(pod, name=name))

    def name_successor(self, prefix: str, pod: Pod) -> str:
        """Return a name for the pod that an owner makes for one that left."""
        name = prefix + name_suffix(self._suffixes)
        self._awaited[pod.namespace, name] = pod.uid
        return name

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods go after a while, one after another, as no kubelet runs them."""
        pods = self.order.arrange(self.pods_on(name))
        self.drop_node(name)
        for number, pod in enumerate(pods):
            seconds = _QUARANTINE_SECONDS + 2 * CALL_SECONDS * number
            self._agenda.after(seconds, partial(self.leave, pod, at_once=True))

    def world_now(self) -> ClusterInputs:
        """Return the model as it is now."""
        return msgspec.structs.replace(
            self.inputs, objects=self.objects.copy(), now_ns=self._clock.now_ns()
        )
