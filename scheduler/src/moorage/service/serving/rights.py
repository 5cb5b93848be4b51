"""What one caller may read of the cluster, as the API server says (SubjectAccessReview).

The authorizer keeps the server's answers for some seconds, so a repeated question costs nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from moorage.base.errors import ApiError, MoorageError
from moorage.service.questions.question import Readable
from moorage.service.questions.redaction import Doubts, Sight
from moorage.service.serving.authorization import Authorizer
from moorage.service.serving.callers import Caller

_NAMESPACES_MOST: Final = 200
"""Namespaces of one answer about which the server is asked; further ones count as hidden.

A guess: with two reviews each, they are done within two seconds at 200 reviews a second.
"""
_AT_ONCE: Final = 16


_KINDS: Final = (
    Readable("pods"),
    Readable("nodes"),
    Readable("persistentvolumeclaims"),
    Readable("resourceclaims", "resource.k8s.io"),
)
"""The kinds whose objects an answer may name."""


class Rights:
    """The rights of one caller.

    Parameters
    ----------
    authorizer
        Asks the server, and keeps its answers for a while.
    caller
        The caller.
    all_open
        Whether the caller reads everything, and nobody has to be asked.
    """

    def __init__(self, authorizer: Authorizer, caller: Caller, *, all_open: bool = False) -> None:
        self._authorizer = authorizer
        self._caller = caller
        self._all_open = all_open

    async def read_everything(self) -> bool:
        """Whether the caller may read all pods, nodes and claims.

        Raises
        ------
        ApiError
            The server gave no usable answer.
        """
        if self._all_open:
            return True
        found = await asyncio.gather(*(self.may_read(each) for each in _KINDS))
        return all(found)

    async def may_read(self, objects: Readable) -> bool:
        """Whether the caller may list objects, or get them.

        Raises
        ------
        ApiError
            The server gave no usable answer.
        """
        attributes = {"resource": objects.resource}
        if objects.group:
            attributes["group"] = objects.group
        if objects.namespace:
            attributes["namespace"] = objects.namespace
        named = {**attributes, "name": objects.name} if objects.name else attributes
        try:
            for asked in ({**named, "verb": "get"}, {**attributes, "verb": "list"}):
                if (await self._authorizer.decide_resource(self._caller, asked)).allowed:
                    return True
        except MoorageError as error:
            raise ApiError(
                500, "InternalError", f"the rights of the caller could not be reviewed: {error}"
            ) from error
        return False

    async def require_read(self, objects: Readable) -> None:
        """Refuse a question about objects that the caller may not read.

        Raises
        ------
        ApiError
            403: the caller may not read them; 500: the server gave no usable answer.
        """
        if await self.may_read(objects):
            return
        user = json.dumps(self._caller.name, ensure_ascii=False)
        name = f' "{objects.name}"' if objects.name else ""
        where = (
            f'in the namespace "{objects.namespace}"'
            if objects.namespace
            else "at the cluster scope"
        )
        what = f'resource "{objects.resource}" in API group "{objects.group}" {where}'
        text = f"{objects.resource}{name} is forbidden: User {user} cannot get {what}"
        raise ApiError(403, "Forbidden", text)

    async def sight(self, doubts: Doubts, granted: Collection[tuple[str, str]] = ()) -> Sight:
        """Return what the caller may see of the things that an answer names.

        Parameters
        ----------
        doubts
            The things.
        granted
            Pods that the caller may see anyway, (namespace, name).

        Raises
        ------
        ApiError
            The server gave no usable answer.
        """
        limit = asyncio.Semaphore(_AT_ONCE)

        async def readable(objects: Readable) -> bool:
            async with limit:
                return await self.may_read(objects)

        async def readable_objects(kind: Readable) -> frozenset[tuple[str, str]]:
            """Return the objects of one kind that may be read, by namespace."""
            doubted = sorted(space for name, space in doubts.objects if name == kind.resource)
            if doubted and await readable(kind):
                return frozenset((kind.resource, each) for each in doubted)
            some = [Readable(kind.resource, kind.group, each) for each in doubted]
            return frozenset(
                (each.resource, each.namespace)
                for each, may in await _each(some[:_NAMESPACES_MOST], readable)
                if may
            )

        objects = frozenset().union(*[await readable_objects(kind) for kind in _KINDS])
        spaces = [
            Readable("namespaces", name=each)
            for each in sorted(doubts.namespaces)
            if ("pods", each) not in objects
        ]
        named = await _each(spaces[:_NAMESPACES_MOST], readable)
        return Sight(
            objects,
            frozenset(each.name for each, may in named if may),
            frozenset(granted),
        )


async def _each(
    objects: list[Readable], readable: Callable[[Readable], Awaitable[bool]]
) -> list[tuple[Readable, bool]]:
    found = await asyncio.gather(*map(readable, objects))
    return list(zip(objects, found, strict=True))
