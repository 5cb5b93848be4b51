"""Lists and watches in protobuf.

Place in the flow: `moorage_sandbox.apiserver.wire.render.make_renderer` chooses this renderer
for a client that prefers protobuf. Objects are stored in JSON, so each object is decoded and
written in protobuf. That takes 50 microseconds for a pod, so long lists and watches of large
objects are written in a thread (`worker_thread`). Watches share the written bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from moorage.kinds.kind import Obj
from moorage.kinds.status import internal
from moorage_sandbox.apiserver.protobuf.codec import ProtobufError, encode
from moorage_sandbox.apiserver.protobuf.envelope import (
    frame,
    known_message,
    wrap_list,
    write_object,
)
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF, Form
from moorage_sandbox.apiserver.wire.render import Renderer
from moorage_sandbox.apiserver.wire.requests import Body
from moorage_sandbox.apiserver.wire.table import partial_metadata
from moorage_sandbox.storage.record import Record

_METADATA: Final = ("meta.k8s.io/v1", "PartialObjectMetadata")


class ProtobufRenderer(Renderer):
    """Shows objects of one resource, or their metadata, in protobuf; for one call."""

    media_type = PROTOBUF
    stream_type = f"{PROTOBUF};stream=watch"

    def many(self, records: Sequence[Record], list_meta: Obj) -> Body:
        """Render a list; ``list_meta`` becomes its ``metadata``.

        Raises
        ------
        StatusError
            500: an object has no protobuf form.
        """
        api_version, kind = self._kind
        list_kind = self.served.kind.shape.list_kind
        if self.form is Form.METADATA:
            list_kind = f"{kind}List"
        return wrap_list(api_version, list_kind, list_meta, list(self._items(records)))

    def event(self, change_type: str, record: Record) -> bytes:
        """Render one event of a watch stream."""
        try:
            return self.event_of(change_type, self._shown(record))
        except ProtobufError as error:
            # The client lists again, and gets the error as the answer.
            return self.error(internal(str(error)))

    def event_of(self, change_type: str, obj: Obj) -> bytes:
        """Render an event of an object that is not stored."""
        return frame(change_type, write_object(obj))

    @property
    def _kind(self) -> tuple[str, str]:
        """(API version, kind) of each object shown."""
        if self.form is Form.METADATA:
            return _METADATA
        return self.api_version, self.served.kind.resource.kind

    def _items(self, records: Sequence[Record]) -> Iterator[bytes]:
        message = known_message(*self._kind)
        for record in records:
            try:
                yield encode(message, self._shown(record))
            except ProtobufError as error:
                raise internal(str(error)) from error

    def _shown(self, record: Record) -> Obj:
        obj = self.served.from_stored(record.decode())
        return partial_metadata(obj) if self.form is Form.METADATA else obj
