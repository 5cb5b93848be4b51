"""Writes about pods, in order for each pod, and the changes that the watch has not shown yet.

A status patch takes a round trip and then a watch event to come back. A retry in between compares
with the written status. Compared with the stale object in hand, it would write the same again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from moorage.api.meta import Condition, ObjectReference
from moorage.api.pod import Pod, PodStatus
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock, rfc3339
from moorage.base.errors import MoorageError, NotFoundError
from moorage.client.pod_status import changed_condition, status_patch, with_condition
from moorage.client.writes import Client

_log = logging.getLogger(__name__)

# Compared with it, everything is written: no node has this name.
_UNKNOWN = PodStatus(nominated_node_name="?")


def reference(pod: Pod) -> ObjectReference:
    """Return the reference Events and calls use for a pod."""
    metadata = pod.metadata
    return ObjectReference(
        kind="Pod",
        api_version="v1",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


def sendable(text: str) -> str:
    """Return a text as JSON can carry it: half a surrogate pair becomes a question mark.

    Texts of plugins may have such halves (names of files that are not UTF-8, for example).
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class PodWrites:
    """Sends writes about pods; the writes about one pod go out one after another.

    Parameters
    ----------
    client
        The API verbs.
    clock
        For transition times.
    tasks
        Owner of the sending tasks.
    """

    def __init__(self, client: Client, *, clock: Clock, tasks: TaskOwner) -> None:
        self._client = client
        self._clock = clock
        self._tasks = tasks
        self._last: dict[str, asyncio.Task[None]] = {}
        self._overlay: dict[str, PodStatus] = {}
        self._written: dict[str, PodStatus] = {}
        # What the server has by the last answer, until the watch shows it. A patch tells only what
        # differs, so it must not count on an earlier one that failed.

    def after_earlier(
        self, uid: str, write: Callable[[], Awaitable[None]], *, name: str
    ) -> asyncio.Task[None]:
        """Start a write once every earlier one about the pod has ended."""
        earlier = self._last.get(uid)
        task = self._tasks.spawn(_chained(earlier, write), name=name)
        self._last[uid] = task
        task.add_done_callback(lambda done: self._ended(uid, done))
        return task

    def busy(self, uid: str) -> bool:
        """Whether a write about a pod has not ended."""
        return uid in self._last

    async def settled(self, uid: str) -> None:
        """Wait until every write about a pod started so far has ended."""
        last = self._last.get(uid)
        if last is not None:
            await asyncio.wait([last])

    def status_in_hand(self, pod: Pod) -> PodStatus:
        """Return the pod's status, with the written changes that the watch has not shown yet."""
        return self._overlay.get(pod.metadata.uid, pod.status)

    def in_hand(self) -> dict[str, PodStatus]:
        """Return every status with written changes that the watch has not shown yet, by uid."""
        return dict(self._overlay)

    def seen(self, pod: Pod) -> None:
        """Note that the watch showed the pod; writes still on their way stay in hand."""
        if pod.metadata.uid not in self._last:
            self._forget(pod.metadata.uid)

    def gone(self, pod: Pod) -> None:
        """Forget a pod that was deleted."""
        self._forget(pod.metadata.uid)

    def _forget(self, uid: str) -> None:
        self._overlay.pop(uid, None)
        self._written.pop(uid, None)

    def report_status(
        self, pod: Pod, condition: Condition | None, *, nominated: str | None
    ) -> None:
        """Patch a condition and the nominated node into the pod's status, if they change it.

        Parameters
        ----------
        pod
            The pod as the API last showed it.
        condition
            The condition wanted; its transition time is filled in. None leaves conditions alone.
        nominated
            Node to nominate, "" to clear, None to leave it alone.
        """
        status = self.status_in_hand(pod)
        changed = None
        if condition is not None:
            now = rfc3339(self._clock.now_ns())
            changed = changed_condition(status.conditions, condition, now=now)
        change = _Change(status, changed, nominated)
        if change.since(status) is None:
            return
        self._overlay[pod.metadata.uid] = change.after
        self.after_earlier(
            pod.metadata.uid, lambda: self._patch(pod, change), name=f"status {pod.key}"
        )

    async def _patch(self, pod: Pod, change: _Change) -> None:
        target, uid = reference(pod), pod.metadata.uid
        body = change.since(self._written.get(uid, pod.status))
        if body is None:
            return  # an earlier patch was not written, and so there is nothing to take back
        try:
            await self._client.patch_pod_status(target, body)
        except NotFoundError:
            self._forget(uid)
        except MoorageError as problem:
            # The next attempt writes the status again; a status is a report, not a decision.
            self._overlay.pop(uid, None)
            self._written[uid] = _UNKNOWN  # the answer may be what was lost
            _log.warning(
                "status of pod %s/%s was not written: %s", target.namespace, target.name, problem
            )
        else:
            self._written[uid] = change.after

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        if self._last.get(uid) is task:
            del self._last[uid]


async def _chained(
    earlier: asyncio.Task[None] | None, write: Callable[[], Awaitable[None]]
) -> None:
    if earlier is not None:
        await asyncio.wait([earlier])
    await write()


class _Change:
    """A change of a pod's status that is written once earlier ones have ended.

    Parameters
    ----------
    before
        The status in hand.
    condition
        The condition to set, with its transition time; None for none.
    nominated
        Node to nominate, "" to clear, None to leave it alone.

    Attributes
    ----------
    after
        The status in hand with the change.
    """

    def __init__(
        self, before: PodStatus, condition: Condition | None, nominated: str | None
    ) -> None:
        conditions = before.conditions
        if condition is not None:
            conditions = with_condition(conditions, condition)
        name = before.nominated_node_name if nominated is None else nominated
        self.after = msgspec.structs.replace(
            before, conditions=conditions, nominated_node_name=name
        )
        self._set = () if condition is None else (condition,)
        self._nominated = nominated
        self._before = before
        self._body = status_patch(before, conditions=self._set, nominated_node_name=nominated)

    def since(self, status: PodStatus) -> bytes | None:
        """Return the body that makes the change to a status; None if nothing would change."""
        if status is self._before:
            return self._body
        return status_patch(status, conditions=self._set, nominated_node_name=self._nominated)
