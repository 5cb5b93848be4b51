"""Lists and creates nodes, several at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.resources import NODES
from moorage.base.errors import ConflictError
from moorage.client.writes import Client
from moorage.nodeshapes.templates import NodeTemplate

_PARALLEL: Final = 16  # guess: keeps a local server busy

T = TypeVar("T")


async def list_nodes(client: Client) -> list[Node]:
    """Return all nodes of the cluster."""
    found: Any = (await client.list(NODES))["items"]
    return [from_dict(Node, {**each, "kind": "Node"}) for each in found]


async def create_nodes(client: Client, templates: Sequence[NodeTemplate]) -> tuple[str, ...]:
    """Create nodes; return the names of those that did not exist before."""
    created: list[str] = []

    async def create(template: NodeTemplate) -> None:
        try:
            made: Any = await client.create(NODES, template)
        except ConflictError:
            return
        created.append(made["metadata"]["name"])

    await for_each(templates, create)
    return tuple(sorted(created))


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Await some work about each item, several at a time."""
    waiting = deque(items)

    async def run() -> None:
        while waiting:
            await work(waiting.popleft())

    await asyncio.gather(*(run() for _ in range(min(_PARALLEL, len(waiting)))))
