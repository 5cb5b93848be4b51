"""A write of a scheduler together with what the scheduler must have known.

A scheduler may know less than the server: what others wrote a moment ago, or while its watch was
disturbed, is on its way. So a binding is judged by what the scheduler must have known, `known`:
its own bindings at once, everything else after a time.

The same rules answer another question: would a pod fit on a node? `placed` makes a write that never
happened, of a scheduler that knows everything.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import msgspec

from moorage_lab.fault_sim.history import History, Obj, Write, is_finished, node_of

LONG_AGO_NS = -(10**18)


class WriteCase(msgspec.Struct, frozen=True, kw_only=True):
    """A write, and what is known besides.

    Parameters
    ----------
    write
        The write.
    history
        The server's objects after the write.
    horizon_ns
        Age from which the writer must have seen what others wrote, nanoseconds.
    undisturbed
        Whether nothing delays, breaks or misbehaves.
    faultless
        Whether all connections and programs work; a plugin may hold pods.
    unscored
        Whether nothing scores nodes.
    """

    write: Write
    history: History
    horizon_ns: int
    undisturbed: bool = False
    faultless: bool = False
    unscored: bool = False

    @property
    def pod(self) -> Obj:
        """The pod that was written."""
        return self.write.now or {}

    @property
    def binds(self) -> bool:
        """Whether a scheduler gave a pod its node."""
        write = self.write
        return (
            write.resource == "pods"
            and write.path.endswith("/binding")
            and bool(node_of(write.now or {}))
        )

    @property
    def evicts(self) -> bool:
        """Whether a scheduler began the end of a pod."""
        return (
            self.write.resource == "pods"
            and self.write.by.startswith("scheduler")
            and not self.write.path.endswith(("/binding", "/status"))
            and not is_leaving(self.write.before)
            and (self.write.now is None or is_leaving(self.write.now))
        )

    def settled(self, moment_ns: int) -> bool:
        """Return whether the writer must know what happened at that moment."""
        return self.write.at_ns - moment_ns > self.horizon_ns

    def known(self, pod: Obj) -> bool:
        """Return whether the writer must know that a pod is on its node."""
        uid = pod["metadata"]["uid"]
        if not self.settled(self.history.relabelled_ns.get(uid, LONG_AGO_NS)):
            return False
        placed = self.history.placed.get(uid)
        return placed is None or placed.by == self.write.by or self.settled(placed.at_ns)

    @property
    def node(self) -> Obj | None:
        """The node that the pod got, if the writer must know how it looks now."""
        node = self.history.nodes.get(node_of(self.pod))
        return node if node is not None and self.steady(node) else None

    def steady(self, node: Obj) -> bool:
        """Return whether the writer must know how a node looks now."""
        changed_ns = self.history.node_changed_ns.get(node["metadata"]["name"], LONG_AGO_NS)
        return self.settled(changed_ns)

    def others(self) -> Iterator[Obj]:
        """Yield the other placed pods that the writer must know."""
        own = self.pod["metadata"]["uid"]
        for other in self.history.pods.values():
            takes_room = node_of(other) and not is_finished(other)
            if takes_room and other["metadata"]["uid"] != own and self.known(other):
                yield other


def placed(pod: Obj, node: str, history: History, *, without: Iterable[str] = ()) -> WriteCase:
    """Return the binding of a pod as if it happened now, with everything known.

    Parameters
    ----------
    pod, node
        The pod that waits, and the name of the node.
    history
        What there is.
    without
        Uids of pods that are taken for gone.
    """
    gone = frozenset(without)
    past = copy.copy(history)
    past.pods = {uid: each for uid, each in history.pods.items() if uid not in gone}
    now = {**pod, "spec": {**pod["spec"], "nodeName": node}}
    past.pods[pod["metadata"]["uid"]] = now
    past.popped_at = {}  # it is decided now, so no other pod was decided later
    write = Write(
        at_ns=history.history_now_ns + 1,
        by="nobody",
        path="/binding",
        resource="pods",
        now=now,
        before=pod,
    )
    return WriteCase(write=write, history=past, horizon_ns=0)


def is_leaving(pod: Obj | None) -> bool:
    """Return whether a pod is gone or being deleted."""
    return pod is None or bool(pod["metadata"].get("deletionTimestamp"))
