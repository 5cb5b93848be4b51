"""Requests to the client processes of ``moorage bench api``, and their answers, as data."""

from __future__ import annotations

from typing import Literal

import msgspec


class Load(msgspec.Struct, frozen=True, tag=True):
    """Create nodes, then pods, then what `Write` changes, one by one; answered with `Loaded`.

    Parameters
    ----------
    nodes, pods
        How many.
    connections
        Over how many connections, each with one call at a time.
    """

    nodes: int
    pods: int
    connections: int


class Loaded(msgspec.Struct, frozen=True):
    """Seconds from the first call to the last answer."""

    nodes_seconds: float
    pods_seconds: float


class ListOnce(msgspec.Struct, frozen=True, tag=True):
    """Read one list; answered with `Listed`.

    Parameters
    ----------
    target
        Path and query.
    form
        ``json``; ``table`` as ``kubectl get`` asks for; ``protobuf`` as Go programs do.
    """

    target: str
    form: Literal["json", "table", "protobuf"] = "json"


class Listed(msgspec.Struct, frozen=True):
    """A list as it came.

    Parameters
    ----------
    seconds
        From the call to the last byte.
    size_bytes
        Of the body.
    count
        Objects, or rows.
    """

    seconds: float
    size_bytes: int
    count: int


class Write(msgspec.Struct, frozen=True, tag=True):
    """Change objects at a steady rate; answered with `Written`.

    Parameters
    ----------
    events
        Writes in all.
    rate
        Writes a second.
    connections
        Over how many connections.
    """

    events: int
    rate: float
    connections: int


class Written(msgspec.Struct, frozen=True):
    """Seconds from the first write to the last answer."""

    seconds: float


class Watch(msgspec.Struct, frozen=True, tag=True):
    """Watch what `Write` changes; answered with `Watching`, and in the end with `Watched`.

    Parameters
    ----------
    watchers
        How many watches, each with a connection.
    events
        How many events each is to see.
    silence_seconds
        A watcher that sees nothing for so long has lost events.
    """

    watchers: int
    events: int
    silence_seconds: float


class Watching(msgspec.Struct, frozen=True):
    """Every watch is open."""

    watchers: int


class Watched(msgspec.Struct, frozen=True):
    """The events that watchers saw.

    Parameters
    ----------
    seconds
        From the first event seen by anybody to the last.
    events
        Events each watcher saw.
    digests
        SHA-256 of the resourceVersions each watcher saw, in its order; without repetitions.
    cut
        Watchers whose stream the server ended.
    lag_p50_ms, lag_p99_ms
        From sending a write to reading its event, over all events of all watchers.
    """

    seconds: float
    events: tuple[int, ...]
    digests: tuple[str, ...]
    cut: int
    lag_p50_ms: float
    lag_p99_ms: float


Job = Load | ListOnce | Write | Watch
