"""The page of a pod's states and what moves it: tables and a diagram, drawn from the program.

Called by ``tools.pages.generate``. The lifecycle is read from its table; what the queue and the
cache do is found by doing it: each cell of those tables is a queue (or a cache) brought into a
state and told something.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod, PodSpec, Toleration
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.errors import CacheCorruptedError, CacheError
from moorage.snapshot.table import NodeTable
from moorage.state.cache import Cache, Hold, Move
from moorage.state.contracts import Hint, RegisteredHint
from moorage.state.lifecycle import TRANSITIONS, mermaid
from moorage.state.nominations import Nominator
from moorage.state.queue import SchedulingQueue
from moorage.state.queue_version import V1_36, QueueVersion, v1_20
from moorage.state.queued_pod import QueuedPod

_HEADER = """# A pod's states, and what moves it

<!-- Written by `make docs` from the program. Do not edit. -->

"""
_PROFILE = "default-scheduler"
_HELPS = ClusterEvent(Resource.NODE, Action.ADD)
_OTHER = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
_NOBODYS = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
_GATES = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)


def state_page() -> str:
    """Return the whole page."""
    return _HEADER + "\n".join([_lifecycle(), _queue(), _cache()])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


# --- the lifecycle --------------------------------------------------------------------------------


def _lifecycle() -> str:
    rows = [
        [origin.value, to.value, reason]
        for origin, moves in TRANSITIONS.items()
        for to, reason in moves.items()
    ]
    return (
        "## Lifecycle\n\nThe moves there are; any other is a fault of the program and is reported "
        "with its history.\nIn *active*, *backoff*, *unschedulable* and *gated* the queue has "
        "the pod; in *assumed*,\n*waiting*, *binding* and *bound* the cache; *in-flight* nobody "
        "but its attempt.\n\n"
        f"```mermaid\n{mermaid()}```\n\n" + table(["From", "To", "When"], rows)
    )


# --- the queue ------------------------------------------------------------------------------------


class _Queue:
    """A queue with one pod, whose gate can be shut; times are seconds since it was made."""

    def __init__(self, version: QueueVersion) -> None:
        self.clock = ManualClock()
        self.shut = False
        self.answer = Hint.QUEUE
        self.popped: QueuedPod | None = None
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=lambda queued: queued.timestamp_ns,
            pre_enqueue={_PROFILE: [("Gate", self._gate)]},
            hints={
                _PROFILE: [
                    RegisteredHint("Rejector", _HELPS, lambda *_: self.answer),
                    RegisteredHint("Other", _OTHER),
                    RegisteredHint("Gate", _GATES),
                ]
            },
            nominator=Nominator(lambda _namespace, _name: _pod()),
            version=version,
        )

    def _gate(self, pod: Pod) -> tuple[str, tuple[str, ...]] | None:
        del pod
        return ("UnschedulableAndUnresolvable", ("shut",)) if self.shut else None

    def wait_seconds(self, seconds: float) -> None:
        self.clock.advance_ns(round(seconds * NS_PER_SECOND))

    def pop(self) -> None:
        self.popped = self.queue.pop()

    def fail(self, rejectors: Sequence[str], pending: Sequence[str] = ()) -> None:
        assert self.popped is not None
        self.popped.rejected_by(rejectors, pending)
        self.queue.add_unschedulable_if_not_present(self.popped)

    def place(self) -> str:
        self.queue.validate()
        counts = self.queue.counts()
        for place in ("active", "backoff", "unschedulable", "gated"):
            if getattr(counts, place):
                copy = " (second copy)" if counts.in_flight and place == "active" else ""
                return place + copy
        return "in-flight" if counts.in_flight else "-"


_Step = Callable[[_Queue], None]


def _pod(*, changed: bool = False) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", namespace="default", uid="u"),
        spec=PodSpec(
            scheduler_name=_PROFILE,
            tolerations=[Toleration(operator="Exists")] if changed else [],
        ),
    )


def _active(world: _Queue) -> None:
    world.queue.add(_pod())


def _in_flight(world: _Queue) -> None:
    _active(world)
    world.pop()


def _unschedulable(world: _Queue) -> None:
    _in_flight(world)
    world.fail(["Rejector"])


def _rested(world: _Queue) -> None:
    _unschedulable(world)
    world.wait_seconds(20)


def _backoff(world: _Queue) -> None:
    _unschedulable(world)
    world.queue.move_all(_HELPS, None, None)


def _gated(world: _Queue) -> None:
    world.shut = True
    _active(world)


_STATES: dict[str, _Step] = {
    "not queued": lambda _world: None,
    "active": _active,
    "backoff": _backoff,
    "unschedulable, backing off": _unschedulable,
    "unschedulable, backoff over": _rested,
    "gated": _gated,
    "in flight": _in_flight,
}


def _event(event: ClusterEvent, answer: Hint = Hint.QUEUE) -> _Step:
    def happen(world: _Queue) -> None:
        world.answer = answer
        world.queue.move_all(event, None, None)

    return happen


def _opened(step: _Step) -> _Step:
    def happen(world: _Queue) -> None:
        world.shut = False
        step(world)

    return happen


def _flush(world: _Queue) -> None:
    world.queue.flush_backoff()


def _flush_later(world: _Queue) -> None:
    world.wait_seconds(15)
    _flush(world)


def _leftover_after(seconds: float) -> _Step:
    def happen(world: _Queue) -> None:
        world.wait_seconds(seconds)
        world.queue.flush_unschedulable_leftover()

    return happen


def _pop(world: _Queue) -> None:
    if world.popped is None or not world.queue.counts().in_flight:
        world.pop()


_HAPPENINGS: dict[str, _Step] = {
    "added": lambda world: world.queue.add(_pod()),
    "updated": lambda world: world.queue.update(_pod(), _pod(changed=True)),
    "deleted, or bound by somebody else": lambda world: world.queue.delete(_pod()),
    "event, hint Queue": _event(_HELPS),
    "event, hint Skip": _event(_HELPS, Hint.SKIP),
    "event another plugin registered": _event(_OTHER),
    "event nobody registered": _event(_NOBODYS),
    "event of its gate, which opened": _opened(_event(_GATES)),
    "activated": lambda world: world.queue.activate([_pod()]),
    "activated, its gate opened": _opened(lambda world: world.queue.activate([_pod()])),
    "backoff flush, at once": _flush,
    "backoff flush, after 15 s": _flush_later,
    "leftover flush, after 61 s": _leftover_after(61),
    "leftover flush, after 301 s": _leftover_after(301),
    "popped": _pop,
}


def _then(*steps: _Step) -> _Step:
    def happen(world: _Queue) -> None:
        for step in steps:
            step(world)

    return happen


def _rejected(world: _Queue) -> None:
    world.fail(["Rejector"])


def _pending(world: _Queue) -> None:
    world.fail([], ["Rejector"])


def _errs(world: _Queue) -> None:
    world.fail([])


def _activate(world: _Queue) -> None:
    world.queue.activate([_pod()])


_ENDS: dict[str, _Step] = {
    "rejected, nothing happened meanwhile": _rejected,
    "rejected, an event came, hint Queue": _then(_event(_HELPS), _rejected),
    "rejected, an event came, hint Skip": _then(_event(_HELPS, Hint.SKIP), _rejected),
    "rejected, an event another plugin registered came": _then(_event(_OTHER), _rejected),
    "rejected, was activated meanwhile": _then(_activate, _rejected),
    "pending, nothing happened meanwhile": _pending,
    "pending, its event came, hint Queue": _then(_event(_HELPS), _pending),
    "met an error": _errs,
    "met an error, an event came": _then(_event(_OTHER), _errs),
    "ended without being given back": lambda world: world.queue.end_in_flight("u"),
}


def _queue() -> str:
    versions = {"v1.36": V1_36, "v1.20": v1_20(lambda _namespace: {})}
    parts = [
        "## What moves a queued pod\n\n"
        "The pod was rejected by one plugin, which registered an event for its hint to judge. In "
        "each cell: where\nthe pod is afterwards. Two values stand for `queueCompat: v1.36` / "
        "`v1.20` where they differ.\n"
    ]
    with _silent():
        rows = [
            [f"**{what}**", *(_cell(versions, before, step) for before in _STATES.values())]
            for what, step in _HAPPENINGS.items()
        ]
        parts.append(table(["", *_STATES], rows))
        parts.append("How an attempt ends, and where the pod is then:\n")
        ends = [[what, _cell(versions, _in_flight, step)] for what, step in _ENDS.items()]
    parts.append(table(["Attempt", "Pod"], ends))
    return "\n".join(parts)


def _cell(versions: dict[str, QueueVersion], before: _Step, step: _Step) -> str:
    found = []
    for each in versions.values():
        world = _Queue(each)
        before(world)
        step(world)
        found.append(world.place())
    return found[0] if len(set(found)) == 1 else " / ".join(found)


# --- the cache ------------------------------------------------------------------------------------


def _cache() -> str:
    rows = [[f"**{move.value}**", *(_held_after(hold, move) for hold in Hold)] for move in Move] + [
        ["**update, on another node**", *(_held_after(hold, Move.UPDATE, "n2") for hold in Hold)],
        ["**remove, on another node**", *(_held_after(hold, Move.REMOVE, "n2") for hold in Hold)],
    ]
    return (
        "## How the cache holds a pod\n\n"
        "The state of a pod after a stimulus to the cache. A refused stimulus changes "
        "nothing and is logged;\n*corrupted* would end the scheduler, because a pod never moves "
        "between nodes. A server that says so\nall the same is taken to have deleted the pod and "
        "made it again, so the cache is not asked.\n\n"
        + table(["", *(hold.value for hold in Hold)], rows)
    )


def _held_after(hold: Hold, move: Move, node_name: str = "n1") -> str:
    cache = Cache(NodeTable(), ManualClock())
    plain = _pod()
    placed = Pod(metadata=plain.metadata, spec=PodSpec(node_name=node_name))
    if hold is not Hold.ABSENT:
        cache.assume_pod(plain, "n1")
    if hold is Hold.ADDED:
        cache.add_pod(Pod(metadata=plain.metadata, spec=PodSpec(node_name="n1")))
    tell = {
        Move.ASSUME: lambda: cache.assume_pod(plain, "n1"),
        Move.FORGET: lambda: cache.forget_pod(plain),
        Move.ADD: lambda: cache.add_pod(placed),
        Move.UPDATE: lambda: cache.update_pod(placed, placed),
        Move.REMOVE: lambda: cache.remove_pod(placed),
    }
    try:
        tell[move]()
    except CacheCorruptedError:
        return "corrupted"
    except CacheError:
        return "refused"
    cache.validate()
    if cache.is_assumed("u"):
        return Hold.ASSUMED.value
    return Hold.ADDED.value if "u" in cache.dump().pods else Hold.ABSENT.value


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the log quiet about what is brought about on purpose."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
