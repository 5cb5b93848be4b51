"""Saves a cluster's objects to a file and loads them, without decoding them whole.

A large cluster's objects are hundreds of megabytes of JSON. They stay bytes here: only the fields
that a snapshot needs (kind, names, owners) are decoded, and only changed fields are encoded again.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from moorage.api.manifest_text import object_texts
from moorage.api.resources import ResourceType, group_version_path
from moorage.base.errors import ApiError, DecodeError, UsageError, api_error
from moorage.base.files import DATA_BYTES_MAX, read_file, read_stream
from moorage.client.transport import Answer, Call, Transport
from moorage.client.writes import Client

_PATH = "/moorage.dev/v1/snapshot"
_PLAYED = "moorage.dev/played"
_PAGE = 500
# A server accepts 3 MiB a call; any server refuses an object larger than the remaining space.
_METRICS = "metrics.k8s.io"
_PIECE_BYTES = 2_000_000
_CALL_SECONDS = 120.0
_KIND, _VERSION = "CustomResourceDefinition", "apiextensions.k8s.io/v1"


class _Owner(msgspec.Struct):
    uid: str = ""


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    owner_references: list[_Owner] | None = None


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _List(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    items: list[msgspec.Raw] | None = None
    metadata: dict[str, Any] = {}


class Saved(msgspec.Struct):
    """The number of written objects of each kind."""

    kinds: dict[str, int]


class Content(msgspec.Struct):
    """The contents of a snapshot file.

    Parameters
    ----------
    first
        Definitions of custom resources, and namespaces: other objects need them.
    rest
        All other objects, as JSON.
    kinds
        Number of objects of each kind.
    dropped_owners
        How many references to owners that are not in the file were dropped.
    """

    first: list[bytes]
    rest: list[bytes]
    kinds: dict[str, int]
    dropped_owners: int


class Fault(msgspec.Struct):
    """An object that was refused."""

    kind: str
    namespace: str
    name: str
    message: str


class Loaded(msgspec.Struct, rename="camel"):
    """The counts of loading a snapshot: the fields of the server's answers, added up."""

    stored: int = 0
    present: int = 0
    dropped_owners: int = 0
    left_out: dict[str, int] = {}
    faults: list[Fault] = []


_head = msgspec.json.Decoder(_Head).decode
_list = msgspec.json.Decoder(_List).decode
_encode = msgspec.json.encode


async def save_snapshot(transport: Transport, client: Client, file: Path) -> Saved:
    """Write every object of a cluster to a file; an existing file is replaced at the end.

    Parameters
    ----------
    file
        ``-`` is standard output. A device or a pipe is written to as it is.

    Raises
    ------
    UsageError
        The file cannot be written.
    ApiError
        The server refuses a list.
    """
    kinds: Counter[str] = Counter()
    try:
        with _written(file) as out:
            out.write(b'{"apiVersion":"v1","kind":"List","metadata":{},"items":[')
            separator = b"\n"
            async for resource in _listable(client):
                async for item in _items(transport, resource):
                    out.write(separator + item)
                    separator = b",\n"
                    kinds[resource.kind] += 1
            out.write(b"\n]}\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
    return Saved(dict(sorted(kinds.items())))


@contextmanager
def _written(file: Path) -> Iterator[BinaryIO]:
    """Open a file that takes its place once it is written whole."""
    if str(file) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if file.exists() and not file.is_file():
        with file.open("wb") as out:
            yield out
        return
    draft = file.with_name(f".{file.name}.new")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            yield out
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def read_snapshot(file: Path) -> Content:
    """Read a snapshot file; ``-`` is standard input.

    Raises
    ------
    UsageError
        The file cannot be read, or is not JSON of objects.
    """
    try:
        if str(file) == "-":
            text = read_stream(sys.stdin.buffer, DATA_BYTES_MAX)
        else:
            text = read_file(file, DATA_BYTES_MAX)
        items = [item for _, item in object_texts(text)]
        heads = [_head(item) for item in items]
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except (msgspec.DecodeError, RecursionError, DecodeError) as error:
        raise UsageError(
            f"{file}: not the text of Kubernetes objects: {error}; "
            "`kubectl get ... -A -o json` writes it"
        ) from error
    if not heads:
        raise UsageError(f"there are no objects in {file}")
    owners = {head.metadata.uid for head in heads}
    content = Content([], [], {}, 0)
    namespaces, names = set(), set()
    for number, (head, item) in enumerate(zip(heads, items, strict=True), start=1):
        if not head.kind or not head.api_version:
            raise UsageError(f"{file}: item {number} has no kind or apiVersion")
        content.kinds[head.kind] = content.kinds.get(head.kind, 0) + 1
        wanted, dropped = _adjusted(head, item, owners)
        content.dropped_owners += dropped
        is_namespace = (head.kind, head.api_version) == ("Namespace", "v1")
        early = is_namespace or (head.kind, head.api_version) == (_KIND, _VERSION)
        (content.first if early else content.rest).append(wanted)
        if is_namespace:
            namespaces.add(head.metadata.name)
        elif head.metadata.namespace:
            names.add(head.metadata.namespace)
    content.first += [
        _encode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in sorted(names - namespaces)
    ]
    return content


async def load_snapshot(transport: Transport, content: Content, *, dry_run: bool) -> Loaded:
    """Send a snapshot to a sandbox; all but definitions and namespaces are stored at once.

    Raises
    ------
    UsageError
        The server is not a sandbox.
    ApiError
        The server refuses to load anything.
    """
    loaded = Loaded(dropped_owners=content.dropped_owners)
    for part in (content.first, content.rest):
        pieces = list(_pieces(part))
        for number, piece in enumerate(pieces):
            last = number == len(pieces) - 1
            flags = b'"begin":%b,"store":%b' % (_bool(number == 0), _bool(last and not dry_run))
            body = b"{" + flags + b',"objects":[' + b",".join(piece) + b"]}"
            _add(loaded, await _send(transport, body))
    return loaded


def saved_report(saved: Saved, file: Path) -> dict[str, Any]:
    """Return the report of saving, for programs."""
    return {"file": str(file), "objects": sum(saved.kinds.values()), "kinds": saved.kinds}


def saved_text(saved: Saved, file: Path) -> str:
    """Return the report of saving, for people."""
    return f"{file}: {sum(saved.kinds.values())} objects: {_counts(saved.kinds)}"


def loaded_text(loaded: Loaded, *, dry_run: bool) -> str:
    """Return the report of loading, for people."""
    lines = [f"{loaded.stored} objects loaded" if not dry_run else "nothing loaded: a dry run"]
    if loaded.present:
        lines.append(f"{loaded.present} were there already and stay as they are")
    if loaded.left_out:
        lines.append(f"left out, not kept here: {_counts(loaded.left_out)}")
    if loaded.dropped_owners:
        lines.append(f"{loaded.dropped_owners} references to owners not in the file dropped")
    if loaded.faults:
        lines.append(f"{len(loaded.faults)} refused")
    return "\n".join(lines)


def fault_lines(loaded: Loaded) -> Iterator[str]:
    """Yield a line for each refused object."""
    for fault in loaded.faults:
        name = f"{fault.namespace}/{fault.name}" if fault.namespace else fault.name
        yield f"{fault.kind} {name}: {fault.message}"


# --- reading a server --------------------------------------------------------------------------


async def _listable(client: Client) -> AsyncIterator[ResourceType]:
    """Yield every listable kind, in its preferred version; not Events and metrics: no state."""
    groups = (await client.read_path("/apis")).get("groups")
    found: list[Any] = groups if isinstance(groups, list) else []
    preferred = [("", "v1")]
    preferred += [
        (each["name"], each["preferredVersion"]["version"])
        for each in found
        if each["name"] != _METRICS
    ]
    for group, version in preferred:
        try:
            listed: Any = await client.read_path(group_version_path(group, version))
        except ApiError:
            # The server of an aggregated API is away; kubectl leaves the API out, too.
            continue
        for entry in listed.get("resources") or ():
            if "/" not in entry["name"] and "list" in entry["verbs"] and entry["kind"] != "Event":
                yield ResourceType(
                    group=group,
                    version=version,
                    kind=entry["kind"],
                    plural=entry["name"],
                    singular="",
                    namespaced=entry["namespaced"],
                    short_names=(),
                )


async def _items(transport: Transport, resource: ResourceType) -> AsyncIterator[bytes]:
    """Yield the objects of a kind as JSON with kind and apiVersion."""
    path = f"{group_version_path(resource.group, resource.version)}/{resource.plural}"
    prefix = _encode({"apiVersion": resource.api_version, "kind": resource.kind})[:-1] + b","
    token = ""
    while True:
        query = [("limit", str(_PAGE))] + ([("continue", token)] if token else [])
        answer = await transport.request(
            Call("GET", path, tuple(query), timeout_seconds=_CALL_SECONDS)
        )
        _check(answer)
        listed = _list(answer.body)
        for item in listed.items or ():
            yield bytes(item) if _head(item).kind else prefix + bytes(item)[1:]
        token = listed.metadata.get("continue") or ""
        if not token:
            return


# --- reading a file -----------------------------------------------------------------------------


def _adjusted(head: _Head, item: bytes | msgspec.Raw, owners: set[str | None]) -> tuple[bytes, int]:
    """Return an object in the form to send, and the number of dropped owner references."""
    references = head.metadata.owner_references or []
    dropped = sum(each.uid not in owners for each in references)
    is_node = (head.kind, head.api_version) == ("Node", "v1")
    if not dropped and not is_node:
        return bytes(item), 0
    obj = msgspec.json.decode(item)
    meta = obj["metadata"]
    if dropped:
        kept = [each for each in meta["ownerReferences"] if each.get("uid") in owners]
        meta["ownerReferences"] = kept
    if is_node:
        meta["annotations"] = (meta.get("annotations") or {}) | {_PLAYED: "true"}
    return _encode(obj), dropped


# --- sending ------------------------------------------------------------------------------------


def _pieces(objects: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield objects in pieces that a server accepts; one empty piece if there are no objects."""
    piece: list[bytes] = []
    size = 0
    for obj in objects:
        if piece and size + len(obj) > _PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(obj)
        size += len(obj) + 1
    yield piece


async def _send(transport: Transport, body: bytes) -> Loaded:
    answer = await transport.request(Call("POST", _PATH, body=body, timeout_seconds=_CALL_SECONDS))
    if answer.status == 404:
        raise UsageError(
            "this server is no sandbox of moorage: a snapshot is loaded into `moorage up`"
        )
    _check(answer)
    return msgspec.json.decode(answer.body, type=Loaded)


def _check(answer: Answer) -> None:
    if answer.status >= 300:
        told = msgspec.json.decode(answer.body) if answer.body[:1] == b"{" else {}
        raise api_error(answer.status, told.get("reason", ""), told.get("message", ""))


def _add(loaded: Loaded, more: Loaded) -> None:
    loaded.stored += more.stored
    loaded.present += more.present
    loaded.faults += more.faults
    both = Counter(loaded.left_out) + Counter(more.left_out)
    loaded.left_out = dict(sorted(both.items()))


def _bool(value: bool) -> bytes:
    return b"true" if value else b"false"


def _counts(kinds: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"
