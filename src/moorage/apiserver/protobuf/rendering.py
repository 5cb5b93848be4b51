"""Lists and watches in protobuf.

Place in the flow: `moorage.apiserver.renderers.make_renderer` chooses this renderer for a client
that prefers protobuf. Objects are stored in JSON, so each object is decoded and written in
protobuf. Watches share the written bytes, and a long list is written in slices.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from moorage.apiserver.negotiate import PROTOBUF, Form
from moorage.apiserver.protobuf.codec import ProtobufError, encode
from moorage.apiserver.protobuf.envelope import frame, known_message, wrap_list, write_object
from moorage.apiserver.render import Renderer
from moorage.apiserver.requests import Body
from moorage.apiserver.table import partial_metadata
from moorage.base.aio import sleep
from moorage.kinds.kind import Obj
from moorage.kinds.status import internal
from moorage.storage.record import Record

# Objects written between two chances for other tasks: about 5 ms (2-core machine, 2026-11-22).
_SLICE: Final = 100
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
            500: an object has no protobuf form. Such an object in a long list ends the answer.
        """
        if len(records) > _SLICE:
            return self._in_slices(records, list_meta)
        return self._list(list_meta, list(self._items(records)))

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

    async def _in_slices(self, records: Sequence[Record], list_meta: Obj) -> AsyncIterator[bytes]:
        """Yield a list as one piece, because its length comes first; other tasks run meanwhile."""
        items: list[bytes] = []
        for start in range(0, len(records), _SLICE):
            items += self._items(records[start : start + _SLICE])
            await sleep(0)
        yield self._list(list_meta, items)

    def _list(self, list_meta: Obj, items: Sequence[bytes]) -> bytes:
        api_version, kind = self._kind
        list_kind = self.served.kind.shape.list_kind
        if self.form is Form.METADATA:
            list_kind = f"{kind}List"
        return wrap_list(api_version, list_kind, list_meta, items)

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
