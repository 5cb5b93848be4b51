"""A pod's whole lifecycle as one table; the queue, the cache and the service move pods through it.

The table says which moves exist and when each happens; the queue and the cache own the collections
behind the states and check in ``validate()`` that both agree. An impossible move raises
`InvalidTransitionError` with the pod's history, so a bug shows where it happened. `mermaid` draws
the diagram in the docs from the same table.

Which collection holds the pod: *active*, *backoff*, *unschedulable*, *gated* the sub-queues (gated
pods sit among the unschedulable ones); *in flight* nothing but the attempt that owns it; *assumed*,
*waiting* and *binding* the cache, as assumed; *bound* the cache, as added.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.base.clock import Clock
from moorage.state.history import Histories, HistoryEntry
from moorage.state.queued_pod import PodKey


class PodState(Enum):
    """The state of a pod on its way from the API to a node."""

    # Members are singletons; Enum's own hash is a Python function, and every move of every pod
    # needs the hash.
    __hash__ = object.__hash__

    UNKNOWN = "unknown"
    """Never seen, or forgotten long ago."""
    ACTIVE = "active"
    """In activeQ: to be tried as soon as its turn comes."""
    BACKOFF = "backoff"
    """In backoffQ: to be tried when its backoff is over."""
    UNSCHEDULABLE = "unschedulable"
    """Among unschedulablePods: waits for a cluster event that may help."""
    GATED = "gated"
    """Kept out of the queue by a PreEnqueue plugin."""
    IN_FLIGHT = "in-flight"
    """Popped: an attempt owns it."""
    ASSUMED = "assumed"
    """Counted on its node before the API server knows."""
    WAITING = "waiting"
    """Assumed, held by a Permit plugin."""
    BINDING = "binding"
    """Assumed, its binding is being written."""
    BOUND = "bound"
    """The watch showed it on its node."""
    GONE = "gone"
    """Deleted, finished, or no longer ours to schedule."""


_S = PodState
# Under names of their own, because every move needs these members: finding a member in its class
# takes ten times as long.
_UNKNOWN, _BOUND, _GONE = PodState.UNKNOWN, PodState.BOUND, PodState.GONE

_LEAVING: dict[PodState, str] = {
    _S.BOUND: "bound by somebody else",
    _S.GONE: "deleted from the API",
}

TRANSITIONS: Mapping[PodState, Mapping[PodState, str]] = MappingProxyType(
    {
        _S.UNKNOWN: {
            _S.ACTIVE: "added to the API",
            _S.GATED: "added, PreEnqueue refused",
            _S.BACKOFF: "came back after its attempt was closed",
            _S.UNSCHEDULABLE: "came back after its attempt was closed",
            _S.IN_FLIGHT: "a second copy of a pod that left was popped",
            _S.ASSUMED: "assumed without having been queued",
            _S.BOUND: "first seen on a node",
        },
        _S.ACTIVE: {_S.IN_FLIGHT: "popped", **_LEAVING},
        _S.BACKOFF: {
            _S.ACTIVE: "backoff complete, activated or replaced",
            _S.IN_FLIGHT: "popped because nothing was active",
            _S.GATED: "backoff complete, PreEnqueue refused",
            **_LEAVING,
        },
        _S.UNSCHEDULABLE: {
            _S.ACTIVE: "an event may help and its backoff is over",
            _S.BACKOFF: "an event may help",
            _S.GATED: "an event may help, PreEnqueue refused",
            **_LEAVING,
        },
        _S.GATED: {
            _S.ACTIVE: "PreEnqueue let it in",
            _S.BACKOFF: "PreEnqueue let it in, its backoff is running",
            **_LEAVING,
        },
        _S.IN_FLIGHT: {
            _S.ASSUMED: "a node was chosen",
            _S.UNSCHEDULABLE: "rejected, nothing happened meanwhile that may help",
            _S.BACKOFF: "failed with an error, or rejected and an event may help",
            _S.ACTIVE: "what it was pending on happened meanwhile",
            _S.GATED: "came back, PreEnqueue refused",
            _S.BOUND: "bound by somebody else",
            _S.GONE: "attempt closed, not to be tried again",
        },
        _S.ASSUMED: {
            _S.WAITING: "Permit said wait",
            _S.BINDING: "Permit let it go",
            _S.IN_FLIGHT: "forgotten",
            _S.BOUND: "confirmed by the watch",
            _S.GONE: "deleted from the API",
        },
        _S.WAITING: {
            _S.BINDING: "allowed",
            _S.IN_FLIGHT: "rejected or timed out, forgotten",
            _S.BOUND: "confirmed by the watch",
            _S.GONE: "deleted from the API",
        },
        _S.BINDING: {
            _S.IN_FLIGHT: "binding failed, forgotten",
            _S.BOUND: "confirmed by the watch",
            _S.GONE: "deleted from the API",
        },
        _S.BOUND: {_S.GONE: "deleted or finished"},
        _S.GONE: {},
    }
)
"""From state to the states it may move to, with the reason that makes it move.

`PodState.GONE` is an end: a pod object that appears again begins at `PodState.UNKNOWN`.
"""

QUEUED = frozenset({_S.ACTIVE, _S.BACKOFF, _S.UNSCHEDULABLE, _S.GATED})
"""States held by the queue."""

ATTEMPTED = frozenset({_S.IN_FLIGHT, _S.ASSUMED, _S.WAITING, _S.BINDING})
"""States owned by an attempt, including its binding task."""


class InvalidTransitionError(Exception):
    """A pod was moved as the lifecycle does not allow: a bug, told with the pod's history."""

    def __init__(
        self, key: PodKey, origin: PodState, to: PodState, history: tuple[HistoryEntry, ...]
    ) -> None:
        self.key = key
        self.origin = origin
        self.to = to
        self.history = history
        lines = "".join(f"\n  {entry}" for entry in history)
        super().__init__(
            f"pod {key[0]}/{key[1]} cannot move from {origin.value} to {to.value}; "
            f"its history:{lines}"
        )


class Lifecycle:
    """The state of every pod, and the only way to change it.

    The queue, the cache and the service share one object.

    Parameters
    ----------
    clock
        Source of the history's times.
    histories
        The histories that moves are written to; made here when not given.
    """

    def __init__(self, clock: Clock, histories: Histories | None = None) -> None:
        self.histories = histories if histories is not None else Histories(clock)
        # uid -> state. UNKNOWN and GONE are not stored.
        self._states: dict[str, PodState] = {}
        self.known: Final = self._states.get  # not a method around it: asked at each move
        """Returns a pod's state by uid; None where it is unknown or gone."""

    def __len__(self) -> int:
        return len(self._states)

    def state(self, uid: str) -> PodState:
        """Return a pod's state; GONE only as long as its history is remembered."""
        found = self._states.get(uid)
        if found is None:
            return _S.UNKNOWN if self.histories.get(uid) is None else _S.GONE
        return found

    def in_state(self, state: PodState) -> list[str]:
        """Return the uids of all pods in a state, in the order they became known."""
        return [uid for uid, held in self._states.items() if held is state]

    def move(self, pod: Pod, to: PodState, *, cause: str) -> None:
        """Move a pod to another state and tell its history.

        A move to the present state is recorded, too: the history then shows that the pod was looked
        at again and stayed.

        Raises
        ------
        InvalidTransitionError
            The table has no such move.
        """
        states, histories, uid = self._states, self.histories, pod.metadata.uid
        origin = states.get(uid, _UNKNOWN)
        if origin is not to and to not in TRANSITIONS[origin]:
            raise InvalidTransitionError(pod.key, origin, to, histories.history_of(uid))
        if to is _GONE:
            del states[uid]
        else:
            states[uid] = to
        history = histories.get(uid)
        # Pods that were never ours to schedule have no history: most of a cluster is such pods.
        if origin is _UNKNOWN:
            if to is _BOUND:
                return
            histories.reopen(uid)
        elif origin is _BOUND and history is None:
            return
        if history is None:
            history = histories.begin_history(uid, pod.key)
        kept = history.newest  # as `Histories.add_entry`, which costs another call at each move
        kept.append(HistoryEntry(histories.now_ns(), _PHRASES[to], cause))
        if len(kept) > histories.entries_max:
            history.drop_oldest()
        if to is _BOUND or to is _GONE:
            histories.finish(uid)

    def progress(self, pod: Pod, to: PodState, *, cause: str) -> bool:
        """Move an assumed pod on to WAITING or BINDING, if it is still assumed.

        For the binding task: between two of its steps the watch may have had the pod forgotten,
        removed or bound. Then the step is only recorded, and the answer of the API decides.

        Returns
        -------
        bool
            Whether the pod was still assumed.
        """
        assert to in _PROGRESS, f"{to.value} is not a step of a binding task"
        if self._states.get(pod.uid) not in _ASSUMED:
            self.add_entry(pod, f"no longer assumed when {to.value}", cause=cause)
            return False
        self.move(pod, to, cause=cause)
        return True

    def end_history(self, uid: str, *, cause: str) -> None:
        """Move a pod to GONE when only its uid is at hand.

        Raises
        ------
        InvalidTransitionError
            The pod is not known.
        """
        namespace, name = self.pod_key_of(uid)
        pod = Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))
        self.move(pod, _GONE, cause=cause)

    def pod_key_of(self, uid: str) -> PodKey:
        """Return (namespace, name) of a pod with a history; empty strings for any other pod."""
        history = self.histories.get(uid)
        return history.key if history is not None else ("", "")

    def add_entry(self, pod: Pod, what: str, *, cause: str) -> None:
        """Add to a pod's history without moving it."""
        self.histories.add_entry(pod.uid, pod.key, what, cause=cause)
        if pod.uid not in self._states:
            # No later move ends this history: it is dropped with the finished ones.
            self.histories.finish(pod.uid)


_PROGRESS = frozenset({_S.WAITING, _S.BINDING})
_ASSUMED = frozenset({_S.ASSUMED, _S.WAITING, _S.BINDING})
_PHRASES = {state: f"-> {state.value}" for state in PodState}


def mermaid() -> str:
    """Return the lifecycle as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> unknown"]
    for origin, moves in TRANSITIONS.items():
        lines += [
            f"    {_mermaid_id(origin)} --> {_mermaid_id(to)}: {reason}"
            for to, reason in moves.items()
        ]
    lines.append(f"    {_mermaid_id(PodState.GONE)} --> [*]")
    return "\n".join(lines) + "\n"


def _mermaid_id(state: PodState) -> str:
    # A hyphen would end the identifier.
    return state.value.replace("-", "_")
