"""Faults of a journal, and of a write to it."""

from __future__ import annotations

from moorage.base.errors import MoorageError, UsageError


class NoRoomError(MoorageError):
    """The disk is full; the write is known not to be on the disk."""


class UnsureError(MoorageError):
    """The disk failed in a write; after a restart the write may be on the disk, or not.

    Notes
    -----
    After a failed fsync the system may show pages that are not on the disk, so reading the file
    again decides nothing while the process lives. etcd ends itself, and so does the server.
    """


class DamagedError(UsageError):
    """The files differ from what the server wrote; the message names the file and the place.

    Parameters
    ----------
    what
        The damaged part.
    where
        The directory, as the user names it.
    """

    def __init__(self, what: str, where: object) -> None:
        super().__init__(
            f"{where} is damaged: {what}; `moorage up --data {where} --salvage` keeps what can be "
            "read and tells what cannot; or put back a copy of the directory"
        )
        self.what = what
