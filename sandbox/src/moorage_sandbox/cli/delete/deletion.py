"""Finds the objects of ``delete``, deletes them and waits for the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import msgspec

from moorage.api.resources import ResourceType
from moorage.base import aio
from moorage.base.errors import MoorageError, NotFoundError, UsageError
from moorage.cli.kinds import manifest_kind, named_kind
from moorage.cli.manifests import Manifest
from moorage.cli.render import show_error
from moorage.cli.session import Session
from moorage.client.requests import Selection

_LOOK_SECONDS = 0.2

DeletionListener = Callable[[ResourceType, str, str], None]
"""Called with the kind, the namespace and the name of each object that was deleted."""


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """The request of one ``delete``."""

    words: tuple[str, ...] = ()
    manifests: list[Manifest] = []
    selector: str = ""
    everything: bool = False
    grace_seconds: int | None = None
    wait: bool = True
    ignore_missing: bool = False

    def check_options(self) -> None:
        """Refuse options that cannot be combined.

        Raises
        ------
        UsageError
            Options conflict; the message says what to do instead.
        """
        if not self.words:
            if self.selector or self.everything:
                raise UsageError("-f names its objects; leave out -l and --all")
            return
        named = len(self.words) > 1 or "/" in self.words[0]
        if named and (self.selector or self.everything):
            raise UsageError("name objects, or take them with -l or --all; not both")
        if not named and not (self.selector or self.everything):
            raise UsageError(
                f"which {self.words[0]}? name them, or take them with -l LABELS or --all"
            )
        slashes = ["/" in word for word in self.words]
        if any(slashes) and not all(slashes):
            raise UsageError("write KIND/NAME for every object, or KIND NAME NAME")


class _Target(msgspec.Struct, frozen=True):
    """One object to delete."""

    kind: ResourceType
    namespace: str
    name: str


async def delete_objects(
    session: Session, deletion: Deletion, on_deletion: DeletionListener
) -> None:
    """Delete objects, print each one, and wait until they are gone if requested.

    Raises
    ------
    MoorageError
        Some objects could not be deleted; all others were deleted.
    """
    targets = await _targets(session, deletion)
    if not targets:
        click.echo("No resources found.", err=True)
        return
    waiting: list[tuple[_Target, str]] = []
    failures: list[MoorageError] = []
    for target in targets:
        try:
            answer = await session.client.delete(
                target.kind,
                target.name,
                namespace=target.namespace,
                grace_seconds=deletion.grace_seconds,
                propagation="Background",
            )
        except NotFoundError as error:
            if not deletion.ignore_missing:
                failures.append(error)
            continue
        except MoorageError as error:
            failures.append(error)
            continue
        on_deletion(target.kind, target.namespace, target.name)
        waiting.append((target, _uid(answer)))
    if deletion.wait:
        for target, uid in waiting:
            await _until_gone(session, target, uid)
    for failure in failures[:-1]:
        show_error(str(failure))
    if failures:
        raise failures[-1]


async def _targets(session: Session, deletion: Deletion) -> list[_Target]:
    client, targets = session.client, []
    for manifest in deletion.manifests:
        kind = await manifest_kind(client, manifest)
        own = manifest["metadata"].get("namespace") or session.namespace
        name = manifest["metadata"].get("name")
        if not name:
            raise UsageError(
                f"a {kind.kind} without metadata.name cannot be deleted by its manifest"
            )
        targets.append(_Target(kind, own if kind.namespaced else "", name))
    words = deletion.words
    if words and "/" in words[0]:
        for word in words:
            first, _, name = word.partition("/")
            kind = await named_kind(client, first)
            targets.append(_target(session, kind, name))
    elif words:
        kinds = [await named_kind(client, word) for word in words[0].split(",") if word]
        for kind in kinds:
            names = words[1:] or await _all_names(session, kind, deletion.selector)
            targets += [_target(session, kind, name) for name in names]
    return targets


def _target(session: Session, kind: ResourceType, name: str) -> _Target:
    return _Target(kind, session.namespace if kind.namespaced else "", name)


async def _all_names(session: Session, kind: ResourceType, selector: str) -> tuple[str, ...]:
    namespace = session.namespace if kind.namespaced else ""
    listed: Any = await session.client.list(kind, Selection(namespace, selector))
    return tuple(item["metadata"]["name"] for item in listed["items"])


def _uid(answer: dict[str, Any]) -> str:
    """Return the uid of the deleted object, from the object or Status in the answer."""
    details = answer.get("details") or answer.get("metadata") or {}
    return str(details.get("uid", ""))


async def _until_gone(session: Session, target: _Target, uid: str) -> None:
    while True:
        try:
            obj: Any = await session.client.get(
                target.kind, target.name, namespace=target.namespace
            )
        except NotFoundError:
            return
        if uid and obj["metadata"]["uid"] != uid:
            # Another object of the same name: the deleted object is gone.
            return
        await aio.sleep(_LOOK_SECONDS)
