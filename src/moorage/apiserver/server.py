"""The API server: one request in, one reply out, for any transport.

`handle` is the entry point. `http` calls it for real clients, an in-process transport calls it for
tests and sandboxes. The room reads no clock of its own, and only watch streams wait, so the whole
server runs under a virtual clock. Behind `http` long calls are answered in a thread (the worker
thread).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from moorage.apiserver.admission.addresses import ServiceAddresses
from moorage.apiserver.admission.checks import Admission
from moorage.apiserver.admission.namespaces import Namespaces
from moorage.apiserver.admission.quota import QUOTAS, Quotas
from moorage.apiserver.audit import AuditLog
from moorage.apiserver.authentication.account_tokens import AccountTokens
from moorage.apiserver.custom.definitions import Definitions
from moorage.apiserver.documents.discovery import Discovery
from moorage.apiserver.documents.health import health
from moorage.apiserver.documents.openapi_frame import (
    OPENAPI_PROTOBUF_V1,
    openapi_frame,
    takes_only_openapi_protobuf,
)
from moorage.apiserver.documents.own_metrics import PATH as METRICS_PATH
from moorage.apiserver.documents.own_metrics import OwnMetrics
from moorage.apiserver.documents.tagged_documents import document_reply
from moorage.apiserver.expiry import EventExpiry
from moorage.apiserver.flow_schemas import FlowSchemas
from moorage.apiserver.kubelet.metrics import METRICS, ResourceMetrics
from moorage.apiserver.kubelet.proxies import refuse_proxy
from moorage.apiserver.loading import SNAPSHOT_PATH, Loader
from moorage.apiserver.policies.denying import Policies
from moorage.apiserver.policies.mutating import Mutations
from moorage.apiserver.protobuf.calls import (
    call_from_protobuf,
    in_protobuf,
    kind_of_body,
    reply_in_protobuf,
)
from moorage.apiserver.rbac.aggregation import Aggregation
from moorage.apiserver.rbac.attributes import attributes_of
from moorage.apiserver.rbac.authorizer import Authorizer
from moorage.apiserver.rbac.escalation import Escalation
from moorage.apiserver.rbac.impersonation import acting_user
from moorage.apiserver.rbac.reviews import REVIEWS, Reviews, reviewed_resource
from moorage.apiserver.resource_calls import ResourceCalls, kind_addressed
from moorage.apiserver.routes import Routes, Target, resource_target
from moorage.apiserver.subresources.binding import BINDINGS, pod_target
from moorage.apiserver.time_control import TIME_PATH, time_answer
from moorage.apiserver.verbs.deleting import Deleter
from moorage.apiserver.verbs.writing import Writer
from moorage.apiserver.views import EVENTS, Catalog
from moorage.apiserver.wire.fairness import is_lease
from moorage.apiserver.wire.negotiate import JSON, negotiate
from moorage.apiserver.wire.replies import status_reply
from moorage.apiserver.wire.requests import Query, Reply, Request, User, check_timeout
from moorage.apiserver.wire.yaml_calls import call_in_json, reply_accepted
from moorage.apiserver.worker_thread import Aside, is_heavy
from moorage.apiserver.world import World
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.cel.evaluators import LATER, TooLongHere, running_on
from moorage.kinds.custom.custom_kind import DEFINITIONS
from moorage.kinds.kept import kept_kind
from moorage.kinds.kind import Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.status import (
    StatusError,
    bad_request,
    internal,
    method_not_allowed,
    timed_out,
    unauthorized,
    unknown_path,
)
from moorage.kinds.values.packed_fields import packed
from moorage.rules.cel_process import CelProcess
from moorage.storage.journal.kept import Journal
from moorage.storage.persistence import Group, Persistence
from moorage.storage.reads import TRIES_MAX, GoneError, LongCall, Reads, StaleError, noting
from moorage.storage.record import Record
from moorage.storage.store import Store, Write
from moorage.storage.watch_log import Limits

if TYPE_CHECKING:
    from moorage.base.timeline import Timeline

_log = logging.getLogger(__name__)

# Attempts to answer a read whose answers contain undone writes (a guess: one undone write is rare).
_READ_TRIES = 5

# Kinds that are answered and never stored.
_ASKED = (*REVIEWS, BINDINGS)

_READS = ("GET", "HEAD")

# Noted for a caller that does not wait for the answer: its write may stay in place.
_NOT_AWAITED = status_reply(timed_out())
# Upstream's words for a write that was tried again and again.
_CHANGED = (
    "Operation cannot be fulfilled: the object has been modified; please apply your changes to "
    "the latest version and try again"
)
_PARTLY = "other calls wrote while the call was answered; look before you try again"


class ApiServer:
    """A Kubernetes API server in memory.

    Parameters
    ----------
    kinds
        The served kinds; `moorage.apiserver.served_kinds` for every kind.
    clock
        Time stamps and ages.
    streams
        Randomness: uids, generated names, addresses, how long watches last.
    limits
        Bounds of the watch logs, and so how far back watches can reach.
    rbac
        Authorize users by roles; without it, every authenticated user may do everything.
    secret
        Key for tokens of service accounts; derived from the seed if empty (tests only).
    """

    def __init__(
        self,
        kinds: Sequence[ServedKind],
        *,
        clock: Clock,
        streams: Streams,
        limits: Limits | None = None,
        rbac: bool = False,
        secret: bytes = b"",
    ) -> None:
        self._streams = streams
        self._persistence: Persistence | None = None
        self._undone_times = 0
        # The groups of writes of the heavy call that is being answered.
        self._heavy_groups: list[Group] = []
        self._aside = Aside()
        self._cel_process = CelProcess()
        self._audit: AuditLog | None = None
        self._timeline: Timeline | None = None
        self._catalog = Catalog(kinds)
        self._routes = Routes(self._catalog)
        self._store = Store(limits)
        self._world = World(self._catalog, self._store, clock, streams.stream("apiserver"))
        self._discovery = Discovery(self._catalog, [kept_kind(each) for each in _ASKED], METRICS)
        self._metrics = ResourceMetrics(self._world)
        self._own_metrics = OwnMetrics(self._world)
        self._flow_schemas = FlowSchemas(self._world)
        self._deleter = Deleter(self._world)
        self._definitions = Definitions(self._world, self._deleter)
        self._addresses = ServiceAddresses(self._world, self._deleter)
        self._quotas = Quotas(self._world)
        self._expiry = EventExpiry(self._world)
        Aggregation(self._world)
        self._rbac = rbac
        self._authorizer = Authorizer(self._store)
        self._escalation = Escalation(self._authorizer)
        self._policies = Policies(self._world)
        self._mutations = Mutations(self._world)
        self._namespaces = Namespaces(self._world, self._deleter)
        policies = (self._policies, self._mutations)
        admission = Admission(self._world, self._quotas, self._escalation, *policies)
        self._writer = Writer(
            self._world,
            deleter=self._deleter,
            namespaces=self._namespaces,
            expiry=self._expiry,
            admission=admission,
        )
        self._loader = Loader(self._world)
        secret = secret or streams.stream("apiserver/secret").randbytes(32)
        self.account_tokens = AccountTokens(secret, self._store, clock)
        self._resources = ResourceCalls(
            self._world,
            streams.stream("apiserver/watch"),
            writer=self._writer,
            deleter=self._deleter,
            admission=admission,
            tokens=self.account_tokens,
        )
        self._reviews = Reviews(self._authorizer, self.account_tokens.reviewed, enforced=rbac)

    @property
    def store(self) -> Store:
        """All objects; for statistics and tests, not for writing."""
        return self._store

    async def handle(self, request: Request) -> Reply:
        """Answer one call; never raises an exception except cancellation.

        Where writes are kept on disk, an answer waits until every write in it is there.
        """
        received = self._audit.now() if self._audit is not None else ""
        reply = _NOT_AWAITED
        stopped = self._persistence.stopped if self._persistence is not None else None
        try:
            made = status_reply(stopped) if stopped is not None else await self._made(request)
            if self._persistence is not None:
                made = await self._once_durable(self._persistence, request, made)
            reply = made
        finally:
            if self._audit is not None:
                self._audit.write_call(request, reply, received)
        return reply

    def answers_at_once(self, request: Request) -> bool:
        """Whether `answer_at_once` can answer a call: nothing in it takes long or waits."""
        if self._persistence is not None or request.user is None:
            return False
        if self._aside.closed and not is_lease(request):
            return False
        target = self._routes.find(request.path)
        if target is None or self._may_take_long(target):
            return False
        return not is_heavy(request, target, self._store)

    def answer_at_once(self, request: Request) -> Reply:
        """Answer a call without waiting, as `handle` would."""
        received = self._audit.now() if self._audit is not None else ""
        self._expiry.sweep()
        reply = self._reply(request)
        if self._audit is not None:
            self._audit.write_call(request, reply, received)
        return reply

    async def _once_durable(
        self, persistence: Persistence, request: Request, reply: Reply
    ) -> Reply:
        for _ in range(_READ_TRIES):
            try:
                await persistence.durable()
            except StatusError as error:
                if request.method != "GET" or persistence.stopped is not None:
                    return status_reply(error)
                # The answer contained writes that have been taken back; the next one does not.
                reply = await self._made(request)
            else:
                return reply
        return status_reply(internal("writes are being taken back; try again"))

    async def _made(self, request: Request) -> Reply:
        """Answer a call in the loop, or in the thread of long calls."""
        aside = self._aside
        if not aside.closed:
            self._expiry.sweep()
        if request.user is None or not aside.started:
            return self._reply(request)
        target = self._routes.find(request.path)
        if is_heavy(request, target, self._store):
            return await self._heavy(request)
        if target is None or self._may_take_long(target):
            try:
                with running_on(LATER):
                    return await self._light(request, target)
            except TooLongHere:
                return await self._heavy(request)
        return await self._light(request, target)

    def _may_take_long(self, target: Target) -> bool:
        """Whether a call may be about rules: those of a custom resource, or of policies."""
        return target.served.custom or self._policies.stored.exist or self._mutations.stored.exist

    async def _light(self, request: Request, target: Target | None) -> Reply:
        """Answer a call in the loop."""
        # Reads of objects wait, too: who sees a pod of a snapshot without its owner deletes it.
        if self._aside.closed and target is not None and not is_lease(request):
            await self._aside.until_open()
        return self._reply(request)

    async def _heavy(self, request: Request) -> Reply:
        """Answer a call in the thread of long calls."""
        groups: list[Group] = []

        def work(call: LongCall) -> Reply:
            self._heavy_groups = groups
            with running_on(self._cel_process):
                return self._tried(request, call)

        undone = self._undone_times
        reply = await self._aside.heavy(request.user.name if request.user else "", work)
        if request.method in _READS or undone == self._undone_times:
            return reply
        refusals = [refusal for group in groups if (refusal := await _refusal_of(group))]
        if refusals and len(refusals) == len(groups):
            return status_reply(refusals[0])
        # The call was answered while other writes were taken back; some of its own may be, too.
        return status_reply(internal("writes were taken back; look before you try again"))

    def _tried(self, request: Request, call: LongCall) -> Reply:
        """Answer a call; again where another call has written what it has read."""
        for _ in range(TRIES_MAX):
            reads = Reads(call)
            try:
                with noting(reads):
                    reply = self._reply(request)
            except StaleError:
                if reads.written:
                    return status_reply(internal(_PARTLY))
            except GoneError:
                return _NOT_AWAITED
            else:
                if reply.status < HTTPStatus.INTERNAL_SERVER_ERROR or reads.stand():
                    return reply
                # What the call read changed while it read; that may be why it failed.
        return status_reply(StatusError(409, "Conflict", _CHANGED))

    def _note_group(self) -> None:
        """Note the group of a write that a heavy call has just done."""
        group = self._persistence.group_of_last_write() if self._persistence is not None else None
        if group is not None and group not in self._heavy_groups[-1:]:
            self._heavy_groups.append(group)

    def _reply(self, request: Request) -> Reply:
        if request.method not in _READS and self._policies.stored.exist:
            self._policies.notes.clear()
            reply = self._policies.notes.added_to(self._reply_in_json(request))
        else:
            reply = self._reply_in_json(request)
        if self._flow_schemas.in_use:
            headers = reply.headers + self._flow_schemas.headers(request)
            reply = msgspec.structs.replace(reply, headers=headers)
        return reply_accepted(request, reply_in_protobuf(request, reply))

    def _reply_in_json(self, request: Request) -> Reply:
        try:
            return self._answer(request)
        except StatusError as error:
            return status_reply(error)
        except RecursionError:
            return status_reply(bad_request("the object is nested too deeply"))
        except (TooLongHere, StaleError, GoneError):
            raise
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.path)
            return status_reply(internal(f"{type(error).__name__}: {error}"))

    def store_object(self, obj: Obj) -> Record:
        """Store an object as if a client had sent it; used for the objects of a new cluster.

        Raises
        ------
        StatusError
            The refusal that a client would get.
        """
        served = self._catalog.by_kind(obj["apiVersion"], obj["kind"])
        if served is None:
            raise unknown_path()
        namespace = obj["metadata"].get("namespace") or ""
        return self._writer.create_object(Target(served=served, namespace=namespace), obj)

    def has(self, obj: Obj) -> bool:
        """Whether an object of this kind and name is stored."""
        served, meta = self._catalog.by_kind(obj["apiVersion"], obj["kind"]), obj["metadata"]
        key = (meta.get("namespace") or "", meta["name"])
        return served is not None and self._store.shelf(served.shelf).get(key) is not None

    def reload(self) -> None:
        """Rebuild the state that follows from the stored objects, after a store was restored.

        The definitions of custom resources are served again, and quotas are counted.
        """
        self._definitions.load()
        self._quotas.load()

    def restore(self, journal: Journal) -> bool:
        """Restore the content of a journal; False, without any change, when the journal is new.

        Raises
        ------
        UsageError
            The journal is damaged.
        """
        version = journal.version()
        if not version:
            return False
        self._store.restore(map(_as_kept, journal.records()), version)
        # The same seed would give the same uids once more.
        self._world.rng = self._streams.stream(f"apiserver/{version}")
        self.reload()
        self._expiry.load()
        return True

    def audit_to(self, log: AuditLog) -> None:
        """Write every call from now on to an audit log; a watch when it begins."""
        self._audit = log

    def control_time(self, timeline: Timeline) -> None:
        """Let an administrator stop and step the time of this server and of all that share it."""
        self._timeline = timeline

    def keep_in(self, journal: Journal) -> Persistence:
        """Keep every write from now on in a journal, which has the same content as the store.

        Returns
        -------
        Persistence
            Has to be closed at the end.
        """
        self._persistence = Persistence(self._store, journal, on_undone=self._undone)
        self._namespaces.resume()
        self._addresses.load()
        self._definitions.register()
        return self._persistence

    def _undone(self, writes: list[Write]) -> None:
        """Rebuild the state that followed from writes that have been taken back."""
        self._undone_times += 1
        self._authorizer.forget()
        for write in writes:
            if write.resource == DEFINITIONS and write.change.type == "ADDED":
                self._catalog.drop_custom(write.change.record.name)
        if any(write.resource in (DEFINITIONS, QUOTAS) for write in writes):
            self.reload()

    def use_thread(self) -> None:
        """Answer long calls in a thread from now on; called in the loop of all other calls."""
        self._aside.start(self._note_group)
        self._store.at_home = self._aside.at_home
        self._world.later = self._aside.later
        self._world.apart = self._aside.apart
        self._world.alone = self._aside.alone

    def close(self) -> None:
        """End all watch streams and all logs that are followed."""
        self._resources.close()
        self._aside.close()
        self._cel_process.close()

    def _answer(self, request: Request) -> Reply:
        check_timeout(request.query)
        target = self._routes.find(request.path)
        if target is None:
            text = health(request.path, Query(request.query))
            if text is not None:
                return Reply(status=200, body=text, content_type="text/plain; charset=utf-8")
        if request.user is None:
            raise unauthorized()
        enforced = self._authorizer if self._rbac else None
        user = acting_user(request.user, request.headers, enforced)
        if enforced is not None:
            wanted = attributes_of(request)
            enforced.require_right(user, wanted)
            with self._escalation.called_by(user, wanted):
                return self._answer_allowed(request, user)
        return self._answer_allowed(request, user)

    def _answer_allowed(self, request: Request, user: User) -> Reply:
        """Answer an authenticated caller with the right to make the call."""
        self._world.caller = user
        if request.fault is not None:
            raise request.fault
        request = call_in_json(request)
        if request.path == SNAPSHOT_PATH:
            return self._loader.load_piece(request)
        if request.path == TIME_PATH:
            return time_answer(self._timeline, request, user)
        if in_protobuf(request):
            request = call_from_protobuf(request, self._kind_of_body(request))
        target = self._routes.find(request.path)
        if target is None or target.served.custom:
            beside = self._beside_resources(request, user)
            if beside is not None:
                return beside
        if target is None:
            target = pod_target(request, self._catalog)
        if target is None:
            target = resource_target(request.path, self._catalog)
        return self._resources.answer_call(request, target)

    def _beside_resources(self, request: Request, user: User) -> Reply | None:
        """Answer a review, a call for measurements or a document; None for other calls."""
        accept = request.headers.get("accept", "")
        review = self._reviews.answer_review(request, user)
        if review is not None:
            negotiate(accept, tables=False)
            return review
        metrics = self._metrics.answer_metrics(request)
        if metrics is not None:
            return metrics
        if request.method == "GET":
            own = self._own_document(request.path)
            if own is not None:
                return own
        document = self._discovery.document(request.path, accept)
        if document is None:
            refusal = refuse_proxy(self._store, request)
            if refusal is not None:
                raise refusal
            return None
        if request.method != "GET":
            raise method_not_allowed()
        if takes_only_openapi_protobuf(request.path, accept):
            return Reply(status=200, body=openapi_frame(), content_type=OPENAPI_PROTOBUF_V1)
        body, media_type = document
        if media_type == JSON:
            negotiate(accept)
        return document_reply(request, body, media_type)

    def _own_document(self, path: str) -> Reply | None:
        """Return the server's metrics, or its keys; None for other paths."""
        if path == METRICS_PATH:
            return self._own_metrics.reply()
        return self.account_tokens.keys.document(path)

    def _kind_of_body(self, request: Request) -> tuple[str, str]:
        """Return (API version, kind) of the body that a call should have.

        Raises
        ------
        StatusError
            404: the path has no target.
        """
        review = reviewed_resource(request.path)
        if review is not None:
            return review.api_version, review.kind
        target = resource_target(request.path, self._catalog)
        return kind_of_body(request.method, kind_addressed(target))


async def _refusal_of(group: Group) -> StatusError | None:
    """Return why a group of writes was taken back; None where it is on the disk."""
    try:
        await group.kept()
    except StatusError as refusal:
        return refusal
    return None


def _as_kept(kept: tuple[str, Record]) -> tuple[str, Record]:
    """Return an object of a journal as a server keeps it: the fields of Events are packed."""
    resource, record = kept
    if resource != EVENTS:
        return kept
    fields = packed(tuple(record.fields), tuple(record.fields.values()))
    return resource, msgspec.structs.replace(record, fields=fields)
