"""Gives a running sandbox a number of nodes: creates nodes and waits for them, or deletes some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.errors import MoorageError, NotFoundError, UsageError
from moorage.client.node_writes import create_nodes, for_each, list_nodes
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.writes import Client
from moorage.nodeshapes.new_nodes import highest_number, new_nodes
from moorage.nodeshapes.shapes import Shape
from moorage_sandbox.sandbox.scaling.removal import Removal, choose, load_by_node

_LOOK_SECONDS: Final = 0.1
_READY_SECONDS_MAX: Final = 60.0


class Resized(msgspec.Struct, frozen=True):
    """The result of resizing a cluster.

    Parameters
    ----------
    before, nodes
        Number of nodes before and after.
    added, removed
        Names of the nodes.
    """

    before: int
    nodes: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


async def resize(
    client: Client, count: int, *, shapes: Sequence[Shape] = (), force: bool = False
) -> Resized:
    """Add or remove nodes until there are as many as wanted.

    Parameters
    ----------
    count
        The wanted number of nodes.
    shapes
        Shapes of added nodes; empty for default nodes.
    force
        Remove nodes with pods, too.

    Raises
    ------
    UsageError
        The shapes do not agree with the number, or nodes with pods would go.
    MoorageError
        The new nodes are not ready in time.
    """
    nodes = await list_nodes(client)
    missing = count - len(nodes)
    if missing > 0:
        first = highest_number(node.name for node in nodes) + 1
        added = await create_nodes(client, new_nodes(shapes, missing, first=first))
        await _until_ready(client, added)
        return Resized(before=len(nodes), nodes=len(nodes) + len(added), added=added)
    if shapes:
        raise UsageError(
            f"--shape is for new nodes, and there are {len(nodes)} nodes already; leave it out"
        )
    removed = await _shrink(client, nodes, -missing, force=force)
    return Resized(before=len(nodes), nodes=len(nodes) - len(removed), removed=removed)


async def _shrink(
    client: Client, nodes: Sequence[Node], count: int, *, force: bool
) -> tuple[str, ...]:
    """Cordon the nodes that are to go, so that no pod comes meanwhile, and delete them."""
    removal = choose(nodes, await _list_pods(client), count)
    if not force:
        _check_empty(removal)
    before = {node.name for node in nodes if node.spec.unschedulable}
    cordoned = [name for name in removal.names if name not in before]
    await for_each(cordoned, lambda name: _cordon(client, name, on=True))
    if not force:
        loads = load_by_node(await _list_pods(client))
        occupied = tuple(name for name in removal.names if loads[name])
        if occupied:
            await for_each(cordoned, lambda name: _cordon(client, name, on=False))
            pods = sum(loads[name] for name in occupied)
            _check_empty(Removal(removal.names, occupied, pods))
    await for_each(removal.names, lambda name: delete_node(client, name))
    return removal.names


def _check_empty(removal: Removal) -> None:
    """Refuse to remove nodes with pods."""
    if removal.occupied:
        raise UsageError(
            f"of the nodes to remove ({len(removal.names)}), some have pods "
            f"({len(removal.occupied)} nodes, {removal.pods} pods); nothing was removed: "
            "drain them first, or remove them with their pods by --force"
        )


async def _cordon(client: Client, name: str, *, on: bool) -> None:
    patch = patch_body({"spec": {"unschedulable": True if on else None}})
    try:
        await client.patch(NODES, name, patch, content_type=MERGE_PATCH)
    except NotFoundError:
        return


async def delete_node(client: Client, name: str) -> None:
    """Delete a node, if it still exists."""
    try:
        await client.delete(NODES, name)
    except NotFoundError:
        return


async def _list_pods(client: Client) -> list[Pod]:
    found: Any = (await client.list(PODS))["items"]
    return [from_dict(Pod, {**each, "kind": "Pod"}) for each in found]


async def _until_ready(client: Client, names: Iterable[str]) -> None:
    """Wait until the agents of new nodes have reported them ready."""
    missing, waited = set(names), 0.0
    while missing:
        ready = {node.name for node in await list_nodes(client) if _is_ready(node)}
        missing -= ready
        if not missing:
            return
        if waited >= _READY_SECONDS_MAX:
            raise MoorageError(
                f"{len(missing)} new nodes, {min(missing)} among them, are not ready after "
                f"{_READY_SECONDS_MAX:g} s: their agents do not answer"
            )
        await aio.sleep(_LOOK_SECONDS)
        waited += _LOOK_SECONDS


def _is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
