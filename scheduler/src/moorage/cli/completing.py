"""Completes kinds and names of objects, namespaces, contexts and shapes.

Kinds, names and namespaces come from the server.

A shell calls this at every Tab. So a server that is away, or that takes longer than a second, is no
error: there is then nothing to complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

_SECONDS: Final = 1.0
_NAMES_MOST: Final = 200


def complete_objects(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete ``KIND``, then the names of that kind, or ``KIND/NAME``."""
    words = _words(ctx, param)
    kind, slash, start = incomplete.partition("/")
    if slash:
        return [CompletionItem(f"{kind}/{name}") for name in _names(ctx, kind, start)]
    if words and "/" not in words[0]:
        return [CompletionItem(name) for name in _names(ctx, words[0], incomplete)]
    return _items(_kinds(), incomplete)


def complete_namespaces(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a namespace."""
    del param
    return [CompletionItem(name) for name in _names(ctx, "namespaces", incomplete)]


def complete_nodes(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a node."""
    del param
    return [CompletionItem(name) for name in _names(ctx, "nodes", incomplete)]


def complete_pods(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a pod."""
    del param
    return [CompletionItem(name) for name in _names(ctx, "pods", incomplete)]


def complete_contexts(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a context of the kubeconfig."""
    del param
    from moorage.base.errors import MoorageError
    from moorage.base.running_sandboxes import find_all
    from moorage.client.kubeconfig import load_kubeconfig

    given = ctx.params.get("kubeconfig") or os.environ.get("KUBECONFIG") or ""
    paths = [Path(part).expanduser() for part in str(given).split(os.pathsep) if part]
    if not paths:
        paths = [*(Path(each.kubeconfig) for each in find_all()), Path.home() / ".kube" / "config"]
    try:
        found = load_kubeconfig(paths, must_exist=False)
    except MoorageError:
        return []
    return [] if found is None else _items(found.contexts, incomplete)


def complete_shapes(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the instance type in the last part of a shape."""
    del ctx, param
    from moorage.nodeshapes.instance_types import instance_types

    before, comma, _ = incomplete.rpartition(",")
    return _items((f"{before}{comma}{name}" for name in instance_types()), incomplete)


def _words(ctx: click.Context, param: click.Parameter) -> list[str]:
    """Return the words of a command that are complete already."""
    words: list[str] = []
    for each in ctx.command.params:
        value = ctx.params.get(each.name or "")
        if isinstance(each, click.Argument) and value:
            words += value if isinstance(value, tuple | list) else [value]
        if each is param:
            break
    return words


def _kinds() -> Iterable[str]:
    from moorage.api.resources import RESOURCES

    return {each.plural for each in RESOURCES}


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


def _names(ctx: click.Context, kind: str, start: str) -> list[str]:
    """Return the names of objects that begin so; none where the server does not answer."""
    import asyncio

    from moorage.api.resources import resource_path
    from moorage.base.errors import MoorageError
    from moorage.cli.kinds import named_kind
    from moorage.cli.session import Session, run_session

    async def ask(session: Session) -> list[str]:
        async with asyncio.timeout(_SECONDS):
            resource = await named_kind(session.client, kind)
            namespace = session.namespace if resource.namespaced else ""
            path = f"{resource_path(resource, namespace=namespace)}?limit={_NAMES_MOST}"
            listed: Any = await session.client.read_path(path)
        names = [str(each["metadata"]["name"]) for each in listed.get("items", ())]
        return sorted(name for name in names if name.startswith(start))

    try:
        return run_session(
            ask,
            kubeconfig=ctx.params.get("kubeconfig") or "",
            context=ctx.params.get("context") or "",
            namespace=ctx.params.get("namespace") or "",
            notes=False,
        )
    except (MoorageError, TimeoutError):
        return []
