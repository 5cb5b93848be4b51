"""The verbs delete and deletecollection: at once, after a grace period, or after finalizers.

Only pods have a grace period: a pod on a node is marked, and the node agent deletes it for good
after it has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

import msgspec

from moorage.base.clock import NS_PER_SECOND, parse_rfc3339, rfc3339
from moorage.kinds.cluster.namespace import PERMANENT
from moorage.kinds.kind import Obj, invalid, not_supported
from moorage.kinds.status import (
    StatusError,
    bad_request,
    conflict,
    forbidden,
    invalid_options,
    unsupported_media_type,
)
from moorage_sandbox.apiserver.catalog import Served, Target
from moorage_sandbox.apiserver.verbs.reading import get_record
from moorage_sandbox.apiserver.verbs.write_options import dry_run_faults
from moorage_sandbox.apiserver.webhooks.answers import current_answers
from moorage_sandbox.apiserver.wire.bodies import decode_json
from moorage_sandbox.apiserver.wire.negotiate import JSON, SPOKEN_BUILT_IN, content_type
from moorage_sandbox.apiserver.wire.requests import Query, Request
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record

PODS = "pods"
NAMESPACES = "namespaces"
_POLICIES = frozenset({"", "Background", "Foreground", "Orphan"})
_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
# Kinds whose pods stay unless the caller says otherwise, for the sake of old clients
# (kubernetes v1.36 DefaultGarbageCollectionPolicy of pkg/registry).
_ORPHANING = frozenset({"jobs.batch", "replicationcontrollers"})


# Objects that one step deletes. A pod takes about 60 microseconds (2-core machine, 2026-11-28), so
# that others wait for a millisecond; the way to the loop and back takes half of one.
_TOGETHER_MAX = 16
_TOGETHER_BYTES_MAX = 64 * 1024

Check = Callable[[Served, Record], None]
"""Called before an object is deleted; it may refuse that."""


class Preconditions(msgspec.Struct, frozen=True, rename="camel"):
    """Conditions that an object must meet to be deleted; empty means none."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The options of a delete (``meta/v1 DeleteOptions``).

    Parameters
    ----------
    grace_period_seconds
        None for the default of the object.
    preconditions
        Conditions checked first.
    propagation_policy
        Treatment of dependents; a finalizer tells the garbage collector, which is a client.
    orphan_dependents
        The older form of the policy; `options_of` turns it into a policy.
    dry_run
        ``("All",)``: change nothing.
    """

    grace_period_seconds: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    preconditions: Preconditions = Preconditions()
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    dry_run: tuple[str, ...] = ()


class Deleted(msgspec.Struct, frozen=True):
    """The result of a delete: the last state, and whether the object is gone."""

    record: Record
    gone: bool


def read_options(request: Request, query: Query) -> DeleteOptions:
    """Read DeleteOptions from the body, or from the query where there is none.

    Raises
    ------
    StatusError
        400: not DeleteOptions. 415: another form.
    """
    raw: Any = {}
    if request.body:
        if content_type(request.headers.get("content-type", "")) not in {"", JSON}:
            raise unsupported_media_type(SPOKEN_BUILT_IN)
        raw = decode_json(request)
    if not isinstance(raw, dict):
        raise bad_request("the body of a delete must be DeleteOptions")
    if (kind := raw.get("kind", "DeleteOptions")) != "DeleteOptions":
        raise bad_request(f"the body of a delete must be DeleteOptions, not {kind}")
    grace = query.whole("gracePeriodSeconds")
    if grace is not None:
        raw.setdefault("gracePeriodSeconds", grace)
    if query.text("orphanDependents"):
        raw.setdefault("orphanDependents", query.flag("orphanDependents"))
    for name in ("propagationPolicy", "dryRun"):
        if query.text(name):
            raw.setdefault(name, [query.text(name)] if name == "dryRun" else query.text(name))
    return options_of(raw)


def options_of(raw: dict[str, Any]) -> DeleteOptions:
    """Read decoded DeleteOptions.

    Raises
    ------
    StatusError
        400: not DeleteOptions. 422: its fields are invalid or contradict each other.
    """
    raw = {name: value for name, value in raw.items() if value is not None}
    try:
        options = msgspec.convert(raw, DeleteOptions)
    except msgspec.ValidationError as error:
        raise bad_request(f"DeleteOptions cannot be read: {error}") from error
    field, policy, orphan = (
        "propagationPolicy",
        options.propagation_policy,
        options.orphan_dependents,
    )
    errors = []
    if policy and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid(field, policy, why))
    if (policy or "") not in _POLICIES:
        errors.append(not_supported(field, policy, [*filter(None, _POLICIES), "nil"]))
    errors += dry_run_faults(options.dry_run)
    if errors:
        raise invalid_options("DeleteOptions", errors)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
        return msgspec.structs.replace(options, propagation_policy=policy)
    return options


class Deleter:
    """Deletes objects.

    Parameters
    ----------
    world
        Holds the objects.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        # Called with (namespace) after an object of a namespace has gone.
        self.on_gone: Callable[[str], None] = lambda namespace: None
        # Called with (name) after a namespace has begun to terminate.
        self.on_terminating: Callable[[str], None] = lambda name: None

    def delete_object(
        self,
        target: Target,
        options: DeleteOptions,
        check: Check | None = None,
    ) -> Deleted:
        """Delete one object, or begin to; ``check`` may refuse it once the preconditions hold.

        Raises
        ------
        StatusError
            404: not there. 409: a precondition does not hold. 403: a namespace that stays.
        """
        served = target.served
        record = get_record(self._world.store, target)
        wanted = options.preconditions
        if why := precondition_fault(record, wanted.uid, wanted.resource_version):
            raise conflict(served.kind.resource, record.name, why)
        if check is not None:
            check(served, record)
        obj = record.decode()
        if served.shelf == NAMESPACES:
            return self._delete_namespace(served, record, obj, dry_run=bool(options.dry_run))
        grace = _grace_seconds(obj, options) if served.shelf == PODS else 0
        meta = obj["metadata"]
        if _note_propagation(served, meta, options) and _only_waits(meta, grace):
            return self._store(served, record, obj, options)
        if grace and meta.get("deletionTimestamp") and not _shorter(meta, options):
            # The deletion has begun, and this call does not shorten its grace period.
            return Deleted(record, gone=False)
        finalizers = meta.get("finalizers")
        if not grace and not finalizers:
            return self._remove(served, record, obj, dry_run=bool(options.dry_run))
        if not grace and meta.get("deletionGracePeriodSeconds") == 0:
            # The object waits for its finalizers only.
            return Deleted(record, gone=False)
        self._mark(meta, grace)
        return self._store(served, record, obj, options)

    def delete_all(
        self,
        served: Served,
        records: Iterable[Record],
        options: DeleteOptions,
        check: Check | None = None,
    ) -> list[Record]:
        """Delete many objects, a few in each step; return the last state of each.

        Objects that have gone meanwhile are left out, as upstream's deletion of a collection does.

        Raises
        ------
        StatusError
            As `delete_object`, for the first object that may not be deleted.
        """
        answers = None if check is None else current_answers()
        # Some may have been deleted before a webhook had to be asked about the next one.
        deleted = [] if answers is None else answers.deleted
        gone = {each.uid for each in deleted}
        left = (each for each in records if each.uid not in gone)
        for few in _batches(left, _TOGETHER_MAX if check is None else 1):
            work = partial(self._few, served, few, options, check)
            # A check may take long, and so may decoding a large object: neither is done in a step.
            if check is None and len(few[0].data) <= _TOGETHER_BYTES_MAX:
                work = partial(self._world.run_in_one_step, work)
            deleted += self._world.one_by_one(work)
        return deleted

    def _few(
        self,
        served: Served,
        records: Iterable[Record],
        options: DeleteOptions,
        check: Check | None,
    ) -> list[Record]:
        deleted = []
        for each in records:
            target = Target(served=served, namespace=each.namespace, name=each.name)
            try:
                deleted.append(self.delete_object(target, options, check).record)
            except StatusError as error:
                if error.code != HTTPStatus.NOT_FOUND:
                    raise
        return deleted

    def _store(self, served: Served, record: Record, obj: Obj, options: DeleteOptions) -> Deleted:
        if options.dry_run:
            return Deleted(record, gone=False)
        return Deleted(self._world.store_form(served, obj), gone=False)

    def finish(self, served: Served, record: Record, stored: Obj) -> Record:
        """Remove an object after an update removed its last finalizer."""
        return self._world.run_in_one_step(lambda: self._gone(served, record, stored))

    def _gone(self, served: Served, record: Record, last: Obj) -> Record:
        gone = self._world.remove(served, record.key, last)
        self.on_gone(record.namespace)
        return gone

    def _remove(self, served: Served, record: Record, obj: Obj, *, dry_run: bool) -> Deleted:
        if dry_run:
            return Deleted(record, gone=True)
        meta = obj["metadata"]
        if served.shelf == PODS and meta.get("deletionTimestamp"):
            meta["deletionGracePeriodSeconds"] = 0
        gone = self._world.run_in_one_step(lambda: self._gone(served, record, obj))
        return Deleted(gone, gone=True)

    def _mark(self, meta: Obj, grace_seconds: int) -> None:
        """Set the deletion time, in place: the end of the grace period."""
        now_ns = self._world.clock.now_ns()
        if meta.get("deletionTimestamp"):
            # A shorter period counts from when the deletion was first asked for.
            old_ns = parse_rfc3339(meta["deletionTimestamp"])
            now_ns = old_ns - int(meta.get("deletionGracePeriodSeconds") or 0) * NS_PER_SECOND
        meta["deletionTimestamp"] = rfc3339(now_ns + grace_seconds * NS_PER_SECOND)
        meta["deletionGracePeriodSeconds"] = grace_seconds
        # A generation counts changes of the desired state, and a deletion is such a change.
        if "generation" in meta:
            meta["generation"] += 1

    def _delete_namespace(
        self, served: Served, record: Record, obj: Obj, *, dry_run: bool
    ) -> Deleted:
        if record.name in PERMANENT:
            why = "this namespace may not be deleted"
            raise forbidden(served.kind.resource, record.name, why)
        meta = obj["metadata"]
        if not meta.get("deletionTimestamp"):
            meta["deletionTimestamp"] = rfc3339(self._world.clock.now_ns())
            obj.setdefault("status", {})["phase"] = "Terminating"
            if dry_run:
                return Deleted(record, gone=False)
            record = self._world.store_form(served, obj)
        if not dry_run:
            # Asked again, too: the remaining finalizers may have gone by now.
            self.on_terminating(record.name)
        return Deleted(record, gone=False)


def _batches(records: Iterable[Record], most: int) -> Iterator[list[Record]]:
    """Yield a few records at a time: at most so many, and few bytes."""
    few: list[Record] = []
    size = 0
    for each in records:
        if few and (len(few) >= most or size + len(each.data) > _TOGETHER_BYTES_MAX):
            yield few
            few, size = [], 0
        few.append(each)
        size += len(each.data)
    if few:
        yield few


def _note_propagation(served: Served, meta: Obj, options: DeleteOptions) -> bool:
    """Set the finalizers for the treatment of dependents; return whether they are new.

    Notes
    -----
    kubernetes v1.36 staging/src/k8s.io/apiserver registry/generic/registry/store.go
    (deletionFinalizersForGarbageCollection): without a policy, the policy of an earlier call stays.
    """
    before = list(meta.get("finalizers") or [])
    policy = options.propagation_policy or ""
    if not policy:
        if any(each in before for each in _FINALIZERS.values()):
            return False
        policy = "Orphan" if served.shelf in _ORPHANING else "Background"
    after = [each for each in before if each not in _FINALIZERS.values()]
    if policy in _FINALIZERS:
        after.append(_FINALIZERS[policy])
    if after == before:
        return False
    meta["finalizers"] = after
    if not after:
        del meta["finalizers"]
    return True


def _only_waits(meta: Obj, grace_seconds: int) -> bool:
    """Whether an object is being deleted already, and waits only for its finalizers."""
    return bool(not grace_seconds and meta.get("deletionTimestamp") and meta.get("finalizers"))


def precondition_fault(record: Record, uid: str | None, version: str | None) -> str:
    """Return why a record does not meet preconditions, "" where it does; None is no condition."""
    if uid is not None and uid != record.uid:
        return (
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({record.uid}). The object might have been deleted and then recreated"
        )
    if version is not None and version != str(record.version):
        return (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({record.version}). The object might have been modified"
        )
    return ""


def _grace_seconds(pod: Obj, options: DeleteOptions) -> int:
    """Return a pod's grace period (kubernetes v1.36 pkg/registry/core/pod/strategy.go)."""
    spec = pod.get("spec") or {}
    phase = (pod.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in {"Failed", "Succeeded"}:
        return 0
    grace = options.grace_period_seconds
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds") or 0
    return 1 if grace < 0 else int(grace)


def _shorter(meta: Obj, options: DeleteOptions) -> bool:
    """Whether a repeated delete shortens the grace period."""
    asked = options.grace_period_seconds
    if asked is None:
        return False
    return (1 if asked < 0 else asked) < int(meta.get("deletionGracePeriodSeconds") or 0)
