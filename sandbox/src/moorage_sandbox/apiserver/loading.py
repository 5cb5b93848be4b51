"""Loading another cluster's objects unchanged: the calls of `moorage snapshot load`.

The only path of this server, besides `time_control`, that Kubernetes does not have. Objects keep
their uid, times, status and node, so owner references stay true. All other calls but leases wait
while the objects are stored, so no controller reads an incomplete cluster and repairs it. Clients
send objects in pieces, which are checked on arrival. The last call stores them. Only administrators
may make these calls.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import msgspec

from moorage.kinds.kind import Obj, invalid
from moorage.kinds.status import StatusError, bad_request, method_not_allowed
from moorage.kinds.status import invalid as invalid_object
from moorage_sandbox.apiserver.catalog import EVENTS, Served
from moorage_sandbox.apiserver.verbs.applying.managers import read_managers, write_managers
from moorage_sandbox.apiserver.verbs.applying.notes import are_notes, note
from moorage_sandbox.apiserver.verbs.metadata import drop_system_fields, stamp_new
from moorage_sandbox.apiserver.wire.bodies import Sent, check_fields, check_kind
from moorage_sandbox.apiserver.wire.render import encode
from moorage_sandbox.apiserver.wire.requests import Query, Reply, Request
from moorage_sandbox.apiserver.world import World

SNAPSHOT_PATH = "/moorage.dev/v1/snapshot"

_MASTERS = "system:masters"
_SERVER_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_IGNORE_UNKNOWN = Query((("fieldValidation", "Ignore"),))


class Piece(msgspec.Struct, kw_only=True, rename="camel"):
    """The body of one call.

    Parameters
    ----------
    begin
        Forget the pieces sent before and not stored.
    objects
        Objects with apiVersion and kind.
    store
        Store all pieces sent since the beginning.
    """

    begin: bool = False
    objects: list[dict[str, Any]] = []
    store: bool = False


class Fault(msgspec.Struct, frozen=True):
    """An object that cannot be loaded, and the reason."""

    kind: str
    namespace: str
    name: str
    message: str


class Answer(msgspec.Struct, kw_only=True, rename="camel"):
    """The answer to a call, about the objects of this call.

    Parameters
    ----------
    stored
        Number of objects stored by this call.
    present
        Number of objects whose name is taken; the existing object stays as it is.
    left_out
        Number of objects of kinds not served, by ``kind.apiVersion``; Events are left out as well.
    faults
        The objects refused.
    """

    stored: int = 0
    present: int = 0
    left_out: dict[str, int] = {}
    faults: list[Fault] = []


_decode_piece = msgspec.json.Decoder(Piece).decode


class Loader:
    """Checks and stores the objects of a snapshot.

    Parameters
    ----------
    world
        Receives the objects.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        # (shelf, namespace, name) -> the served resource, and the object in its stored form.
        self._staged: dict[tuple[str, str, str], tuple[Served, Obj]] = {}

    def load_piece(self, request: Request) -> Reply:
        """Take one piece.

        Raises
        ------
        StatusError
            403: not an administrator. 400: not a piece. 405: another method than POST.
        """
        if request.user is None or _MASTERS not in request.user.groups:
            raise StatusError(403, "Forbidden", f"only {_MASTERS} may load a snapshot")
        if request.method != "POST":
            raise method_not_allowed()
        try:
            piece = _decode_piece(request.body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise bad_request(f"not a piece of a snapshot: {error}") from error
        if piece.begin:
            self._staged.clear()
        answer = Answer()
        left_out: Counter[str] = Counter()
        for obj in piece.objects:
            try:
                self._stage(obj, answer, left_out)
            except StatusError as error:
                answer.faults.append(_fault(obj, error))
        answer.left_out = dict(sorted(left_out.items()))
        if piece.store:
            answer.stored = len(self._staged)
            with self._world.alone():
                for served, stored in self._staged.values():
                    self._world.one_by_one(partial(self._world.store_form, served, stored))
            self._staged.clear()
        return Reply(status=200, body=encode(answer) + b"\n")

    def _stage(self, obj: Obj, answer: Answer, left_out: Counter[str]) -> None:
        served = self._world.catalog.by_kind(obj.get("apiVersion"), obj.get("kind"))
        if served is None or served.shelf == EVENTS:
            left_out[f"{obj.get('kind', '')}.{obj.get('apiVersion', '')}"] += 1
            return
        kind = served.kind
        obj = check_kind(obj, kind.resource)
        check_fields(obj, kind, _IGNORE_UNKNOWN, Sent(b"", obj))
        meta = obj["metadata"]
        name = meta.get("name") or ""
        if not name:
            raise invalid_object(kind.resource, "", [invalid("metadata.name", "", "is missing")])
        if kind.resource.namespaced:
            meta["namespace"] = meta.get("namespace") or "default"
        key = (served.shelf, meta.get("namespace") or "", name)
        if key in self._staged or self._world.store.shelf(key[0]).get(key[1:]) is not None:
            answer.present += 1
            return
        fields = {field: meta[field] for field in _SERVER_FIELDS if meta.get(field)}
        managed = meta.pop("managedFields", None)
        ruled = served.to_ruled(obj)
        meta = ruled["metadata"]
        drop_system_fields(meta)
        stamp_new(ruled, self._world.clock, self._world.rng)
        meta |= fields
        errors = served.rules.validate(ruled, None, subresource=None)
        if errors:
            raise invalid_object(kind.resource, name, errors)
        if managed := _readable(managed):
            meta["managedFields"] = managed
        self._staged[key] = (served, served.stored_from_ruled(ruled))


def _readable(managed: Any) -> list[Obj]:
    """Return ``managedFields`` of another cluster as this server writes them; none if malformed."""
    try:
        if are_notes(managed):
            names = ("manager", "apiVersion", "time", "subresource")
            return [note(*(str(each.get(name, "")) for name in names)) for each in managed]
        return write_managers(read_managers(managed))
    except (ValueError, AttributeError, TypeError):
        return []


def _fault(obj: Obj, error: StatusError) -> Fault:
    meta = obj.get("metadata")
    names = meta if isinstance(meta, dict) else {}
    return Fault(
        str(obj.get("kind", "")),
        str(names.get("namespace") or ""),
        str(names.get("name") or ""),
        error.message,
    )
