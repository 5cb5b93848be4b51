"""Chooses how an answer is rendered: in JSON, or in protobuf."""

from __future__ import annotations

from moorage.kinds.status import bad_request
from moorage_sandbox.apiserver.protobuf.calls import prepare
from moorage_sandbox.apiserver.views import Served
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF, Accepted
from moorage_sandbox.apiserver.wire.render import Renderer
from moorage_sandbox.apiserver.wire.requests import Query


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
