"""The API server: one request in, one reply out, for any transport.

`handle` is the entry point. `wire.http` calls it for real clients, an in-process transport calls it
for tests and sandboxes. The room reads no clock of its own, and only watch streams wait, so the
whole server runs under a virtual clock. Behind `wire.http` long calls are answered in a thread.

A call is audited, gets its lane (`lanes`), goes through the steps of `chain`, and is answered when
its writes are on the disk (`durability`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.kinds.custom.custom_kind import DEFINITIONS
from moorage.kinds.kind import Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.status import unknown_path
from moorage.kinds.values.packed_fields import packed
from moorage_sandbox.apiserver.admission.addresses import ServiceAddresses
from moorage_sandbox.apiserver.admission.checks import Admission, StoredRules
from moorage_sandbox.apiserver.admission.content_calls import ContentCalls
from moorage_sandbox.apiserver.admission.namespaces import Namespaces
from moorage_sandbox.apiserver.admission.quota import QUOTAS, Quotas
from moorage_sandbox.apiserver.audit import AuditLog
from moorage_sandbox.apiserver.authentication.account_tokens import AccountTokens
from moorage_sandbox.apiserver.catalog import EVENTS, Catalog, Routes, Target
from moorage_sandbox.apiserver.chain import CallChain, Rights
from moorage_sandbox.apiserver.custom.definitions import Definitions
from moorage_sandbox.apiserver.documents.own_paths import OwnPaths
from moorage_sandbox.apiserver.durability import Durability
from moorage_sandbox.apiserver.expiry import EventExpiry
from moorage_sandbox.apiserver.lanes import NOT_AWAITED, Lane, Lanes
from moorage_sandbox.apiserver.policies.denying import Policies
from moorage_sandbox.apiserver.policies.mutating import Mutations
from moorage_sandbox.apiserver.policies.stored import StoredPolicies
from moorage_sandbox.apiserver.rbac.aggregation import Aggregation
from moorage_sandbox.apiserver.rbac.authorizer import Authorizer
from moorage_sandbox.apiserver.rbac.escalation import Escalation
from moorage_sandbox.apiserver.rbac.reviews import Reviews
from moorage_sandbox.apiserver.rbac.right_checks import CallerRights
from moorage_sandbox.apiserver.resource_calls import ResourceCalls
from moorage_sandbox.apiserver.verbs.deleting import Deleter
from moorage_sandbox.apiserver.verbs.writing import Writer
from moorage_sandbox.apiserver.webhooks.addresses import HookAddresses
from moorage_sandbox.apiserver.webhooks.admission import Webhooks
from moorage_sandbox.apiserver.webhooks.gathering import Gathering, Sender
from moorage_sandbox.apiserver.wire.render import status_reply
from moorage_sandbox.apiserver.wire.requests import Reply, Request
from moorage_sandbox.apiserver.world import GIT_VERSION, World
from moorage_sandbox.storage.journal.journal import Journal
from moorage_sandbox.storage.persistence import Persistence
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.store import Store, Write
from moorage_sandbox.storage.watch_log import Limits

if TYPE_CHECKING:
    from moorage.base.timeline import Timeline


class ApiServer:
    """A Kubernetes API server in memory.

    Parameters
    ----------
    kinds
        The served kinds; `moorage_sandbox.apiserver.served_kinds` for every kind.
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
    git_version
        The release of Kubernetes that the server plays, as ``/version`` says it.

    Attributes
    ----------
    rbac
        Whether users are authorized by roles.
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
        git_version: str = GIT_VERSION,
    ) -> None:
        self.rbac = rbac
        self._streams = streams
        self._audit: AuditLog | None = None
        self._catalog = Catalog(kinds)
        self._store = Store(limits)
        rng = streams.stream("apiserver")
        self._world = World(self._catalog, self._store, clock, rng, git_version=git_version)
        self._durability = Durability()
        self._deleter = Deleter(self._world)
        self._hook_addresses = HookAddresses(self._world)
        self._definitions = Definitions(self._world, self._deleter, self._hook_addresses)
        self._addresses = ServiceAddresses(self._world, self._deleter)
        self._quotas = Quotas(self._world)
        self._expiry = EventExpiry(self._world)
        Aggregation(self._world)
        self._authorizer = Authorizer(self._store)
        self._escalation = Escalation(self._authorizer)
        authorize = CallerRights(self._world, self._authorizer, enforced=rbac).decide
        policies, mutations = Policies(self._world, authorize), Mutations(self._world, authorize)
        self._namespaces = Namespaces(self._world, self._deleter)
        self._webhooks = Webhooks(self._world, policies.notes, self._hook_addresses, authorize)
        admission = self._new_admission(StoredRules(policies, mutations, self._webhooks))
        self._writer = Writer(
            self._world,
            deleter=self._deleter,
            namespaces=self._namespaces,
            expiry=self._expiry,
            admission=admission,
        )
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
        reviews = Reviews(self._authorizer, self.account_tokens.reviewed, enforced=rbac)
        self._own_paths = OwnPaths(self._world, reviews, self.account_tokens)
        routes = Routes(self._catalog)
        self._chain = self._new_chain(routes, policies, enforced=rbac)
        self._lanes = self._new_lanes(routes, (policies.stored, mutations.stored), streams)

    def _new_admission(self, stored: StoredRules) -> Admission:
        admission = Admission(self._world, self._quotas, self._escalation, stored)
        calls = ContentCalls(self._world, lambda: admission.checks_deletes, self.handle)
        self._namespaces.calls = calls
        return admission

    def _new_chain(self, routes: Routes, policies: Policies, *, enforced: bool) -> CallChain:
        return CallChain(
            self._world,
            routes,
            own_paths=self._own_paths,
            resources=self._resources,
            policies=policies,
            rights=Rights(self._authorizer, self._escalation),
            enforced=enforced,
        )

    def _new_lanes(
        self, routes: Routes, policies: tuple[StoredPolicies, ...], streams: Streams
    ) -> Lanes:
        return Lanes(
            self._chain.answer,
            routes,
            self._store,
            policies=policies,
            webhooks=self._webhooks,
            gathering=Gathering(self._world, streams.stream("apiserver/webhooks")),
            durability=self._durability,
        )

    @property
    def store(self) -> Store:
        """All objects; for statistics and tests, not for writing."""
        return self._store

    async def handle(self, request: Request) -> Reply:
        """Answer one call; never raises an exception except cancellation.

        Where writes are kept on disk, an answer waits until every write in it is there.
        """
        received = self._audit.now() if self._audit is not None else ""
        reply = NOT_AWAITED
        try:
            answer = await self._reply(request)
            if self._durability.persistence is not None:
                answer = await self._durability.confirmed(request, answer, self._reply)
            reply = answer
        finally:
            if self._audit is not None:
                reply = self._audit.write_call(request, reply, received)
        return reply

    async def _reply(self, request: Request) -> Reply:
        """Answer a call in its lane, unless the disk has stopped the server."""
        persistence = self._durability.persistence
        if persistence is not None and persistence.stopped is not None:
            return status_reply(persistence.stopped)
        if self._expiry.due and self._lanes.thread.open.is_set():
            self._expiry.sweep()
        return await self._lanes.run(request)

    def answers_at_once(self, request: Request) -> bool:
        """Whether `answer_at_once` can answer a call: nothing in it takes long or waits."""
        if self._durability.persistence is not None or request.user is None:
            return False
        return not self._lanes.has_to_wait(request) and self._lanes.choose(request) is Lane.LOOP

    def answer_at_once(self, request: Request) -> Reply:
        """Answer a call without waiting, as `handle` would."""
        received = self._audit.now() if self._audit is not None else ""
        if self._expiry.due:
            self._expiry.sweep()
        reply = self._chain.answer(request)
        if self._audit is not None:
            reply = self._audit.write_call(request, reply, received)
        return reply

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
        """Write every call from now on to an audit log; a watch when it begins and when it ends."""
        self._audit = log

    def map_services(self, addresses: Mapping[str, str]) -> None:
        """Ask the webhooks of services (NAMESPACE/NAME) at these addresses (HOST:PORT)."""
        self._hook_addresses.by_service = addresses

    def use_sender(self, sender: Sender) -> None:
        """Send the reviews of webhooks by another way than over HTTPS."""
        self._lanes.gathering.sender = sender

    def control_time(self, timeline: Timeline) -> None:
        """Let an administrator stop and step the time of this server and of all that share it."""
        self._own_paths.timeline = timeline

    def keep_in(self, journal: Journal) -> Persistence:
        """Keep every write from now on in a journal, which has the same content as the store.

        Returns
        -------
        Persistence
            Has to be closed at the end.
        """
        persistence = Persistence(self._store, journal, on_undone=self._undone)
        self._durability.persistence = persistence
        self._namespaces.resume()
        self._addresses.load()
        self._definitions.register()
        return persistence

    def _undone(self, writes: list[Write]) -> None:
        """Rebuild the state that followed from writes that have been taken back."""
        self._durability.note_undone()
        self._authorizer.forget()
        for write in writes:
            if write.resource == DEFINITIONS and write.change.type == "ADDED":
                self._catalog.drop_custom(write.change.record.name)
        if any(write.resource in (DEFINITIONS, QUOTAS) for write in writes):
            self.reload()

    def use_thread(self) -> None:
        """Answer long calls in a thread from now on; called in the loop of all other calls."""
        thread = self._lanes.thread
        thread.start(self._durability.note_write)
        self._store.at_home = thread.at_home
        self._world.later = thread.later
        self._world.apart = thread.apart
        self._world.alone = thread.alone

    def close(self) -> None:
        """End all watch streams and all logs that are followed."""
        self._resources.close()
        self._lanes.close()


def _as_kept(entry: tuple[str, Record]) -> tuple[str, Record]:
    """Return an object of a journal as a server keeps it: the fields of Events are packed."""
    resource, record = entry
    if resource != EVENTS:
        return entry
    fields = packed(tuple(record.fields), tuple(record.fields.values()))
    return resource, msgspec.structs.replace(record, fields=fields)
