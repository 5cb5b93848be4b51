"""Writes about pods, in order for each pod, and the changes that the watch has not shown yet.

A status patch takes a round trip and then a watch event to come back. A retry in between compares
with the written status. Compared with the stale object in hand, it would write the same again.

A patch that the server did not take is sent again until it is taken, or its content is outdated: no
attempt may come that reports the status anew, as for a pod that a gate holds back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from moorage.api.meta import Condition, ObjectReference
from moorage.api.pod import Pod, PodStatus
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock, rfc3339
from moorage.base.errors import MoorageError, NotFoundError
from moorage.client.pod_status import changed_condition, status_patch, with_condition
from moorage.client.writes import Client

_log = logging.getLogger(__name__)

# Compared with it, everything is written: no node has this name.
_UNKNOWN = PodStatus(nominated_node_name="?")

# Seconds until a patch that failed is sent again, doubled each time: a server that is away for a
# moment has it soon, and one that refuses the statuses of 10,000 pods is asked 170 times a second.
_PAUSE_FIRST_SECONDS = 1.0
_PAUSE_MOST_SECONDS = 60.0


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
        # The changes of patches that failed, until a patch with them is taken.
        self._unsent: dict[str, _Unsent] = {}
        # For pods with running writes: the versions that the watch showed, oldest first, and the
        # version that the last patch made. The watch is often faster than the reply, and may show
        # the pod never again. Equal versions are compared, as only servers may order them.
        self._shown: dict[str, dict[str, Pod]] = {}
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
        """Whether a write about a pod has not ended, or waits to be sent again."""
        return uid in self._last or uid in self._unsent

    async def settled(self, uid: str) -> None:
        """Wait until every write about a pod started so far has ended."""
        last = self._last.get(uid)
        if last is not None:
            await asyncio.wait([last])

    async def end_reports(self, uid: str) -> None:
        """Give up what is to be sent again, and wait until no write about a pod is under way."""
        while self.busy(uid):
            if self._unsent.pop(uid, None) is not None:
                self._overlay.pop(uid, None)
            await self.settled(uid)

    def status_in_hand(self, pod: Pod) -> PodStatus:
        """Return the pod's status, with the written changes that the watch has not shown yet."""
        return self._overlay.get(pod.metadata.uid, pod.status)

    def in_hand(self) -> dict[str, PodStatus]:
        """Return every status with written changes that the watch has not shown yet, by uid."""
        return dict(self._overlay)

    def pod_shown(self, pod: Pod) -> None:
        """Note that the watch showed the pod; writes still on their way stay in hand."""
        uid = pod.metadata.uid
        unsent = self._unsent.get(uid)
        if uid in self._last:
            self._shown.setdefault(uid, {})[pod.metadata.resource_version] = pod
        elif unsent is None or pod.spec.node_name or unsent.change.body(pod.status) is None:
            self._forget(uid)
        else:
            self._overlay[uid] = unsent.change.applied(pod.status)

    def gone(self, pod: Pod) -> None:
        """Forget a pod that was deleted."""
        self._forget(pod.metadata.uid)

    def _forget(self, uid: str) -> None:
        self._overlay.pop(uid, None)
        self._written.pop(uid, None)
        self._unsent.pop(uid, None)

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
        changed: tuple[Condition, ...] = ()
        if condition is not None:
            now = rfc3339(self._clock.now_ns())
            differs = changed_condition(status.conditions, condition, now=now)
            changed = () if differs is None else (differs,)
        if not changed and nominated in {None, status.nominated_node_name}:
            return
        change = _Change(changed, nominated)
        self._overlay[uid] = change.applied(status)
        self.after_earlier(uid, lambda: self._patch(pod, change), name=f"status {pod.key}")

    async def _patch(self, pod: Pod, change: _Change) -> None:
        target, uid = reference(pod), pod.metadata.uid
        base, unsent = self._written.get(uid, pod.status), self._unsent.get(uid)
        if unsent is None:
            body = change.body(base)
        else:
            change = unsent.change.then(change)
            body = change.body(base, uid=uid)  # the name may be another pod's by now
        if body is None:
            return  # another patch has made the change
        self._versions.pop(uid, None)
        try:
            version = await self._client.patch_pod_status(target, body)
        except NotFoundError:
            self._forget(uid)
        except MoorageError as problem:
            self._written[uid] = _UNKNOWN  # the answer may be what was lost
            self._put_off(pod, change, problem)
        else:
            self._unsent.pop(uid, None)
            self._written[uid] = change.applied(base)
            if version:
                self._versions[uid] = version

    def _put_off(self, pod: Pod, change: _Change, problem: MoorageError) -> None:
        """Keep a change that was not written, and send it again from time to time."""
        unsent = self._unsent.get(pod.metadata.uid)
        if unsent is not None:
            unsent.change = change
            return
        self._unsent[pod.metadata.uid] = unsent = _Unsent(change)
        self._tasks.spawn(self._send_again(pod, unsent), name=f"status {pod.key} again")
        _log.warning("status of pod %s was not written: %s", pod.full_name, problem)

    async def _send_again(self, pod: Pod, unsent: _Unsent) -> None:
        uid, pause = pod.metadata.uid, _PAUSE_FIRST_SECONDS
        while True:
            await aio.sleep(pause)
            pause = min(2 * pause, _PAUSE_MOST_SECONDS)
            if self._unsent.get(uid) is not unsent:
                return
            write = self.after_earlier(
                uid, lambda: self._patch(pod, unsent.change), name=f"status {pod.key}"
            )
            await asyncio.wait([write])

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        if self._last.get(uid) is task:
            del self._last[uid]
            shown = self._shown.pop(uid, {})
            if self._versions.pop(uid, None) in shown:
                self._forget(uid)
            elif shown and uid in self._unsent:
                self.pod_shown(list(shown.values())[-1])


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
    conditions
        The conditions to set, with their transition times.
    nominated
        Node to nominate, "" to clear, None to leave it alone.
    """

    conditions: tuple[Condition, ...]
    nominated: str | None

    def then(self, later: _Change) -> _Change:
        """Return this change and a later one as one."""
        nominated = self.nominated if later.nominated is None else later.nominated
        return _Change(_with_conditions(self.conditions, later.conditions), nominated)

    def body(self, status: PodStatus, *, uid: str = "") -> bytes | None:
        """Return the patch that makes the change to a status; None if nothing would change."""
        return status_patch(
            status, conditions=self.conditions, nominated_node_name=self.nominated, uid=uid
        )

    def applied(self, status: PodStatus) -> PodStatus:
        """Return a status with the change."""
        conditions = list(_with_conditions(status.conditions, self.conditions))
        name = status.nominated_node_name if self.nominated is None else self.nominated
        return msgspec.structs.replace(status, conditions=conditions, nominated_node_name=name)


class _Unsent(msgspec.Struct, eq=False):
    """The change of a patch that failed, with those of the patches that failed since."""

    change: _Change


def _with_conditions(
    conditions: Iterable[Condition], later: Iterable[Condition]
) -> tuple[Condition, ...]:
    result = list(conditions)
    for each in later:
        result = with_condition(result, each)
    return tuple(result)
