"""The subresource scale: the number of replicas of any object, in one form.

Place in the flow: `server` answers ``.../scale`` here. A write goes through the update of the
object itself, with its rules. Mirrors kubernetes v1.36 pkg/registry/apps/deployment/storage
(ScaleREST) and apiextensions-apiserver pkg/registry/customresource (scale).
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api.patch_operations import merge_patch
from moorage.api.resources import DEPLOYMENTS
from moorage.kinds.built_in import subresource_body
from moorage.kinds.cells import AGE, NAME, NONE, count, format_selector
from moorage.kinds.facts import is_built_in
from moorage.kinds.json_patch import json_patch
from moorage.kinds.kind import Obj, ScalePaths, invalid
from moorage.kinds.served import ServedKind
from moorage.kinds.status import bad_request, unsupported_media_type
from moorage.kinds.status import invalid as invalid_object
from moorage.kinds.tree import number
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.verbs.applying.calls import read_configuration
from moorage_sandbox.apiserver.verbs.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from moorage_sandbox.apiserver.verbs.reading import get_record
from moorage_sandbox.apiserver.verbs.write_options import Options, check_options
from moorage_sandbox.apiserver.verbs.writing import Writer
from moorage_sandbox.apiserver.webhooks.bodies import BodyReviews
from moorage_sandbox.apiserver.wire.bodies import decode_json, typed
from moorage_sandbox.apiserver.wire.negotiate import JSON, SPOKEN_BUILT_IN, content_type
from moorage_sandbox.apiserver.wire.requests import Query, Request
from moorage_sandbox.apiserver.world import World

_SCALE, _ = subresource_body(DEPLOYMENTS, "scale")
_DESIRED = count("Desired", "spec.replicas", "Number of desired replicas")
_AVAILABLE = count("Available", "status.replicas", "Number of actual replicas")
# The columns of a scale are declared in two places upstream, which differ a little.
_BUILT_IN = ServedKind(
    resource=_SCALE,
    columns=(msgspec.structs.replace(NAME, format=""), _DESIRED, _AVAILABLE, AGE),
)
_CUSTOM = ServedKind(
    resource=_SCALE,
    columns=(NAME, _DESIRED, _AVAILABLE, msgspec.structs.replace(AGE, type="date")),
)
_NOT_NEGATIVE = "must be greater than or equal to 0"
_METADATA_FIELDS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_kind(target: Target) -> ServedKind:
    """Return the columns of the scale of an object, as a kind.

    Notes
    -----
    kubernetes v1.36 pkg/printers/internalversion/printers.go, and apiextensions-apiserver
    pkg/apiserver/helpers.go (getScaleColumnsForVersion).
    """
    return _BUILT_IN if is_built_in(target.served.kind.resource) else _CUSTOM


class Scaler:
    """Reads and changes the scale of objects.

    Parameters
    ----------
    world
        Holds the objects.
    writer
        Updates the objects.
    reviews
        Has webhooks review scales.
    """

    def __init__(self, world: World, writer: Writer, reviews: BodyReviews) -> None:
        self._world = world
        self._writer = writer
        self._reviews = reviews

    def show(self, target: Target) -> Obj:
        """Return the ``Scale`` of an object.

        Raises
        ------
        StatusError
            404: no such object.
        """
        return _scale_of(
            target.served.served_form(get_record(self._world.store, target)), _paths(target)
        )

    def change(self, target: Target, request: Request, query: Query) -> Obj:
        """Set the desired number of replicas; return the new ``Scale``.

        Raises
        ------
        StatusError
            400: not a Scale. 404: no such object. 409: of another version, or an apply of a number
            that another manager owns. 415: a patch type that is not served. 422: a number below
            zero, or one that the object's rules refuse.
        """
        paths = _paths(target)
        form = content_type(request.headers.get("content-type", ""))
        apply = request.method == "PATCH" and form == APPLY_PATCH
        options: Options = "PatchOptions" if request.method == "PATCH" else "UpdateOptions"
        check_options(query, options, apply=apply)
        if apply:
            config = _configuration(target, paths, request)
            record = self._writer.apply_stored(target, config, request, query, scale=True)
            return _scale_of(record.decode(), paths)
        record = get_record(self._world.store, target)
        obj = target.served.served_form(record)
        before = _scale_of(obj, paths)
        sent = _wanted(_scale_of(obj, paths), request)
        sent = self._reviews.reviewed_body(target, _SCALE, (sent, before), dry_run=query.dry_run)
        replicas = _replicas(sent, target)
        meta = sent["metadata"]
        _put(obj, paths.spec_replicas, replicas)
        # A Scale without a version stands for any version of its object.
        obj["metadata"] |= {
            name: meta[name] for name in ("resourceVersion", "uid") if meta.get(name)
        }
        written = self._writer.rewrite(target, obj, request, query)
        return _scale_of(written.decode(), paths)


def _paths(target: Target) -> ScalePaths:
    paths = target.served.kind.scale
    assert paths is not None, "routes know which kinds have a scale"
    return paths


def _at(obj: Obj, path: tuple[str, ...]) -> Any:
    found: Any = obj
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _put(obj: Obj, path: tuple[str, ...], value: Any) -> None:
    """Write a value into an object, in place."""
    for name in path[:-1]:
        obj = obj.setdefault(name, {})
    obj[path[-1]] = value


def _configuration(target: Target, paths: ScalePaths, request: Request) -> Obj:
    """Return the configuration of an applied Scale as one of the object itself.

    Notes
    -----
    Source: kubernetes v1.36 apimachinery pkg/util/managedfields/scalehandler.go. The managers of
    a Scale are those of the number of replicas in the object.
    """
    sent = typed(read_configuration(request).decoded, _SCALE)
    replicas, meta = _replicas(sent, target), sent["metadata"]
    config: Obj = {
        "apiVersion": target.served.kind.resource.api_version,
        "kind": target.served.kind.resource.kind,
        "metadata": {name: meta[name] for name in _METADATA_FIELDS[:-1] if meta.get(name)},
    }
    if "replicas" in (sent.get("spec") or {}):
        _put(config, paths.spec_replicas, replicas)
    return config


def _scale_of(obj: Obj, paths: ScalePaths) -> Obj:
    meta = obj["metadata"]
    status: Obj = {"replicas": _at(obj, paths.status_replicas) or 0}
    selector = _selector_text(_at(obj, paths.selector)) if paths.selector else ""
    if selector:
        status["selector"] = selector
    wanted = _at(obj, paths.spec_replicas)
    return {
        "kind": _SCALE.kind,
        "apiVersion": _SCALE.api_version,
        "metadata": {name: meta[name] for name in _METADATA_FIELDS if meta.get(name)},
        "spec": {} if wanted is None else {"replicas": wanted},
        "status": status,
    }


def _selector_text(selector: Any) -> str:
    """Return a selector as text; the argument is text, a label selector, or a map of labels."""
    if not isinstance(selector, dict):
        return selector or ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        selector = {"matchLabels": selector}
    shown = format_selector(selector)
    return "" if shown == NONE else shown


def _wanted(scale: Obj, request: Request) -> Obj:
    """Return the Scale in the body, or the result of a patch to the present Scale."""
    form = content_type(request.headers.get("content-type", ""))
    if request.method == "PUT" and form in {"", JSON}:
        sent = decode_json(request)
    elif request.method == "PATCH" and form == JSON_PATCH:
        sent = json_patch(scale, decode_json(request))
    elif request.method == "PATCH" and form in (MERGE_PATCH, STRATEGIC_PATCH):
        # A Scale has no lists, so both patch types have the same result.
        sent = merge_patch(scale, decode_json(request))
    else:
        offered = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
        raise unsupported_media_type(offered if request.method == "PATCH" else SPOKEN_BUILT_IN)
    return typed(sent, _SCALE)


def _replicas(sent: Obj, target: Target) -> int:
    """Return the desired number; an absent number means zero, as in Go."""
    name = sent["metadata"].get("name", target.name)
    if name != target.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
    replicas = number(sent, "spec", "replicas")
    if replicas < 0:
        raise invalid_object(
            _SCALE, target.name, [invalid("spec.replicas", replicas, _NOT_NEGATIVE)]
        )
    return replicas
