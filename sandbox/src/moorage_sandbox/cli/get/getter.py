"""The calls and output of ``get``: tables made by the server, whole objects, names, watches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from moorage.api.codec import decode_untyped
from moorage.api.resources import PODS, ResourceType
from moorage.base import aio
from moorage.base.errors import GoneError, MoorageError, NotFoundError, TransportError, UsageError
from moorage.cli.kinds import named_kind, named_kinds
from moorage.cli.render import (
    Columns,
    Form,
    json_text,
    show_error,
    show_note,
    table_headings,
    table_rows,
    yaml_text,
)
from moorage.cli.session import Session
from moorage.client import requests
from moorage.client.status import error_from_answer, refuse_failed
from moorage.client.transport import Answer, Call
from moorage_sandbox.cli.get.gpu_column import has_gpus, with_gpus

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_WATCH_SECONDS = 3600
_AGAIN_SECONDS = 1.0


class GetQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The request of one ``get``."""

    words: tuple[str, ...]
    all_namespaces: bool = False
    selector: str = ""
    field_selector: str = ""
    output: Form = "text"
    watch: bool = False

    @property
    def names_objects(self) -> bool:
        """Whether objects are named one by one."""
        return len(self.words) > 1 or "/" in self.words[0]

    def check_options(self) -> None:
        """Refuse options that cannot be combined.

        Raises
        ------
        UsageError
            Options conflict; the message says what to leave out.
        """
        if self.names_objects and self.all_namespaces:
            raise UsageError("an object has one namespace: name it with -n, without -A")
        if self.names_objects and (self.selector or self.field_selector):
            raise UsageError("name objects, or select them with -l or --field-selector; not both")
        if self.watch and ("," in self.words[0] or len(self.words) > 2):
            raise UsageError("-w shows one kind, or one object")
        slashes = ["/" in word for word in self.words]
        if any(slashes) and not all(slashes):
            raise UsageError("write KIND/NAME for every object, or KIND NAME NAME")


class Getter:
    """Carries out one ``get``.

    Parameters
    ----------
    session
        The server.
    query
        The request.
    """

    def __init__(self, session: Session, query: GetQuery) -> None:
        self._session = session
        self._query = query
        self._shows_gpus = False

    async def run(self) -> None:
        """Call the server and print the answers.

        Raises
        ------
        MoorageError
            A named object does not exist (all others are printed), or the server refused.
        """
        wanted = await self._wanted()
        if self._query.watch:
            await self._watch(*wanted[0])
        elif self._query.output in {"text", "wide"}:
            await self._tables(wanted)
        else:
            await self._objects(wanted)

    async def _wanted(self) -> list[tuple[ResourceType, str]]:
        """Return kinds and names ("" for all) in the requested order."""
        client, words = self._session.client, self._query.words
        if "/" in words[0]:
            pairs = [word.partition("/")[::2] for word in words]
            return [(await named_kind(client, kind), name) for kind, name in pairs]
        named = [await named_kinds(client, word) for word in words[0].split(",") if word]
        kinds = list(dict.fromkeys(itertools.chain.from_iterable(named)))
        return [(kind, name) for kind in kinds for name in (words[1:] or ("",))]

    # --- tables -----------------------------------------------------------------------------

    async def _tables(self, wanted: Sequence[tuple[ResourceType, str]]) -> None:
        shown = 0
        several = len({kind for kind, _ in wanted}) > 1
        missing: list[MoorageError] = []
        columns: dict[ResourceType, Columns] = {}
        for kind, name in wanted:
            try:
                table = await self._call_server(self._call_for(kind, name, accept=TABLE))
            except NotFoundError as error:
                missing.append(error)
                continue
            if not table.get("rows"):
                continue
            if kind not in columns and columns:
                click.echo("")
            shown += len(table["rows"])
            self._print_table(table, kind, columns, prefix=f"{kind.singular}/" if several else "")
        if not shown and not missing:
            query = self._query
            where = "" if query.all_namespaces else f" in {self._session.namespace} namespace"
            clustered = all(not kind.namespaced for kind, _ in wanted)
            click.echo(f"No resources found{'' if clustered else where}.", err=True)
        _raise_missing(missing)

    def _print_table(
        self,
        table: dict[str, Any],
        kind: ResourceType,
        columns: dict[ResourceType, Columns],
        *,
        prefix: str = "",
    ) -> None:
        wide = self._query.output == "wide"
        if wide and kind is PODS:
            # The columns of later tables, of a watch or of more names, are those of the first.
            self._shows_gpus |= kind not in columns and has_gpus(table)
            table = with_gpus(table) if self._shows_gpus else table
        namespaces = self._query.all_namespaces and kind.namespaced
        definitions = table["columnDefinitions"]
        if kind not in columns:
            columns[kind] = Columns(table_headings(table, wide=wide, namespaces=namespaces))
        rows = table_rows(table, definitions, wide=wide, namespaces=namespaces, prefix=prefix)
        for line in columns[kind].lines(rows):
            click.echo(line)

    # --- whole objects ----------------------------------------------------------------------

    async def _objects(self, wanted: Sequence[tuple[ResourceType, str]]) -> None:
        objects: list[dict[str, Any]] = []
        missing: list[MoorageError] = []
        for kind, name in wanted:
            try:
                objects += map(_without_managers, await self._whole(kind, name))
            except NotFoundError as error:
                missing.append(error)
        output = self._query.output
        if output == "name":
            for obj in objects:
                click.echo(await self._name(obj))
        elif objects or not missing:
            one = self._query.names_objects and len(wanted) == 1
            value: Any = (
                objects[0]
                if one
                else {
                    "apiVersion": "v1",
                    "items": objects,
                    "kind": "List",
                    "metadata": {"resourceVersion": ""},
                }
            )
            click.echo(json_text(value) if output == "json" else yaml_text(value))
        _raise_missing(missing)

    async def _whole(self, kind: ResourceType, name: str) -> list[dict[str, Any]]:
        client = self._session.client
        namespace = self._namespace(kind)
        if name:
            return [await client.get(kind, name, namespace=namespace)]
        listed = await client.list(kind, self._selection(kind))
        items = listed.get("items")
        # Items of a list lack kind and apiVersion; an object printed alone needs them.
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        return [{**head, **item} for item in (items if isinstance(items, list) else [])]

    async def _name(self, obj: dict[str, Any]) -> str:
        group, _, _ = obj["apiVersion"].rpartition("/")
        singular = obj["kind"].lower()
        return f"{singular}{f'.{group}' if group else ''}/{obj['metadata']['name']}"

    # --- watching ---------------------------------------------------------------------------

    async def _watch(self, kind: ResourceType, name: str) -> None:
        """Print the existing objects, then every change, until interrupted."""
        columns: dict[ResourceType, Columns] = {}
        version = ""
        while True:
            try:
                if not version:
                    version = await self._first_look(kind, name, columns)
                version = await self._follow(kind, name, columns, version=version)
            except GoneError:
                version = ""
            except TransportError as error:
                show_note(f"{error}; trying again")
                await aio.sleep(_AGAIN_SECONDS)

    async def _first_look(
        self, kind: ResourceType, name: str, columns: dict[ResourceType, Columns]
    ) -> str:
        listed = await self._call_server(self._call_for(kind, name, accept=self._accept))
        if listed.get("kind") == "Table":
            if listed.get("rows"):
                self._print_table(listed, kind, columns)
        else:
            head = {"apiVersion": kind.api_version, "kind": kind.kind}
            items = [listed] if name else [{**head, **item} for item in listed["items"]]
            for item in items:
                await self._print_object(item)
        # For one object the table has the object's version, from which the watch can continue.
        return str(listed["metadata"]["resourceVersion"])

    async def _follow(
        self,
        kind: ResourceType,
        name: str,
        columns: dict[ResourceType, Columns],
        *,
        version: str,
    ) -> str:
        """Print the changes of one stream; return the version to continue from."""
        selection = self._selection(kind)
        if name:
            selection = msgspec.structs.replace(selection, field_selector=f"metadata.name={name}")
        call = requests.watch(
            kind, selection, resource_version=version, timeout_seconds=_WATCH_SECONDS
        )
        call = msgspec.structs.replace(call, accept=self._accept)
        definitions: list[Any] = []
        async with self._session.transport.stream(call) as stream:
            await refuse_failed(stream)
            async for line in stream:
                event = decode_untyped(line)
                obj = event["object"]
                if event["type"] == "ERROR":
                    raise error_from_answer(Answer(int(obj.get("code", 500)), {}, _bytes(obj)))
                if obj.get("kind") == "Table":
                    # Only the first table of a stream describes the columns.
                    definitions = obj.get("columnDefinitions") or definitions
                    obj["columnDefinitions"] = definitions
                version = _version(obj) or version
                if event["type"] == "BOOKMARK":
                    continue
                if obj.get("kind") == "Table":
                    self._print_table(obj, kind, columns)
                else:
                    await self._print_object(obj)
        return version

    async def _print_object(self, obj: dict[str, Any]) -> None:
        match self._query.output:
            case "name":
                click.echo(await self._name(obj))
            case "json":
                click.echo(json_text(_without_managers(obj)))
            case _:
                click.echo(f"{yaml_text(_without_managers(obj))}\n---")

    # --- calls ------------------------------------------------------------------------------

    @property
    def _accept(self) -> str:
        return TABLE if self._query.output in {"text", "wide"} else "application/json"

    def _namespace(self, kind: ResourceType) -> str:
        everywhere = self._query.all_namespaces or not kind.namespaced
        return "" if everywhere else self._session.namespace

    def _selection(self, kind: ResourceType) -> requests.Selection:
        query = self._query
        return requests.Selection(self._namespace(kind), query.selector, query.field_selector)

    def _call_for(self, kind: ResourceType, name: str, *, accept: str) -> Call:
        if name:
            return requests.get(kind, name, namespace=self._namespace(kind), accept=accept)
        return requests.list_objects(kind, self._selection(kind), accept=accept)

    async def _call_server(self, call: Call) -> dict[str, Any]:
        answer = await self._session.transport.request(call)
        if answer.status >= 400:
            raise error_from_answer(answer)
        found: dict[str, Any] = decode_untyped(answer.body)
        return found


def _raise_missing(missing: Sequence[MoorageError]) -> None:
    for error in missing[:-1]:
        show_error(str(error))
    if missing:
        raise missing[-1]


def _version(obj: dict[str, Any]) -> str:
    """Return the resourceVersion of an object, or of the last object of a table."""
    version = (obj.get("metadata") or {}).get("resourceVersion") or ""
    for row in obj.get("rows") or []:
        metadata = (row.get("object") or {}).get("metadata") or {}
        version = metadata.get("resourceVersion") or version
    return str(version)


def _bytes(obj: Any) -> bytes:
    return msgspec.json.encode(obj)


def _without_managers(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object without the owners of its fields, as kubectl shows it."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return obj | {"metadata": metadata}
