"""Applies the patch of a webhook to the object that the webhook was asked about.

Place in the flow: `admission` changes objects here. Mirrors kubernetes v1.36 apiserver
pkg/admission/plugin/webhook/mutating/dispatcher.go, callAttrMutatingHook.
"""

from __future__ import annotations

import copy

from moorage.base.errors import DecodeError
from moorage.kinds.json_patch import json_patch
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError, internal
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.webhooks.answers import HookError
from moorage_sandbox.apiserver.webhooks.reviews import JSON_PATCH, Response, Subject
from moorage_sandbox.apiserver.wire.bodies import bounded_json, typed


def patched_object(name: str, subject: Subject, called: Served, response: Response) -> Obj | None:
    """Return the object of a write with the patch of a webhook; the object stays as it is.

    Raises
    ------
    HookError
        The patch cannot be read.
    StatusError
        500: the patch does not apply, or its result is no object of the kind.
    """
    try:
        patch = bounded_json(response.patch or b"")
    except DecodeError as error:
        raise HookError(f"received undecodable patch in webhook response: {error}") from error
    if not isinstance(patch, list):
        raise HookError("received undecodable patch in webhook response: it is no list")
    if response.patch_type != JSON_PATCH:
        raise HookError(f'unsupported patch type "{response.patch_type}"')
    obj = subject.write.new
    if not patch:
        return obj
    if obj is None:
        raise internal(
            f'admission webhook "{name}" attempted to modify the object, which is not supported '
            "for this operation"
        )
    try:
        patched = json_patch(copy.deepcopy(obj), patch)
    except StatusError as error:
        why = error.__cause__ or error
        raise internal(f'the patch of admission webhook "{name}" does not apply: {why}') from error
    if fault := _fault(patched, obj):
        raise internal(f'the patch of admission webhook "{name}" makes no valid object: {fault}')
    return _fitting(name, patched, subject, called)


def _fault(patched: object, obj: Obj) -> str:
    if not isinstance(patched, dict):
        return "it is no JSON object"
    if (patched.get("apiVersion"), patched.get("kind")) != (obj["apiVersion"], obj["kind"]):
        return "the version and the kind may not change"
    return "" if isinstance(patched.get("metadata"), dict) else "it has no metadata"


def _fitting(name: str, patched: Obj, subject: Subject, called: Served) -> Obj:
    """Return an object with defaults, without the fields that its kind does not have."""
    if subject.has_body:
        try:
            return typed(patched, subject.kind)
        except StatusError as error:
            raise internal(
                f'the patch of admission webhook "{name}" does not fit: {error.message}'
            ) from error
    shape = called.kind.shape
    if not shape.fits(patched) and (faults := shape.type_errors(patched)):
        raise internal(f'the patch of admission webhook "{name}" does not fit: {faults[0]}')
    # The webhooks after this one see the defaults of what it has added.
    called.kind.default(patched)
    return patched
