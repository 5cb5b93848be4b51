"""Requests to the client processes of ``moorage bench api``, and their answers, as data."""

from __future__ import annotations

from typing import Literal

import msgspec


class ClientSettings(msgspec.Struct, frozen=True):
    """The settings of a client process: the file that leads to the server."""

    kubeconfig: str


class Load(msgspec.Struct, frozen=True, tag=True):
    """Create nodes, pods and the objects that `Write` changes, one by one; answered with `Loaded`.

    Parameters
    ----------
    nodes, pods
        Number of nodes, and of pods.
    connections
        Number of connections, each with one call at a time.
    """

    nodes: int
    pods: int
    connections: int


class Loaded(msgspec.Struct, frozen=True):
    """The answer to `Load`: seconds from the first call to the last answer."""

    nodes_seconds: float
    pods_seconds: float


class ListOnce(msgspec.Struct, frozen=True, tag=True):
    """Read one list; answered with `Listed`.

    Parameters
    ----------
    target
        Path and query.
    form
        ``json``; ``table``, as kubectl get requests; ``protobuf``, as Go programs request.
    """

    target: str
    form: Literal["json", "table", "protobuf"] = "json"


class Listed(msgspec.Struct, frozen=True):
    """The measurements of one list call.

    Parameters
    ----------
    seconds
        Time from the call to the last byte.
    size_bytes
        Size of the body.
    count
        Number of objects, or of table rows.
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
        Number of connections.
    """

    events: int
    rate: float
    connections: int


class Written(msgspec.Struct, frozen=True):
    """The answer to `Write`: seconds from the first write to the last answer."""

    seconds: float


class Watch(msgspec.Struct, frozen=True, tag=True):
    """Watch the objects that `Write` changes; answered with `Watching`, at the end with `Watched`.

    Parameters
    ----------
    watchers
        Number of watches, each with its own connection.
    events
        Number of events each watcher should see.
    silence_seconds
        A watcher that sees no event for this long has lost events.
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
        Time from the first event seen by any watcher to the last.
    events
        Events each watcher saw.
    digests
        Distinct SHA-256 digests of the resourceVersions, in the order each watcher saw them.
    cut
        Watchers whose stream the server ended.
    lag_p50_ms, lag_p99_ms
        Time from sending a write to reading its event, over all events of all watchers.
    """

    seconds: float
    events: tuple[int, ...]
    digests: tuple[str, ...]
    cut: int
    lag_p50_ms: float
    lag_p99_ms: float


Job = Load | ListOnce | Write | Watch
