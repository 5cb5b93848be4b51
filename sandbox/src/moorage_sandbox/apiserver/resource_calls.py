"""Calls to resources: the method and the subresource of a call decide who answers it.

Place in the flow: `server` has authorized the call and found its target. The verbs are in
`reading`, `watching`, `writing` and `deleting`, the subresources in modules of their own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec

from moorage.base.rng import Random
from moorage.kinds.built_in import subresource_body
from moorage.kinds.status import method_not_allowed, success
from moorage_sandbox.apiserver.admission.checks import Admission
from moorage_sandbox.apiserver.authentication.account_tokens import AccountTokens
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.kubelet.logs import PodLogs
from moorage_sandbox.apiserver.kubelet.streams import STREAMS, refuse_stream
from moorage_sandbox.apiserver.protobuf.calls import has_message
from moorage_sandbox.apiserver.subresources.binding import admit_binding, bind
from moorage_sandbox.apiserver.subresources.eviction import evict
from moorage_sandbox.apiserver.subresources.scale import Scaler, scale_kind
from moorage_sandbox.apiserver.verbs.applying.notes import NOTED, whole_record
from moorage_sandbox.apiserver.verbs.deleting import DeleteOptions, Deleter, read_options
from moorage_sandbox.apiserver.verbs.reading import Lister, get_record
from moorage_sandbox.apiserver.verbs.selection import read_selection
from moorage_sandbox.apiserver.verbs.watching import Watcher
from moorage_sandbox.apiserver.verbs.write_options import check_options
from moorage_sandbox.apiserver.verbs.writing import Writer
from moorage_sandbox.apiserver.webhooks.bodies import BodyReviews
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF, Form, negotiate
from moorage_sandbox.apiserver.wire.render import (
    Renderer,
    deleted_reply,
    encode,
    make_renderer,
    warning_headers,
    written_reply,
)
from moorage_sandbox.apiserver.wire.requests import Query, Reply, Request
from moorage_sandbox.apiserver.world import World

# The answer to a successful binding or eviction, always the same.
_BOUND = encode(success(201)) + b"\n"
# Subresources whose bodies upstream never shows as tables.
_WITHOUT_TABLES = frozenset({"binding", "eviction", "token"})


class ResourceCalls:
    """Answers calls to resources.

    Parameters
    ----------
    world
        Holds the objects.
    rng
        Decides how long watches last.
    writer, deleter
        Carry out the verbs that change objects.
    admission
        Asked before an object is deleted.
    tokens
        Issues tokens of service accounts.
    """

    def __init__(
        self,
        world: World,
        rng: Random,
        *,
        writer: Writer,
        deleter: Deleter,
        admission: Admission,
        tokens: AccountTokens,
    ) -> None:
        self._world = world
        self._writer = writer
        self._deleter = deleter
        self._admission = admission
        self._tokens = tokens
        self._lister = Lister(world.store)
        self._watcher = Watcher(world, self._lister, rng)
        self._logs = PodLogs(world)
        self._reviews = BodyReviews(world, admission.webhooks)
        self._scaler = Scaler(world, writer, self._reviews)

    def close(self) -> None:
        """End all watch streams and all logs that are followed."""
        self._logs.close()
        self._watcher.close()

    def answer_call(self, request: Request, target: Target) -> Reply:
        """Answer a call of a caller with the right to make it, with a warning of an old version.

        Raises
        ------
        StatusError
            As `_answer`.
        """
        reply = self._answer(request, target)
        if told := target.served.kind.deprecation:
            headers = warning_headers([told]) + reply.headers
            return msgspec.structs.replace(reply, headers=headers)
        return reply

    def _answer(self, request: Request, target: Target) -> Reply:
        """Answer a call of a caller with the right to make it.

        Raises
        ------
        StatusError
            As the verbs do; 405: the target does not answer the method. 406: no accepted form.
            422: the options of a POST are invalid.
        """
        query = Query(request.query)
        if request.method == "POST" and request.query:
            check_options(query, "CreateOptions")
        if target.subresource == "log":
            return self._logs.answer_logs(target, request, query)
        if target.subresource in STREAMS:
            self._reviews.review_connection(target, request)
            raise refuse_stream(self._world, target, request, query)
        accept = request.headers.get("accept", "")
        # Few clients ask for protobuf, and the facts of its messages are large.
        protobuf = PROTOBUF in accept and has_message(kind_addressed(target))
        accepted = negotiate(
            accept,
            streamed=query.flag("watch"),
            protobuf=protobuf,
            tables=target.subresource not in _WITHOUT_TABLES,
        )
        renderer = make_renderer(target.served, accepted, query, self._world.clock.now_ns())
        if target.subresource == "binding":
            return self._bind(target, request, query)
        if target.subresource == "eviction":
            return self._evict(target, request, query)
        if target.subresource == "scale":
            return self._scale(target, request, query, renderer)
        if target.subresource == "token":
            if request.method != "POST":
                raise method_not_allowed()
            request = self._reviews.reviewed_call(target, request, dry_run=query.dry_run)
            answer = self._tokens.token_request(target, request)
            return Reply(status=201, body=encode(answer) + b"\n")
        match request.method:
            case "GET":
                return self._read_objects(target, query, renderer)
            case "POST" if not target.name:
                return self._create(target, request, query, renderer)
            case "PUT" | "PATCH" if target.name:
                return self._change(target, request, query, renderer)
            case "DELETE" if not target.subresource:
                return self._delete(target, request, query, renderer)
        raise method_not_allowed()

    def _read_objects(self, target: Target, query: Query, renderer: Renderer) -> Reply:
        if target.subresource and not _allowed(target, "get"):
            raise method_not_allowed()
        if query.flag("watch") and not target.name:
            stream: AsyncIterator[bytes] = self._watcher.open_stream(target, query, renderer)
            return Reply(status=200, body=stream, content_type=renderer.stream_type)
        if target.name:
            record = get_record(self._world.store, target, query)
            if target.served.shelf in NOTED and renderer.form is not Form.TABLE:
                record = whole_record(record, target.served.stored_kind.shape.layout())
            return Reply(status=200, body=renderer.one(record) + b"\n")
        found = self._lister.list(target, query, renderer)
        return Reply(status=200, body=found, content_type=renderer.media_type)

    def _create(self, target: Target, request: Request, query: Query, renderer: Renderer) -> Reply:
        if not _allowed(target, "create"):
            raise method_not_allowed()
        if target.served.kind.resource.namespaced and not target.namespace:
            raise method_not_allowed()
        written = self._writer.create(target, request, query)
        return written_reply(201, renderer, written.record, written.warnings)

    def _change(self, target: Target, request: Request, query: Query, renderer: Renderer) -> Reply:
        if not _allowed(target, "update" if request.method == "PUT" else "patch"):
            raise method_not_allowed()
        write = self._writer.update if request.method == "PUT" else self._writer.patch
        written = write(target, request, query)
        status = 201 if written.created else 200
        return written_reply(status, renderer, written.record, written.warnings)

    def _scale(self, target: Target, request: Request, query: Query, renderer: Renderer) -> Reply:
        if request.method == "GET":
            scale = self._scaler.show(target)
        elif request.method in ("PUT", "PATCH"):
            scale = self._scaler.change(target, request, query)
        else:
            raise method_not_allowed()
        return Reply(status=200, body=renderer.subresource(scale_kind(target), scale) + b"\n")

    def _bind(self, target: Target, request: Request, query: Query) -> Reply:
        if request.method != "POST":
            raise method_not_allowed()
        admit = partial(admit_binding, self._world)
        request = self._reviews.reviewed_call(target, request, dry_run=query.dry_run, admit=admit)
        bind(self._world, target, request, dry_run=query.dry_run)
        return Reply(status=201, body=_BOUND)

    def _evict(self, target: Target, request: Request, query: Query) -> Reply:
        if request.method != "POST":
            raise method_not_allowed()
        dry_run = query.dry_run
        request = self._reviews.reviewed_call(target, request, dry_run=dry_run)
        # Several writes, so one step also for a call in the thread.
        self._world.run_in_one_step(
            lambda: evict(self._world, self._deleter, target, request, dry_run=dry_run)
        )
        return Reply(status=201, body=_BOUND)

    def _delete(self, target: Target, request: Request, query: Query, renderer: Renderer) -> Reply:
        options = read_options(request, query)
        if not target.name:
            return self._delete_many(target, query, renderer, options)
        served = target.served
        if served.converter is not None:
            served.prepare_reads([get_record(self._world.store, target)])
        check = partial(self._admission.check_delete, dry_run=bool(options.dry_run))
        deleted = self._deleter.delete_object(target, options, check)
        if not deleted.gone or served.kind.shown_when_deleted:
            return written_reply(200, renderer, deleted.record)
        resource = served.kind.resource
        details: dict[str, Any] = {"name": target.name}
        if resource.group:
            details["group"] = resource.group
        details |= {"kind": resource.plural, "uid": deleted.record.uid}
        return Reply(status=200, body=encode(success(details=details)) + b"\n")

    def _delete_many(
        self, target: Target, query: Query, renderer: Renderer, options: DeleteOptions
    ) -> Reply:
        namespaced = target.served.kind.resource.namespaced
        if not _allowed(target, "deletecollection") or (namespaced and not target.namespace):
            raise method_not_allowed()
        check = None
        if self._admission.checks_deletes:
            check = partial(self._admission.check_delete, dry_run=bool(options.dry_run))
        found = list(self._lister.matching(target, read_selection(target, query)))
        target.served.prepare_reads(found)
        records = self._deleter.delete_all(target.served, found, options, check)
        return deleted_reply(renderer, records, self._world.store.version)


def _allowed(target: Target, verb: str) -> bool:
    """Whether a resource or subresource answers a verb of discovery."""
    kind = target.served.kind
    if target.subresource:
        return verb in subresource_body(kind.resource, target.subresource)[1]
    return verb in kind.verbs


def kind_addressed(target: Target) -> tuple[str, str]:
    """Return (API version, kind) of the target of a path."""
    resource = target.served.kind.resource
    if target.subresource:
        resource, _ = subresource_body(resource, target.subresource)
    return resource.api_version, resource.kind
