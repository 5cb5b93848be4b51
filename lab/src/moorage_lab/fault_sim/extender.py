"""An HTTP extender of the simulation: slow, lying, silent or broken, and well again at rest.

It stands behind the scheduler's own client of extenders, in place of the connection. Its answers
have the form of kubernetes v1.36 ``staging/src/k8s.io/kube-scheduler/extender/v1``.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from moorage.base import aio
from moorage.base.errors import RefusedError, TransportError
from moorage.base.rng import Random
from moorage.client.transport import Answer, Call, LineStream
from moorage_lab.fault_sim.broken_plugin import PluginFaults

# Shares of calls; guesses. A pod is asked about in two calls, and comes through half of the time.
_OFTEN, _SELDOM = 0.2, 0.06
_SLOW_SECONDS = 4.0  # longer than the limit of a call in the set-ups


class SimExtender:
    """A transport to an extender that passes every node, unless it misbehaves.

    Parameters
    ----------
    rng
        Decides how each call ends.
    plugin_faults
        Whether the extender misbehaves.

    Attributes
    ----------
    refused
        The nodes that the last answer about each pod refused, by the pod's uid.
    """

    def __init__(self, rng: Random, plugin_faults: PluginFaults) -> None:
        self._rng = rng
        self._plugin_faults = plugin_faults
        self.refused: dict[str, frozenset[str]] = {}

    async def request(self, call: Call) -> Answer:
        """Answer a call, or fail as an extender can.

        Raises
        ------
        TransportError
            The extender is not there, or is silent.
        """
        body = msgspec.json.decode(call.whole_body)
        verb = call.path.rpartition("/")[2]
        if verb == "filter":
            self.refused.pop(body["Pod"]["metadata"]["uid"], None)
        await aio.sleep(0.001 + 0.004 * self._rng.random())
        if self._acts("slow", _OFTEN):
            await self._slow(call)
        if self._acts("gone", _SELDOM):
            raise RefusedError("connection refused (extender)")
        if self._acts("broken", _SELDOM):
            raise TransportError("the extender broke the connection")
        if self._acts("error", _SELDOM):
            return Answer(500, {}, b"")
        if self._acts("nonsense", _SELDOM):
            return Answer(200, {}, self._rng.choice((b"", b"null", b"[]", b"{", b'{"Nodes": 1}')))
        answers = {"filter": self._filter, "prioritize": self._prioritize, "preempt": self._preempt}
        return Answer(200, {}, msgspec.json.encode(answers[verb](body)))

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Refuse: no extender is asked for a stream."""
        raise TransportError(f"{call.path} is no stream")

    async def close(self) -> None:
        """Do nothing."""

    def _acts(self, fault: str, share: float) -> bool:
        return self._plugin_faults.acts(f"extender-{fault}", share, self._rng)

    async def _slow(self, call: Call) -> None:
        seconds = self._rng.random() * _SLOW_SECONDS
        limit = call.timeout_seconds
        if limit is not None and seconds > limit:
            await aio.sleep(limit)
            raise TransportError(f"no answer within {limit} s")
        await aio.sleep(seconds)

    def _filter(self, body: Any) -> dict[str, Any]:
        names = list(body["NodeNames"])
        if self._acts("lies", _SELDOM):
            return {"NodeNames": [*names, "nowhere"]}
        if self._acts("error", _SELDOM):
            return {"NodeNames": [], "Error": "the extender does not know"}
        failed: dict[str, str] = {}
        for name in names:
            if self._acts("refuses", _OFTEN):
                failed[name] = "not this time"
        self.refused[body["Pod"]["metadata"]["uid"]] = frozenset(failed)
        return {"NodeNames": [name for name in names if name not in failed], "FailedNodes": failed}

    def _prioritize(self, body: Any) -> list[dict[str, Any]]:
        most = 10 if not self._acts("lies", _SELDOM) else 10**18
        names = list(body["NodeNames"])
        if self._acts("lies", _SELDOM):
            names.append("nowhere")
        return [{"Host": name, "Score": self._rng.randrange(most)} for name in names]

    def _preempt(self, body: Any) -> dict[str, Any]:
        victims = dict(body["NodeNameToMetaVictims"] or {})
        if victims and self._acts("refuses", _OFTEN):
            victims.pop(self._rng.choice(sorted(victims)))
        if self._acts("lies", _SELDOM):
            victims["nowhere"] = {"Pods": [{"UID": "nobody"}], "NumPDBViolations": 0}
        return {"NodeNameToMetaVictims": victims}
