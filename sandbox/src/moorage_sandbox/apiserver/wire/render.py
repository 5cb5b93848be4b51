"""The answer to a call: its objects, Tables or metadata in bytes, and the reply around them.

Place in the flow: `resource_calls` answers here, and `chain` refuses here. Lists and watches of
whole objects are joined from stored bytes; nothing is encoded again. A write that took effect is
never reported as a failure, or the client would believe that the write was refused: not for a
column that fails, and not for a text that no header can hold.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from moorage.kinds.kind import Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.status import StatusError, bad_request, success
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.protobuf.calls import prepare
from moorage_sandbox.apiserver.wire.negotiate import JSON, PROTOBUF, Accepted, Form
from moorage_sandbox.apiserver.wire.requests import Body, Query, Reply, readable
from moorage_sandbox.apiserver.wire.table import partial_metadata, to_table
from moorage_sandbox.storage.record import Record

_log = logging.getLogger(__name__)

encode = msgspec.json.Encoder().encode

# Longest total of all warnings of an answer, and longest warning where the total is exceeded, in
# characters (kubernetes v1.36 apiserver pkg/endpoints/filters/warning.go).
_WARNINGS_LENGTH_MAX = 4096
_WARNING_LENGTH_MAX = 256
# Characters that would end a header, or are not valid in text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")

# To render so many bytes anew takes 2 ms (2-core machine, 2026-11-28).
_BYTES_FEW = 32 * 1024

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Renderer:
    """Renders the objects of one resource in one form, in JSON; for one call.

    Parameters
    ----------
    served
        The resource.
    accepted
        Form that the client accepts.
    include_object
        ``None``, ``Metadata`` or ``Object``: the part of the object in each row of a Table.
    now_ns
        Wall-clock time of the call, for ages in Tables.
    """

    media_type = JSON
    """Media type of a list."""
    stream_type = JSON
    """Media type of a watch."""

    def __init__(
        self, served: Served, accepted: Accepted, *, include_object: str, now_ns: int
    ) -> None:
        self.served = served
        self.form = accepted.form
        self._meta = f"meta.k8s.io/{accepted.version}"
        self.api_version = served.kind.resource.api_version
        self._include_object = include_object
        self._columns_told = False
        self.now_ns = now_ns

    @property
    def shareable(self) -> bool:
        """Whether calls for the same version and form can share lines."""
        # Rows of Tables contain ages, and only the first line contains the columns.
        return self.form is not Form.TABLE

    def takes_long(self, records: Iterable[Record]) -> bool:
        """Whether rendering may take more than a few milliseconds."""
        if self.form is Form.OBJECT and self.media_type == JSON and self.served.as_stored:
            return False
        return sum(len(record.data) for record in records) > _BYTES_FEW

    def one(self, record: Record) -> bytes:
        """Render one object, always in JSON; the answer is converted from it."""
        if self.form is Form.OBJECT:
            return self.served.data(record)
        if self.form is Form.METADATA:
            return self._metadata(record)
        table = self._table([record])
        table["metadata"] = {"resourceVersion": str(record.version)}
        return encode(table)

    def subresource(self, kind: ServedKind, obj: Obj) -> bytes:
        """Render the body of a subresource, which is no stored object."""
        if self.form is Form.METADATA:
            return encode(partial_metadata(obj))
        if self.form is Form.OBJECT:
            return encode(obj)
        table = to_table(kind, [obj], self.now_ns, self._include_object, self._meta)
        version = obj["metadata"].get("resourceVersion", "")
        return encode(table | {"metadata": {"resourceVersion": version}})

    def many(self, records: Sequence[Record], list_meta: Obj) -> Body:
        """Render a list; ``list_meta`` becomes its ``metadata``."""
        self.served.prepare_reads(records)
        resource = self.served.kind.resource
        if self.form is Form.TABLE:
            return encode(self._table(records) | {"metadata": list_meta})
        if self.form is Form.METADATA:
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            items: Iterable[bytes] = map(self._metadata, records)
        else:
            head = {"kind": self.served.kind.shape.list_kind, "apiVersion": resource.api_version}
            items = map(self.served.data, records)
        start = encode(head | {"metadata": list_meta})[:-1]
        return b"".join((start, b',"items":[', b",".join(items), b"]}\n"))

    def event(self, change_type: str, record: Record) -> bytes:
        """Render one event of a watch stream."""
        if self.form is Form.OBJECT:
            data = self.served.data(record)
        elif self.form is Form.METADATA:
            data = self._metadata(record)
        else:
            table = self._table([record])
            table["metadata"] = {"resourceVersion": str(record.version)}
            if self._columns_told:
                # Column definitions come with the first event only, as upstream sends them.
                table["columnDefinitions"] = None
            self._columns_told = True
            data = encode(table)
        return b'{"type":"%s","object":%s}\n' % (change_type.encode(), data)

    def bookmark(self, version: int, *, initial_events_end: bool) -> bytes:
        """Render the event after which the client has received everything up to this version."""
        meta: dict[str, Any] = {"resourceVersion": str(version)}
        if initial_events_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        resource = self.served.kind.resource
        obj: Obj = {"kind": resource.kind, "apiVersion": resource.api_version}
        if self.form is Form.METADATA:
            obj = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        elif self.form is Form.TABLE:
            obj = {"kind": "Table", "apiVersion": self._meta, "rows": []}
        return self.event_of("BOOKMARK", obj | {"metadata": meta})

    def error(self, error: StatusError) -> bytes:
        """Render the event that ends a watch stream with an error."""
        return self.event_of("ERROR", error.body)

    def event_of(self, change_type: str, obj: Obj) -> bytes:
        """Render an event of an object that is not stored."""
        return encode({"type": change_type, "object": obj}) + b"\n"

    def _metadata(self, record: Record) -> bytes:
        return encode(partial_metadata(self.served.served_form(record)))

    def _table(self, records: Sequence[Record]) -> dict[str, Any]:
        objs = (self.served.served_form(record) for record in records)
        return to_table(self.served.kind, objs, self.now_ns, self._include_object, self._meta)


def make_renderer(served: Served, accepted: Accepted, query: Query, now_ns: int) -> Renderer:
    """Build the renderer of one call.

    Raises
    ------
    StatusError
        400: ``includeObject`` is not one of its three values.
    """
    include = query.text("includeObject") or "Metadata"
    if include not in {"None", "Metadata", "Object"}:
        raise bad_request(f'unrecognized includeObject value: "{include}"')
    make = Renderer
    if accepted.media_type == PROTOBUF:
        prepare((served.kind.resource.api_version, served.kind.resource.kind))
        # The runtime of protobuf is imported only for clients that use it.
        from moorage_sandbox.apiserver.protobuf.rendering import ProtobufRenderer

        make = ProtobufRenderer
    return make(served, accepted, include_object=include, now_ns=now_ns)


def written_reply(
    status: int, renderer: Renderer, record: Record, warnings: Sequence[str] = ()
) -> Reply:
    """Reply to a write of one object; as the whole object where the form asked for fails."""
    try:
        body = renderer.one(record)
    except Exception:
        _log.exception("%s %s was written and cannot be shown", record.namespace, record.name)
        body = record.data
    if not warnings:
        return Reply(status=status, body=body + b"\n")
    return Reply(status=status, body=body + b"\n", headers=warning_headers(warnings))


def warning_headers(warnings: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the headers of warnings for a client."""
    return tuple(("Warning", f'299 - "{text}"') for text in _header_texts(warnings))


def deleted_reply(renderer: Renderer, records: Sequence[Record], version: int) -> Reply:
    """Reply to a delete of a collection; without the objects where rendering them fails."""
    try:
        body: Body = renderer.many(records, {"resourceVersion": str(version)})
        media_type = renderer.media_type
    except Exception:
        _log.exception("%d objects were deleted and cannot be shown", len(records))
        body, media_type = encode(success()) + b"\n", JSON
    return Reply(status=200, body=body, content_type=media_type)


def status_reply(error: StatusError) -> Reply:
    """Reply to a refused call."""
    headers: tuple[tuple[str, str], ...] = ()
    if error.code == 401:
        headers = (("WWW-Authenticate", 'Bearer realm="moorage"'),)
    elif seconds := (error.details or {}).get("retryAfterSeconds"):
        headers = (("Retry-After", str(seconds)),)
    try:
        body = encode(error.body)
    except UnicodeEncodeError:
        # A message may repeat the client's bytes, which need not be text.
        body = encode(StatusError(error.code, error.reason, readable(error.message)).body)
    return Reply(status=error.code, body=body + b"\n", content_type=JSON, headers=headers)


def _header_texts(warnings: Sequence[str]) -> list[str]:
    """Return warnings in a form that headers can hold, each once."""
    found = list(dict.fromkeys(_CONTROL.sub(" ", readable(text)) for text in warnings))
    if sum(map(len, found)) > _WARNINGS_LENGTH_MAX:
        found = [text[:_WARNING_LENGTH_MAX] for text in found]
        found = found[: _WARNINGS_LENGTH_MAX // _WARNING_LENGTH_MAX]
    return [text.replace("\\", "\\\\").replace('"', '\\"') for text in found]
