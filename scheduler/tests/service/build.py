"""Builders for this room's tests: pods and nodes in a word, and one log of everything that is done.

`World` has the real state; its parts write into `World.log`, so that a test compares what happened,
and in which order, as a list of short lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from moorage.api.changes import ClusterEvent
from moorage.api.codec import from_dict
from moorage.api.meta import Condition
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.client.event_series import EventNote
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.attempts.failure import FailureHandler
from moorage.service.attempts.skipping import Skipping
from moorage.service.binding.slots import BindingSlots
from moorage.service.core import CoreInputs, build_core
from moorage.service.process.facts import Facts
from moorage.state.contracts import Precheck
from moorage.state.queued_pod import QueuedPod
from moorage_sandbox.testing.builders import node_manifest, pod_manifest


def pod(
    name: str = "p",
    *,
    uid: str = "",
    version: str = "1",
    nominated: str = "",
    deleted: bool = False,
    conditions: tuple[dict[str, Any], ...] = (),
    **fields: Any,
) -> Pod:
    fields.setdefault("schedulerName", "default-scheduler")
    manifest = pod_manifest(name, **fields)
    manifest["metadata"] |= {
        "uid": uid or f"uid-{name}",
        "resourceVersion": version,
        "generation": 7,
    }
    if deleted:
        manifest["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    manifest["status"] = {"nominatedNodeName": nominated, "conditions": list(conditions)}
    return from_dict(Pod, manifest)


def node(name: str = "n1", **fields: Any) -> Node:
    return from_dict(Node, node_manifest(name, **fields))


def _name(obj: Any) -> str:
    if obj is None:
        return "-"
    return obj if isinstance(obj, str) else str(obj.metadata.name)


class World:
    """The state of a scheduler with the default plugins, and a log of what it is told."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.clock = ManualClock()
        self.wake = asyncio.Event()
        self.slots = BindingSlots(self.wake)
        self.core = build_core(
            LoadedConfiguration(),
            in_tree_registry(),
            clock=self.clock,
            streams=Streams(1),
            surroundings=CoreInputs(on_wake=self.wake.set),
        )
        self.cache, self.queue, self.store = self.core.cache, self.core.queue, self.core.store
        self.facts = Facts(self.clock)
        self.failures: list[tuple[str, BaseException]] = []
        self.tasks = TaskOwner(lambda name, problem: self.failures.append((name, problem)))
        self.notes: list[EventNote] = []
        self.statuses: list[tuple[str, Condition | None, str | None]] = []
        self.writing: set[str] = set()
        self.onlookers: tuple[Pod, ...] = ()
        """Pods that a precheck is tried with when it is logged."""

    def handler(self) -> FailureHandler:
        return FailureHandler(
            self.queue,
            self.store.get,
            recorder=cast("Any", self),
            writes=cast("Any", self),
            attempts=self.facts.attempts,
        )

    def skipping(self) -> Skipping:
        return Skipping(self.queue, self.cache, recorder=cast("Any", self), facts=self.facts)

    def popped(self, one: Pod) -> QueuedPod:
        """Show a pod as the watch would, and pop it."""
        self.store.put_pod(one)
        self.queue.add(one)
        queued = self.queue.pop()
        assert queued is not None
        assert queued.uid == one.uid
        return queued

    def place(self, name: str) -> str:
        """Where the queue has a pod: the name of the sub-queue, or ""."""
        pending = self.queue.pending()
        return next(
            (
                place
                for place in ("active", "backoff", "unschedulable", "gated")
                if any(each.pod.name == name for each in getattr(pending, place))
            ),
            "",
        )

    def validate(self) -> None:
        self.cache.validate()
        self.queue.validate()
        assert self.failures == []

    async def settle(self) -> None:
        """Let every task end."""
        while len(self.tasks):
            await aio.sleep(0)

    # --- what stands in for recorder and writes ---------------------------------------------

    def record_event(self, note: EventNote) -> None:
        self.notes.append(note)
        self.log.append(f"event {note.reason}")

    def report_status(
        self, pod: Pod, condition: Condition | None, *, nominated: str | None
    ) -> None:
        self.statuses.append((pod.name, condition, nominated))
        self.writing.add(pod.uid)
        reason = "-" if condition is None else condition.reason
        self.log.append(f"patch {reason} nominated={nominated!r}")

    def busy(self, uid: str) -> bool:
        return uid in self.writing

    async def end_reports(self, uid: str) -> None:
        self.writing.discard(uid)
        self.log.append("earlier writes settled")

    # --- the log ----------------------------------------------------------------------------

    def watch_cache(self, *names: str) -> None:
        """Log calls of these methods of the cache."""
        for name in names:
            self._spy(self.cache, name, lambda name, args: f"cache.{name} {_name(args[-1])}")

    def watch_queue(self, *names: str) -> None:
        """Log calls of these methods of the queue, and every `move_all`."""
        for name in names:
            self._spy(self.queue, name, _queue_line)
        real = self.queue.move_all

        def move_all(
            event: ClusterEvent,
            old: Any,
            new: Any,
            *,
            precheck: Precheck | None = None,
            is_news: Precheck | None = None,
        ) -> None:
            line = f"move {event.label} {_name(old)} {_name(new)}"
            if precheck is not None:
                passed = [each.name for each in self.onlookers if precheck(each)]
                line += f" only {' '.join(passed)}"
            self.log.append(line)
            real(event, old, new, precheck=precheck, is_news=is_news)

        setattr(self.queue, "move_all", move_all)  # noqa: B010 - mypy forbids the plain form

    def _spy(self, target: object, name: str, line: Callable[[str, tuple[Any, ...]], str]) -> None:
        real = getattr(target, name)

        def spy(*args: Any, **switches: bool) -> Any:
            on = "".join(f" {switch}" for switch, value in switches.items() if value)
            self.log.append(line(name, args) + on)
            return real(*args, **switches)

        setattr(target, name, spy)


def _queue_line(name: str, args: tuple[Any, ...]) -> str:
    last = args[-1]
    if isinstance(last, QueuedPod):
        last = last.pod
    return f"queue.{name} {_name(last)}"
