"""Where the facts come from: a file, or the lists of an API server; each becomes a `World`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from moorage.api.resources import NODES, PODS, ResourceType, group_version_path
from moorage.base.clock import SystemClock
from moorage.base.errors import NotFoundError, UsageError, api_error
from moorage.cli.plugins import with_plugins
from moorage.cli.session import Session, run_session
from moorage.client.transport import Answer, Call
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration
from moorage.what_if.lists import KINDS, Objects, named, read_objects
from moorage.what_if.world import World

_PAGE = 500
_CALL_SECONDS = 120.0


class _List(msgspec.Struct, rename="camel"):
    items: list[msgspec.Raw] | None = None
    metadata: dict[str, object] = {}


_list = msgspec.json.Decoder(_List).decode


def objects_of_file(file: Path) -> Objects:
    """Read the objects of a file; ``-`` is standard input.

    Raises
    ------
    UsageError
        The file cannot be read, or has no objects in it.
    """
    try:
        text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    return read_objects(text, str(file))


def objects_of_server(
    *, kubeconfig: str, context: str, namespace: str, more: Sequence[ResourceType] = ()
) -> tuple[Objects, str]:
    """Read the objects that a scheduler watches from an API server, and the chosen namespace.

    Parameters
    ----------
    more
        Further kinds to read.

    Raises
    ------
    ApiError, TransportError
        The server refuses a list, or cannot be reached.
    """

    async def work(session: Session) -> tuple[Objects, str]:
        found = Objects()
        for resource in (NODES, PODS, *(kind.resource for kind in KINDS.values()), *more):
            await _take(session, resource, found)
        return found, session.namespace

    return run_session(work, kubeconfig=kubeconfig, context=context, namespace=namespace)


async def _take(session: Session, resource: ResourceType, found: Objects) -> None:
    """Take in every object of a kind; a server need not have the kind."""
    path = f"{group_version_path(resource.group, resource.version)}/{resource.plural}"
    token = ""
    while True:
        query = [("limit", str(_PAGE))] + ([("continue", token)] if token else [])
        answer = await session.transport.request(
            Call("GET", path, tuple(query), timeout_seconds=_CALL_SECONDS)
        )
        try:
            _check(answer)
        except NotFoundError:
            return
        listed = _list(answer.body)
        for item in named(listed.items or (), resource.kind, resource.api_version):
            found.add_json(item)
        token = str(listed.metadata.get("continue") or "")
        if not token:
            return


def _check(answer: Answer) -> None:
    if answer.status >= 300:
        told = msgspec.json.decode(answer.body) if answer.body[:1] == b"{" else {}
        raise api_error(answer.status, told.get("reason", ""), told.get("message", ""))


def world_over(objects: Objects, config: Path | None, plugins: Sequence[str]) -> World:
    """Return a world with the configuration of a file and plugins from outside.

    Raises
    ------
    ConfigError
        The configuration has faults.
    UsageError
        A plugin cannot be loaded.
    """
    loaded = LoadedConfiguration() if config is None else load_config(config)
    known = with_plugins(loaded, plugins)
    return World(
        objects=objects,
        registry=known.registry,
        config=known.config,
        now_ns=SystemClock().now_ns(),
    )
