"""Looks for bindings that were answered with success and that the watch never tells of.

The watch confirms a binding, not the reply (`binding_cycle`). A server or a proxy that answers and
does not write, or a server that comes back without its last writes, would leave the pod assumed for
ever. So a pod that is still assumed after a while is looked up. If the pod is not on its node, it
is tried again.

Notes
-----
kube-scheduler v1.36 leaves such a pod assumed for as long as it runs.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import MoorageError, NotFoundError
from moorage.client.writes import Client
from moorage.state.cache import Cache
from moorage.state.lifecycle import PodState

_log = logging.getLogger(__name__)

# A working watch delivers within a second. This long may pass before the pod is looked up (a
# guess).
_PATIENCE_SECONDS = 30.0
_ROUND_SECONDS = 10.0


class _Expected(msgspec.Struct, frozen=True):
    """A binding that the watch is to confirm."""

    pod: Pod
    node_name: str
    since_ns: int
    take_back: Callable[[str], None]
    gone: Callable[[str], None]


class Confirmations:
    """The bindings that the watch has not confirmed so far.

    Parameters
    ----------
    cache
        Tells which pods are still assumed.
    client
        The API verbs.
    clock
        Says how long a pod has been waiting.
    tasks
        Owner of the looking task, which lives while bindings are unconfirmed.
    """

    def __init__(self, cache: Cache, client: Client, clock: Clock, tasks: TaskOwner) -> None:
        self._cache = cache
        self._client = client
        self._clock = clock
        # Uid -> binding, oldest first.
        self._expected: OrderedDict[str, _Expected] = OrderedDict()
        self._tasks = tasks
        self._looking = False

    def expect(
        self,
        pod: Pod,
        node_name: str,
        *,
        take_back: Callable[[str], None],
        gone: Callable[[str], None],
    ) -> None:
        """Note a binding that was answered with success.

        Parameters
        ----------
        pod, node_name
            The pod that was bound, and its node.
        take_back
            Called with the reason if the binding turns out not to have happened.
        gone
            Called with the uid if the watch tells that the pod is gone, and never told of its
            binding: no other part ends the lifecycle of such a pod.
        """
        self._drop_confirmed()
        uid = pod.metadata.uid
        if not self._cache.is_assumed(uid):
            return
        now_ns = self._clock.monotonic_ns()
        self._expected[uid] = _Expected(pod, node_name, now_ns, take_back, gone)
        if not self._looking:
            self._looking = True
            self._tasks.spawn(self._look_on(), name="confirmations")

    async def _look_on(self) -> None:
        """Look for overdue pods until every binding is confirmed."""
        try:
            while self._expected:
                await aio.sleep(_ROUND_SECONDS)
                await self.look()
        finally:
            self._looking = False

    async def look(self) -> None:
        """Look up each pod that has waited for too long."""
        for uid, expected in list(self._expected.items()):
            if not self._cache.is_assumed(uid):
                self._end(uid)
                continue
            waited_ns = self._clock.monotonic_ns() - expected.since_ns
            if waited_ns >= _PATIENCE_SECONDS * NS_PER_SECOND:
                await self._look_up(uid, expected)

    async def _look_up(self, uid: str, expected: _Expected) -> None:
        pod = expected.pod
        try:
            where = await self._node_of(pod)
        except MoorageError as problem:
            _log.info("pod %s cannot be looked up: %s", pod.full_name, problem)
            return
        # The watch may have confirmed meanwhile, or the pod may have been bound a second time.
        if self._expected.get(uid) is not expected or not self._cache.is_assumed(uid):
            return
        if where == expected.node_name:
            # The pod is bound; the watch is late.
            now_ns = self._clock.monotonic_ns()
            self._expected[uid] = msgspec.structs.replace(expected, since_ns=now_ns)
            return
        del self._expected[uid]
        why = f"the binding to {expected.node_name} was answered with success and did not happen"
        _log.warning("pod %s: %s; it is tried again", pod.full_name, why)
        expected.take_back(why)

    async def _node_of(self, pod: Pod) -> str:
        """Return the node a pod is on by the API server; "" without one, or without the pod.

        Raises
        ------
        MoorageError
            No answer.
        """
        try:
            stored = await self._client.get(
                PODS, pod.metadata.name, namespace=pod.metadata.namespace
            )
        except NotFoundError:
            return ""
        metadata, spec = stored.get("metadata"), stored.get("spec")
        if not isinstance(metadata, dict) or metadata.get("uid") != pod.metadata.uid:
            return ""
        return str(spec.get("nodeName") or "") if isinstance(spec, dict) else ""

    def _drop_confirmed(self) -> None:
        """Forget the confirmed bindings at the front, so that few are kept."""
        while self._expected:
            uid = next(iter(self._expected))
            if self._cache.is_assumed(uid):
                return
            self._end(uid)

    def _end(self, uid: str) -> None:
        """Forget a binding whose pod is no longer assumed."""
        expected = self._expected.pop(uid, None)
        if expected is not None and self._cache.lifecycle.state(uid) is PodState.IN_FLIGHT:
            expected.gone(uid)
