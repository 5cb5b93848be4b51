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
        # The status a server has by its last answer, until the watch shows it. A patch tells only
        # what differs from it, so no patch counts on an earlier one that failed.
        self._written: dict[str, PodStatus] = {}
        # For pods with running writes: the versions that the watch showed, and the version that
        # the last patch made. The watch is often faster than the reply, and may show the pod never
        # again. Equal versions are compared, as only servers may order them.
        self._shown: dict[str, set[str]] = {}
        self._versions: dict[str, str] = {}

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

    def pod_shown(self, pod: Pod) -> None:
        """Note that the watch showed the pod; writes still on their way stay in hand."""
        uid = pod.metadata.uid
        if uid in self._last:
            self._shown.setdefault(uid, set()).add(pod.metadata.resource_version)
        else:
            self._forget(uid)

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
        uid, status = pod.metadata.uid, self.status_in_hand(pod)
        changed = None
        if condition is not None:
            now = rfc3339(self._clock.now_ns())
            changed = changed_condition(status.conditions, condition, now=now)
        if changed is None and nominated in {None, status.nominated_node_name}:
            return
        change = _Change(changed, nominated)
        self._overlay[uid] = change.applied(status)
        self.after_earlier(uid, lambda: self._patch(pod, change), name=f"status {pod.key}")

    async def _patch(self, pod: Pod, change: _Change) -> None:
        target, uid = reference(pod), pod.metadata.uid
        base = self._written.get(uid, pod.status)
        body = change.body(base)
        if body is None:
            return  # an earlier patch was not written, and so there is nothing to take back
        self._versions.pop(uid, None)
        try:
            version = await self._client.patch_pod_status(target, body)
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
            self._written[uid] = change.applied(base)
            if version:
                self._versions[uid] = version

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        if self._last.get(uid) is task:
            del self._last[uid]
            if self._versions.pop(uid, None) in self._shown.pop(uid, ()):
                self._forget(uid)


async def _chained(
    earlier: asyncio.Task[None] | None, write: Callable[[], Awaitable[None]]
) -> None:
    if earlier is not None:
        await asyncio.wait([earlier])
    await write()


class _Change(msgspec.Struct, frozen=True):
    """A change of a pod's status.

    Attributes
    ----------
    condition
        The condition to set, with its transition time; None for none.
    nominated
        Node to nominate, "" to clear, None to leave it alone.
    """

    condition: Condition | None
    nominated: str | None

    def body(self, status: PodStatus) -> bytes | None:
        """Return the patch that makes the change to a status; None if nothing would change."""
        conditions = () if self.condition is None else (self.condition,)
        return status_patch(status, conditions=conditions, nominated_node_name=self.nominated)

    def applied(self, status: PodStatus) -> PodStatus:
        """Return a status with the change."""
        conditions, name = status.conditions, status.nominated_node_name
        if self.condition is not None:
            conditions = with_condition(conditions, self.condition)
        if self.nominated is not None:
            name = self.nominated
        return msgspec.structs.replace(status, conditions=conditions, nominated_node_name=name)
