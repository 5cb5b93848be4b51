"""The verbs create, update and patch.

Each verb runs the kind's rules in the order of `kind` and stores the result. Update and patch
differ only in the source of the new object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from moorage.base.clock import rfc3339
from moorage.kinds.kind import Obj, invalid
from moorage.kinds.status import StatusError, already_exists, conflict, modified
from moorage.kinds.status import invalid as invalid_object
from moorage_sandbox.apiserver.admission.checks import Admission
from moorage_sandbox.apiserver.admission.namespaces import Namespaces
from moorage_sandbox.apiserver.catalog import EVENTS, Served, Target
from moorage_sandbox.apiserver.expiry import EventExpiry
from moorage_sandbox.apiserver.verbs.applying.calls import (
    manager_name,
    read_configuration,
    refresh_last_applied,
)
from moorage_sandbox.apiserver.verbs.applying.managers import (
    Writing,
    applied,
    without_new_times,
)
from moorage_sandbox.apiserver.verbs.applying.notes import NOTED, note
from moorage_sandbox.apiserver.verbs.applying.updates import created, updated
from moorage_sandbox.apiserver.verbs.applying.versions import Version
from moorage_sandbox.apiserver.verbs.deleting import NAMESPACES, Deleter
from moorage_sandbox.apiserver.verbs.metadata import (
    agree_with_path,
    check_never_stored,
    drop_system_fields,
    generate_name,
    keep_system_fields,
    object_version,
    stamp_new,
)
from moorage_sandbox.apiserver.verbs.patches import APPLY_PATCH, apply_patch, patch_type
from moorage_sandbox.apiserver.verbs.reading import get_record
from moorage_sandbox.apiserver.verbs.write_options import check_options
from moorage_sandbox.apiserver.wire.bodies import (
    Sent,
    are_small,
    check_fields,
    check_kind,
    decode_json,
    decode_object,
)
from moorage_sandbox.apiserver.wire.requests import Query, Request
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record, unsaved_record

# Objects that make admission change pods, of all namespaces.
_CHANGING = (("mutatingadmissionpolicies", ""), ("mutatingwebhookconfigurations", ""))

# Attempts to find a free generated name, as upstream (apiserver v1.36 registry/generic).
_NAME_TRIES = 8


class Written(msgspec.Struct, frozen=True):
    """The object after the call, warnings for the client, and whether the object is new."""

    record: Record
    warnings: list[str]
    created: bool = False


class Writer:
    """Creates and changes objects.

    Parameters
    ----------
    world
        Receives the writes.
    deleter
        Removes objects that lose their last finalizer.
    namespaces
        Refuses new objects in missing or terminating namespaces.
    expiry
        Expires Events; learns of written Events.
    admission
        Called before an object is stored.
    """

    def __init__(
        self,
        world: World,
        *,
        deleter: Deleter,
        namespaces: Namespaces,
        expiry: EventExpiry,
        admission: Admission,
    ) -> None:
        self._world = world
        self._deleter = deleter
        self._namespaces = namespaces
        self._expiry = expiry
        self._admission = admission

    def create(self, target: Target, request: Request, query: Query) -> Written:
        """Store a new object.

        Raises
        ------
        StatusError
            400, 403, 404, 409, 413, 415, 422 as in Kubernetes; 500 for an object with a
            resourceVersion.
        """
        obj, sent = decode_object(request, target.served.kind.resource)
        warnings = check_fields(obj, target.served.kind, query, sent)
        check_never_stored(obj)
        warnings += target.served.kind.warnings(obj, new=True)
        managed = partial(self._first_managers, target, request, query)
        made = self.create_object(target, obj, dry_run=query.dry_run, managed=managed)
        return Written(made, warnings)

    def create_object(
        self,
        target: Target,
        obj: Obj,
        *,
        dry_run: bool = False,
        managed: list[Obj] | Callable[[Obj], list[Obj]] | None = None,
    ) -> Record:
        """Store a new object whose fields have been checked; ``obj`` is changed.

        Parameters
        ----------
        target
            Path of the collection, or of the object.
        obj
            The client's object.
        dry_run
            Check everything, but store nothing.
        managed
            Its ``managedFields``, or a function of the object that returns them; None for an object
            that the server makes.

        Raises
        ------
        StatusError
            400, 403, 404, 409, 422 as in Kubernetes.
        """
        served, kind, world = target.served, target.served.rules, self._world
        agree_with_path(obj, target)
        obj = served.to_ruled(obj)
        meta = obj["metadata"]
        drop_system_fields(meta)
        sent_name = meta.get("name") or ""
        if kind.resource.namespaced:
            self._namespaces.check_open(target.namespace, kind.resource, sent_name)
        _set_managed(obj, managed(served.served_from_ruled(obj)) if callable(managed) else managed)
        admitted = self._admission.mutated(served, obj, None, dry_run=dry_run)
        if admitted is not obj:
            # A policy or a webhook has made another object of it.
            obj = admitted
            agree_with_path(obj, target)
            drop_system_fields(obj["metadata"])
        meta = obj["metadata"]
        # Nobody sees the name that the server makes, the uid and the time before this.
        self._name(target, meta)
        stamp_new(obj, world.clock, world.rng)
        kind.prepare_create(obj, world)
        errors = kind.validate(obj, None, subresource=None)
        if errors:
            raise invalid_object(kind.resource, meta.get("name") or "", errors)
        self._admission.admit_object(served, obj, None, dry_run=dry_run)
        self._admission.check_webhooks(served, (obj, None), name=sent_name, dry_run=dry_run)
        served.prepare_write(obj)
        return world.run_in_one_step(lambda: self._store_new(served, obj, dry_run=dry_run))

    def _store_new(self, served: Served, obj: Obj, *, dry_run: bool) -> Record:
        """Store a new object if its name is free and the quotas of its namespace allow it."""
        self._admission.check_quotas(served, obj, None)
        meta = obj["metadata"]
        key = (meta.get("namespace") or "", meta["name"])
        if self._world.store.shelf(served.shelf).get(key) is not None:
            raise already_exists(served.rules.resource, meta["name"])
        return self._save(served, obj, dry_run=dry_run)

    def update(self, target: Target, request: Request, query: Query) -> Written:
        """Replace an object, or its status, by the object in the body; it may create the object.

        Raises
        ------
        StatusError
            400, 403, 404, 409, 413, 415, 422 as in Kubernetes.
        """
        kind = target.served.kind
        check_options(query, "UpdateOptions")
        new, sent = decode_object(request, kind.resource)
        creates = kind.created_by_put and self._is_missing(target)
        warnings = check_fields(new, kind, query, sent)
        if creates or not target.subresource:
            warnings += kind.warnings(new, new=creates)
        if creates:
            # Also from a status: upstream's strategy of the status is that of the object otherwise.
            managed = partial(self._first_managers, target, request, query)
            made = self._create_by_put(target, new, managed, dry_run=query.dry_run)
            return Written(made, warnings, created=True)
        record = get_record(self._world.store, target)
        later = partial(self._writing, target, request, query)
        return Written(self._replace(target, record, new, later, query.dry_run), warnings)

    def patch(self, target: Target, request: Request, query: Query) -> Written:
        """Change an object, or its status, by a patch; an apply may create the object.

        Raises
        ------
        StatusError
            As for update; 422 when a JSON patch does not fit.
        """
        served = target.served
        type_name = patch_type(request.headers.get("content-type", ""), served.kind)
        check_options(query, "PatchOptions", apply=type_name == APPLY_PATCH)
        if type_name == APPLY_PATCH:
            return self._apply(target, request, query)
        patch = decode_json(request)
        record = get_record(self._world.store, target)
        # A shown Event has nulls, which are not values; the patch may add some.
        shown = served.served_form(record)
        old = {key: value for key, value in shown.items() if value is not None}
        small = are_small(record.data, request.body)
        patched = apply_patch(old, patch, type_name, served.kind, small=small)
        new = check_kind(patched, served.kind.resource)
        sent = Sent(request.body, patch)
        warnings = check_fields(new, served.kind, query, sent)
        if not target.subresource:
            warnings += served.kind.warnings(new, new=False)
        writing = partial(self._writing, target, request, query)
        return Written(self._replace(target, record, new, writing, query.dry_run), warnings)

    def rewrite(self, target: Target, new: Obj, request: Request, query: Query) -> Record:
        """Replace an object by a changed one, for a call to one of its subresources.

        Raises
        ------
        StatusError
            As for update.
        """
        whole = Target(served=target.served, namespace=target.namespace, name=target.name)
        record = get_record(self._world.store, whole)
        writing = partial(self._writing, target, request, query)
        return self._replace(whole, record, new, writing, query.dry_run)

    def _apply(self, target: Target, request: Request, query: Query) -> Written:
        """Apply a configuration: create the object, or change the fields of the caller."""
        kind = target.served.kind
        sent = read_configuration(request)
        config = check_kind(sent.decoded, kind.resource)
        warnings = check_fields(config, kind, query, sent, applied=True)
        creates = not target.subresource and self._is_missing(target)
        if not target.subresource:
            warnings += kind.warnings(config, new=creates)
        agree_with_path(config, target)
        if creates:
            self._admission.check_may_create()
            writing, dry_run = self._writing(target, request, query), query.dry_run
            new, managed = applied(None, config, writing, force=False)
            made = self.create_object(target, new, dry_run=dry_run, managed=managed)
            return Written(made, warnings, created=True)
        return Written(self.apply_stored(target, config, request, query), warnings)

    def apply_stored(
        self, target: Target, config: Obj, request: Request, query: Query, *, scale: bool = False
    ) -> Record:
        """Change the caller's fields of a stored object; also for a call to its scale.

        Raises
        ------
        StatusError
            As for patch; 404: no such object.
        """
        writing = self._writing(target, request, query)
        if scale:
            target = Target(served=target.served, namespace=target.namespace, name=target.name)
        record = get_record(self._world.store, target)
        live = target.served.served_form(record)
        # Fields that only the server writes cannot belong to the caller.
        wanted = {key: config["metadata"].pop(key, None) for key in ("uid", "resourceVersion")}
        new, managed = applied(live, config, writing, force=query.flag("force"))
        if not scale:
            refresh_last_applied(new, config, writing.manager)
        new["metadata"] = new["metadata"] | {"managedFields": managed}
        new["metadata"] |= {key: value for key, value in wanted.items() if value}
        return self._replace(target, record, new, None, query.dry_run)

    def _is_missing(self, target: Target) -> bool:
        """Whether no object of the path's name is stored."""
        shelf = self._world.store.shelf(target.served.shelf)
        return shelf.get((target.namespace, target.name)) is None

    def _create_by_put(
        self, target: Target, obj: Obj, managed: Callable[[Obj], list[Obj]], *, dry_run: bool
    ) -> Record:
        """Store the object of a PUT to a name without one; ``obj`` is changed.

        Notes
        -----
        apiserver v1.36 pkg/registry/generic/registry/store.go, Update: a uid is a precondition, and
        the version of an object that has gone is ignored.
        """
        agree_with_path(obj, target)
        if uid := obj["metadata"].get("uid"):
            raise _other_uid(target, uid, "")
        self._admission.check_may_create()
        return self.create_object(target, obj, dry_run=dry_run, managed=managed)

    def _first_managers(
        self, target: Target, request: Request, query: Query, obj: Obj
    ) -> list[Obj]:
        """Return ``managedFields`` of an object that a client makes."""
        served = target.served
        if served.shelf not in NOTED or self._is_changed_by_admission(target, obj):
            return created(obj, self._writing(target, request, query))
        now = rfc3339(self._world.clock.now_ns())
        return [note(manager_name(request, query), served.kind.resource.api_version, now)]

    def _is_changed_by_admission(self, target: Target, obj: Obj) -> bool:
        """Whether admission may write into a new pod or Event what it does not write into each."""
        if target.served.shelf == EVENTS:
            return False
        shelf, namespace = self._world.shelf, target.namespace
        return bool((obj.get("spec") or {}).get("runtimeClassName")) or any(
            next(shelf(plural).records(where), None) is not None
            for plural, where in (("limitranges", namespace), *_CHANGING)
        )

    def _writing(self, target: Target, request: Request, query: Query) -> Writing:
        """Return the data of a call that managers of fields need."""
        served = target.served
        return Writing(
            manager=manager_name(request, query),
            version=_version_of(served),
            find=partial(self._find_version, served),
            subresource=target.subresource,
            has_status="status" in served.kind.subresources,
            now=rfc3339(self._world.clock.now_ns()),
            noted=served.shelf in NOTED,
        )

    def _find_version(self, served: Served, api_version: str) -> Version | None:
        other = self._world.catalog.get(api_version, served.kind.resource.plural)
        return _version_of(other) if other and other.shelf == served.shelf else None

    def _replace(
        self,
        target: Target,
        record: Record,
        new: Obj,
        writing: Callable[[], Writing] | None,
        dry_run: bool,
    ) -> Record:
        """Run the rules of an update and store the result, unless nothing has changed.

        ``writing`` returns the data of the write, and is called only where managers are recorded.
        ``writing`` is None for an apply, which has already computed the owners of the fields.
        """
        served, kind = target.served, target.served.rules
        sent = new["metadata"].get("managedFields")
        _check_preconditions(target, record, new["metadata"])
        agree_with_path(new, target)
        old = served.ruled(record)
        subresource = target.subresource or None
        new = served.to_ruled(new, status=subresource == "status")
        keep_system_fields(new, old)
        new["metadata"]["resourceVersion"] = str(record.version)
        managed, of_part = sent, subresource in kind.parts
        if writing is not None and not of_part:
            # Fields that admission or the kind changes belong to nobody.
            managed = _tracked(served, old, new, sent, writing)
        part = subresource or ""
        admitted = self._admission.mutated(served, new, old, subresource=part, dry_run=dry_run)
        if admitted is not new:
            new = admitted
            agree_with_path(new, target)
            keep_system_fields(new, old)
        kind.prepare_update(new, old, subresource=subresource, ctx=self._world)
        if writing is not None and of_part:
            # Only now are the fields outside of the part those of the old object.
            managed = _tracked(served, old, new, sent, writing)
        errors = kind.validate(new, old, subresource=subresource)
        if errors:
            raise invalid_object(kind.resource, target.name, errors)
        if writing is None:
            managed = without_new_times(managed or [], old, new)
        _set_managed(new, managed)
        if new != old:
            self._admission.check_update(served, new, old, subresource=part, dry_run=dry_run)
        self._admission.check_webhooks(
            served, (new, old), subresource=part, name=record.name, dry_run=dry_run
        )
        if new == old:
            return record
        served.prepare_write(new)
        return self._world.run_in_one_step(
            lambda: self._store_changed(served, record, (new, old), subresource, dry_run=dry_run)
        )

    def _store_changed(
        self,
        served: Served,
        record: Record,
        change: tuple[Obj, Obj],
        subresource: str | None,
        *,
        dry_run: bool,
    ) -> Record:
        """Store a changed object if the quotas of its namespace allow it; it may end so."""
        new, old = change
        if subresource in (None, "resize"):
            self._admission.check_quotas(served, new, old)
        if served.shelf == NAMESPACES and not dry_run:
            # A namespace that is being deleted also waits for its contents.
            saved = self._save(served, new, dry_run=False)
            self._namespaces.remove_if_empty(saved.name)
            return saved
        if dry_run or not _ends(new["metadata"]):
            return self._save(served, new, dry_run=dry_run)
        return self._deleter.finish(served, record, served.stored_from_ruled(new))

    def _save(self, served: Served, obj: Obj, *, dry_run: bool) -> Record:
        stored = served.stored_from_ruled(obj)
        if dry_run:
            return unsaved_record(stored)
        record = self._world.store_form(served, stored)
        if served.shelf == EVENTS:
            self._expiry.written(record)
        return record

    def _name(self, target: Target, meta: Obj) -> None:
        """Draw a free name where only a prefix was sent, in place."""
        prefix = meta.get("generateName")
        if meta.get("name") or not isinstance(prefix, str) or not prefix:
            return
        shelf = self._world.store.shelf(target.served.shelf)
        for _ in range(_NAME_TRIES):
            meta["name"] = generate_name(prefix, self._world.rng)
            if shelf.get((meta.get("namespace") or "", meta["name"])) is None:
                return


def _version_of(served: Served) -> Version:
    kind = served.kind
    layout = kind.shape.layout()
    return Version(kind.resource.api_version, layout, served.to_stored, served.from_stored)


def _tracked(
    served: Served, old: Obj, new: Obj, sent: list[Obj] | None, writing: Callable[[], Writing]
) -> list[Obj] | None:
    """Return ``managedFields`` after an update; None where no managers are recorded."""
    if "managedFields" not in old["metadata"]:
        return None
    return updated(served.served_from_ruled(old), served.served_from_ruled(new), sent, writing())


def _set_managed(new: Obj, managed: list[Obj] | None) -> None:
    """Write ``managedFields`` into an object, in place."""
    new["metadata"].pop("managedFields", None)
    if managed:
        # The metadata may be shared with the old object.
        new["metadata"] = new["metadata"] | {"managedFields": managed}


def _needs_version(served: Served) -> bool:
    return served.custom or served.kind.needs_version


def _check_preconditions(target: Target, record: Record, meta: Obj) -> None:
    uid = meta.get("uid")
    if uid and uid != record.uid:
        raise _other_uid(target, uid, record.uid)
    _check_version(target, record, object_version(meta))


def _check_version(target: Target, record: Record, version: int) -> None:
    """Compare the version of an update with the stored version; 0 stands for no version.

    Notes
    -----
    apiserver v1.36 pkg/registry/generic/registry/store.go, Update.
    """
    resource = target.served.kind.resource
    if version:
        if version != record.version:
            raise modified(resource, target.name)
    elif _needs_version(target.served):
        fault = invalid("metadata.resourceVersion", 0, "must be specified for an update")
        # Upstream names the resource here, and the kind in every other error.
        called = msgspec.structs.replace(resource, kind=resource.plural)
        raise invalid_object(called, target.name, [fault])


def _other_uid(target: Target, wanted: str, stored: str) -> StatusError:
    """409: the object with the wanted uid has gone."""
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {stored}"
    return conflict(target.served.kind.resource, target.name, why)


def _ends(meta: Obj) -> bool:
    """Whether an object is being deleted, and no finalizer or grace period holds it."""
    return bool(
        meta.get("deletionTimestamp")
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
    )
