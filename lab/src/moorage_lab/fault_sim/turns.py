"""A look at the calls of one scheduler: what it writes about one pod goes out in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.api.codec import decode_untyped
from moorage.client.transport import Answer, Call, Transport

_READS = frozenset({"GET", "HEAD"})
_REFUSED = 400  # the first status of an answer that says no
_VOLUMES = "/api/v1/persistentvolumes/"


class InTurn:
    """A transport that tells of a write about a pod while a status of it has no answer yet.

    Two claims that get one volume are told as well, and a binding that was answered with success
    before, unless the pod was looked up since and has no node. An eviction may be sent while the
    binding of its victim has no answer.

    Parameters
    ----------
    inner
        Carries the calls.
    on_overtaking
        Told of the call.
    reused
        Returns whether several pods have had this path, one after another. Writes about the
        earlier ones may still be under way, because the scheduler has not heard of their end.
    """

    def __init__(
        self,
        inner: Transport,
        on_overtaking: Callable[[str], None],
        reused: Callable[[str], bool],
    ) -> None:
        self._inner = inner
        self._on_overtaking = on_overtaking
        self._reused = reused
        self._claim_of_volume: dict[str, str] = {}
        # Paths of volumes -> the claim that gets it by a write without an answer.
        self._under_way: dict[str, None] = {}
        # Paths of pods, a status of which has no answer yet.
        self._bound: dict[str, None] = {}
        # Paths of pods, a binding of which was answered with success.

    async def request(self, call: Call) -> Answer:
        """Send a call and return the whole answer."""
        if call.path.startswith(_VOLUMES) and call.method not in _READS:
            return await self._give_volume(call)
        if call.path in self._bound and call.method in _READS:
            return await self._look_up(call)
        pod = _pod_of(call)
        if not pod:
            return await self._inner.request(call)
        if pod in self._under_way and not self._reused(pod):
            text = f"{call.method} {call.path} is sent before a status of the pod is answered"
            self._on_overtaking(text)
        if call.path.endswith("/binding"):
            return await self._bind(call, pod)
        if not call.path.endswith("/status"):
            return await self._inner.request(call)
        self._under_way[pod] = None
        try:
            return await self._inner.request(call)
        finally:
            self._under_way.pop(pod, None)

    async def _bind(self, call: Call, pod: str) -> Answer:
        """Send a binding; the pod may not have been bound before, as far as the sender knows."""
        if pod in self._bound and not self._reused(pod):
            self._on_overtaking(f"{call.path} is sent again after it was answered with success")
        answer = await self._inner.request(call)
        if answer.status < _REFUSED:
            self._bound[pod] = None
        return answer

    async def _look_up(self, call: Call) -> Answer:
        """Read a pod that was bound; where it has no node, the binding did not happen."""
        answer = await self._inner.request(call)
        if answer.status >= _REFUSED or not _has_node(answer):
            self._bound.pop(call.path, None)
        return answer

    async def _give_volume(self, call: Call) -> Answer:
        """Send the write that gives a volume to a claim; no other claim may have it meanwhile."""
        claim = (decode_untyped(call.whole_body).get("spec") or {}).get("claimRef") or {}
        before = self._claim_of_volume.get(call.path)
        if before is not None and before != claim.get("name"):
            self._on_overtaking(f"{call.path} is given to {claim.get('name')} and to {before}")
        self._claim_of_volume[call.path] = str(claim.get("name"))
        try:
            return await self._inner.request(call)
        finally:
            self._claim_of_volume.pop(call.path, None)

    def stream(self, call: Call) -> Any:
        """Send a call and read its answer line by line inside the context."""
        return self._inner.stream(call)

    async def close(self) -> None:
        """End the connection."""
        await self._inner.close()


def _has_node(answer: Answer) -> bool:
    return bool((decode_untyped(answer.body).get("spec") or {}).get("nodeName"))


def _pod_of(call: Call) -> str:
    """Return the path of the pod that a call writes, "" for none."""
    parts = call.path.split("/")
    if call.method in _READS or len(parts) < 7 or parts[5] != "pods":
        return ""
    return "/".join(parts[:7])
