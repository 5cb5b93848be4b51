"""A transport that speaks of pod groups in the API version that the server serves.

Kubernetes 1.36 has PodGroup in v1alpha2, 1.37 in v1beta1, and no release has both. The verbs and
the reflector name v1alpha2; here the path gets the version that was answered last.
`moorage.api.pod_group` reads the objects of both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final

import msgspec

from moorage.api.resources import POD_GROUPS
from moorage.client.transport import Answer, Call, LineStream, Transport

VERSIONS: Final = ("v1alpha2", "v1beta1")
"""The known versions, in the order in which they are tried."""

_GROUP: Final = f"/apis/{POD_GROUPS.group}/"
_NAMED: Final = f"{_GROUP}{VERSIONS[0]}/"
_LISTED: Final = f"{_NAMED}{POD_GROUPS.plural}"
_ABSENT: Final = 404


class ServedVersion:
    """Sends calls about pod groups in the served version; carries every other call unchanged.

    Parameters
    ----------
    inner
        Carries the calls.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._version = VERSIONS[0]

    async def request(self, call: Call) -> Answer:
        """Send a call and read the whole answer."""
        answer = await self._inner.request(self._named(call, self._version))
        if answer.status != _ABSENT or call.path != _LISTED:
            return answer
        for version in self._others():
            other = await self._inner.request(self._named(call, version))
            if other.status != _ABSENT:
                self._version = version
                return other
        return answer

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Send a call and read its answer line by line inside the context."""
        if call.path != _LISTED:
            return self._inner.stream(self._named(call, self._version))
        return self._stream(call)

    async def close(self) -> None:
        """Close the transport inside."""
        await self._inner.close()

    @asynccontextmanager
    async def _stream(self, call: Call) -> AsyncIterator[LineStream]:
        """Open a stream in the first version that is served; in the last one if none is."""
        async with AsyncExitStack() as stack:
            for version in (self._version, *self._others()):
                await stack.aclose()
                call_now = self._named(call, version)
                lines = await stack.enter_async_context(self._inner.stream(call_now))
                if lines.status != _ABSENT:
                    self._version = version
                    break
            yield lines

    def _others(self) -> list[str]:
        return [version for version in VERSIONS if version != self._version]

    def _named(self, call: Call, version: str) -> Call:
        """Return the call with another version in its path, if it is about pod groups."""
        if version == VERSIONS[0] or not call.path.startswith(_NAMED):
            return call
        path = f"{_GROUP}{version}/{call.path.removeprefix(_NAMED)}"
        return msgspec.structs.replace(call, path=path)
