"""Waits, when a lease was taken over, until the watch has shown what the last leader wrote.

The bindings of the last leader are older than its release of the lease, yet the watch of pods may
show them later than the watch of the lease shows the release. A leader that decides in between
gives the same room away again: the server refuses to bind a pod twice, but not to overcommit a
node.

Notes
-----
Versions are compared as numbers (KEP-5504, comparable resource versions); an odd one ends the wait.
No event need follow the newest version, so the wait is short. kube-scheduler does not wait at all.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import msgspec

from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.errors import MoorageError
from moorage.client import requests
from moorage.client.reflector import Reflector
from moorage.client.status import error_from_answer
from moorage.client.transport import Transport

_log = logging.getLogger(__name__)

_SECONDS_MAX: Final = 0.25  # a guess: watches lag by milliseconds, a take-over may last a second
_LOOK_SECONDS: Final = 0.005


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _List(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class CatchUp:
    """Compares the watched pods with the server's newest version.

    Parameters
    ----------
    transport
        Carries the call.
    pods
        The reflector of pods.
    """

    def __init__(self, transport: Transport, pods: Reflector[Any]) -> None:
        self._transport = transport
        self._pods = pods

    async def wait_newest(self) -> None:
        """Wait until the watch has come to the server's newest version, for a short time at most.

        A failure is logged and ends the wait.
        """
        try:
            async with asyncio.timeout(_SECONDS_MAX):
                newest = await self._newest()
                while _number(self._pods.last_resource_version) < newest:
                    await aio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            _log.debug("no newer pod was watched in %s s", _SECONDS_MAX)
        except (MoorageError, msgspec.DecodeError) as problem:
            _log.info("the newest version of pods is not known: %s", problem)

    async def _newest(self) -> int:
        page = requests.ListPage(limit=1)
        call = requests.list_objects(PODS, requests.Selection(), page=page)
        answer = await self._transport.request(call)
        if answer.status >= 400:
            raise error_from_answer(answer)
        return _number(msgspec.json.decode(answer.body, type=_List).metadata.resource_version)


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
