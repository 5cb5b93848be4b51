"""Whether a caller may make a call: some groups and paths always, all others by review.

Notes
-----
Kubernetes v1.36 ``apiserver/pkg/server/options/authorization.go``,
``pkg/authorization/path`` and ``plugin/pkg/authorizer/webhook``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import encode
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError, UsageError
from moorage.service.serving.callers import MASTERS, Caller
from moorage.service.serving.expiring import ExpiringCache
from moorage.service.serving.reviews import Reviewer

_log = logging.getLogger(__name__)

_ANSWERS_MAX: Final = 8192
# Longer calls are not remembered: their caller may want to fill the cache.
_CACHED_CHARACTERS_MAX: Final = 10_000


class Decision(msgspec.Struct, frozen=True):
    """Whether a call is allowed, and the words of the server about it.

    Parameters
    ----------
    allowed
        Whether the caller may make the call.
    reason
        The server's words; may be empty.
    denied
        Whether the server refused outright; otherwise it has no opinion, which refuses as well.
    """

    allowed: bool
    reason: str = ""
    denied: bool = False


class _Status(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False
    reason: str = ""


class AlwaysAllowed:
    """The paths that every caller may read.

    Parameters
    ----------
    paths
        Paths; ``*`` at the end stands for any rest. A leading slash may be left out.

    Raises
    ------
    UsageError
        A ``*`` stands elsewhere.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        bare = [path.removeprefix("/") for path in paths]
        for path in bare:
            if "*" in path[:-1]:
                raise UsageError(
                    f"--authorization-always-allow-paths: only trailing * allowed in {path}"
                )
        self._prefixes = tuple(path[:-1] for path in bare if path.endswith("*"))
        self._paths = frozenset(path for path in bare if not path.endswith("*"))

    def __contains__(self, path: str) -> bool:
        """Whether every caller may read a path."""
        bare = path.removeprefix("/")
        return bare in self._paths or bare.startswith(self._prefixes)


class Authorizer:
    """Decides about calls.

    Parameters
    ----------
    always
        Paths that every caller may read.
    reviewer
        Sends SubjectAccessReviews; None where there is no server to ask: all else is refused.
    clock
        For the age of answers.
    allowed_ttl_ns, refused_ttl_ns
        How long answers are kept, nanoseconds.
    """

    def __init__(
        self,
        always: AlwaysAllowed,
        reviewer: Reviewer | None = None,
        *,
        clock: Clock,
        allowed_ttl_ns: int,
        refused_ttl_ns: int,
    ) -> None:
        self._always = always
        self._reviewer = reviewer
        self._allowed_ttl_ns = allowed_ttl_ns
        self._refused_ttl_ns = refused_ttl_ns
        self._known: ExpiringCache[bytes, _Status] = ExpiringCache(clock, size_max=_ANSWERS_MAX)

    def asks_about(self, caller: Caller, path: str) -> bool:
        """Whether the server decides what a caller reads of a path.

        Everybody reads everything where the path is open, or where nobody can be asked.
        """
        known = MASTERS in caller.groups or path in self._always
        return self._reviewer is not None and not known

    async def authorize_call(self, caller: Caller, verb: str, path: str) -> Decision:
        """Decide about a call.

        Parameters
        ----------
        caller
            Who makes it.
        verb
            The method of HTTP in lower case.
        path
            Its path, decoded.

        Raises
        ------
        MoorageError
            The server gave no usable answer; the call must be refused.
        """
        if MASTERS in caller.groups or path in self._always:
            return Decision(True)
        return await self._decided(caller, "nonResourceAttributes", {"path": path, "verb": verb})

    async def decide_resource(self, caller: Caller, attributes: Mapping[str, str]) -> Decision:
        """Decide about a call of the API server that the caller might make.

        Parameters
        ----------
        caller
            Who would make it.
        attributes
            ``resourceAttributes`` of a SubjectAccessReview.

        Raises
        ------
        MoorageError
            The server gave no usable answer.
        """
        if MASTERS in caller.groups:
            return Decision(True)
        return await self._decided(caller, "resourceAttributes", dict(attributes))

    async def _decided(self, caller: Caller, subject: str, attributes: dict[str, str]) -> Decision:
        if self._reviewer is None:
            return Decision(False)
        spec = _spec(caller, subject, attributes)
        key = encode(spec)
        status = self._known.get(key)
        if status is None:
            status = await self._reviewed(self._reviewer, spec)
            if sum(map(len, attributes.values())) < _CACHED_CHARACTERS_MAX:
                ttl_ns = self._allowed_ttl_ns if status.allowed else self._refused_ttl_ns
                self._known.put_value(key, status, ttl_ns=ttl_ns)
        if status.denied and status.allowed:
            raise MoorageError("subject access review returned both allow and deny response")
        return Decision(status.allowed, status.reason, status.denied)

    async def _reviewed(self, reviewer: Reviewer, spec: dict[str, Any]) -> _Status:
        try:
            return await reviewer.status(spec, _Status)
        except MoorageError as error:
            _log.error("a caller's rights could not be reviewed: %s", error)
            raise


def _spec(caller: Caller, subject: str, attributes: dict[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = {subject: attributes, "user": caller.name}
    if caller.groups:
        spec["groups"] = list(caller.groups)
    if caller.extra:
        spec["extra"] = {name: list(values) for name, values in sorted(caller.extra.items())}
    if caller.uid:
        spec["uid"] = caller.uid
    return spec
