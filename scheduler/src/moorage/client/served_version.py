"""A transport that speaks of some kinds in the newest API version that the server serves.

No version of these kinds is served by all supported releases. The verbs and the reflector name one
version; here the path gets the version that was answered last. Each list and each new watch asks
for the newest version first, so that an upgrade of the server, or a step back, is noticed. Until a
version has answered, other calls do the same. The structs of `moorage.api` read the objects of each
version.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final

import msgspec

from moorage.api.resources import (
    DEVICE_TAINT_RULES,
    POD_GROUPS,
    ResourceType,
    group_version_path,
    resource_path,
)
from moorage.client.transport import Answer, Call, LineStream, Transport

VERSIONS: Final = {
    POD_GROUPS: ("v1beta1", "v1alpha3", "v1alpha2"),
    DEVICE_TAINT_RULES: ("v1", "v1beta2"),
}
"""The known versions by kind, the newest first: the order in which they are tried.

PodGroup is v1alpha2 in 1.36, and v1beta1 and v1alpha3 in 1.37. DeviceTaintRule is v1beta2 in 1.36,
and also v1 in 1.37."""

_ABSENT: Final = 404
_REFUSED: Final = 400


class _Kind:
    """The paths of a kind, and the version that was served last."""

    def __init__(self, resource: ResourceType) -> None:
        self._resource = resource
        self._base = f"{group_version_path(resource.group, resource.version)}/"
        self.list_path = resource_path(resource)
        self.version = ""

    def names(self, call: Call) -> bool:
        """Whether a call is about the kind."""
        if not call.path.startswith(self._base):
            return False
        parts = call.path.removeprefix(self._base).split("/")
        return self._resource.plural in (parts[0], *parts[2:3])

    def candidates(self, call: Call) -> tuple[str, ...]:
        """Return the versions in which to send a call: all for a list, and until one is known."""
        if self.version and call.path != self.list_path:
            return (self.version,)
        return VERSIONS[self._resource]

    def note(self, version: str, status: int) -> None:
        """Take in how a call ended; a call that was refused says nothing about the version."""
        if status < _REFUSED:
            self.version = version

    def in_version(self, call: Call, version: str) -> Call:
        """Return a call about the kind with a version in its path."""
        base = group_version_path(self._resource.group, version)
        path = f"{base}/{call.path.removeprefix(self._base)}"
        return msgspec.structs.replace(call, path=path)


class ServedVersion:
    """Sends calls about some kinds in the served version; carries every other call unchanged.

    Parameters
    ----------
    inner
        Carries the calls.
    kinds
        Some kinds of `VERSIONS`.
    """

    def __init__(self, inner: Transport, kinds: Iterable[ResourceType] = tuple(VERSIONS)) -> None:
        self._inner = inner
        self._kinds = [_Kind(each) for each in kinds]

    async def request(self, call: Call) -> Answer:
        """Send a call and read the whole answer."""
        kind = self._kind_of(call)
        if kind is None:
            return await self._inner.request(call)
        for version in kind.candidates(call):
            answer = await self._inner.request(kind.in_version(call, version))
            if answer.status != _ABSENT:
                kind.note(version, answer.status)
                break
        return answer

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Send a call and read its answer line by line inside the context."""
        kind = self._kind_of(call)
        return self._inner.stream(call) if kind is None else self._stream(call, kind)

    async def close(self) -> None:
        """Close the transport inside."""
        await self._inner.close()

    @asynccontextmanager
    async def _stream(self, call: Call, kind: _Kind) -> AsyncIterator[LineStream]:
        """Open a stream in the first version that is served; in the last one if none is."""
        async with AsyncExitStack() as stack:
            for version in kind.candidates(call):
                await stack.aclose()
                call_now = kind.in_version(call, version)
                lines = await stack.enter_async_context(self._inner.stream(call_now))
                if lines.status != _ABSENT:
                    kind.note(version, lines.status)
                    break
            yield lines

    def _kind_of(self, call: Call) -> _Kind | None:
        return next((kind for kind in self._kinds if kind.names(call)), None)
