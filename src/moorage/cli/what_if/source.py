"""Loads the world that a change is tried in: from a file, or from the lists of a server."""

from __future__ import annotations

from pathlib import Path

import msgspec

from moorage.api import resources
from moorage.cli.explain.source import objects_of_file, objects_of_server, world_over
from moorage.what_if.world import World

_OWNERS = (resources.DEPLOYMENTS, resources.DAEMON_SETS, resources.JOBS)


class Loaded(msgspec.Struct, frozen=True):
    """A world, the namespace of names without one, and what is worth knowing about the loading."""

    world: World
    namespace: str
    notes: tuple[str, ...]


def load(
    dump: Path | None,
    config: Path | None,
    *,
    seed: int,
    namespace: str,
    kubeconfig: str,
    context: str,
) -> Loaded:
    """Load a world.

    Parameters
    ----------
    dump
        File with the objects; None to read them from the server.
    config
        The configuration that the scheduler has now; None for the default one.

    Raises
    ------
    UsageError
        A file cannot be read or used.
    ApiError, TransportError
        The server refuses a list, or cannot be reached.
    """
    if dump is None:
        objects, where = objects_of_server(
            kubeconfig=kubeconfig, context=context, namespace=namespace, more=_OWNERS
        )
    else:
        objects, where = objects_of_file(dump), namespace or "default"
    world = msgspec.structs.replace(world_over(objects, config, ()), seed=seed)
    notes = tuple(f"{each.text}; it is left out" for each in objects.unreadable)
    return Loaded(world, where, notes)
