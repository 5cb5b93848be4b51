"""A reflector's handler for callers that need only the newest version of each object.

``reflector`` tells of additions, changes and deletions; here they become "seen" and "gone". Node
agents and the sandbox's view follow pods that way; the scheduler's own ingest tells more kinds of
change apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from moorage.api.meta import ApiObject
from moorage.base.errors import DecodeError
from moorage.client.objects import Key

FollowedT = TypeVar("FollowedT", bound=ApiObject)


class Follower(Generic[FollowedT]):
    """Passes on the reports of a reflector.

    Parameters
    ----------
    on_object
        Called with the newest version of an object that appeared or changed.
    gone
        Called with the last version of an object that was removed.
    """

    def __init__(
        self, on_object: Callable[[FollowedT], None], gone: Callable[[FollowedT], None]
    ) -> None:
        self._on_object = on_object
        self._gone = gone

    def on_add(self, obj: FollowedT) -> None:
        """Pass on a new object."""
        self._on_object(obj)

    def on_update(self, old: FollowedT, new: FollowedT) -> None:
        """Pass on the newer version."""
        del old
        self._on_object(new)

    def on_delete(self, obj: FollowedT, *, missed: bool) -> None:
        """Pass on a removal."""
        del missed
        self._gone(obj)

    def on_synced(self) -> None:
        """Do nothing: callers wait for `Reflector.synced`."""

    def on_undecodable(self, key: Key, error: DecodeError) -> None:
        """Do nothing: the reflector has logged the fault, and the last good version counts."""
