"""The options of a call, as its reviews have them.

Place in the flow: `admission` puts them into each review.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.kinds.kind import Obj
from moorage_sandbox.apiserver.wire.bodies import decode_json
from moorage_sandbox.apiserver.wire.requests import Query, Request

# A connection has no options of the call: its own options are its object.
_KINDS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def options_of(request: Request, operation: str) -> Obj:
    """Return the options of a call that writes: those of its body and of its parameters."""
    if operation not in _KINDS:
        return {}
    query = Query(request.query)
    sent: Any = {}
    if operation == "DELETE" and request.body:
        sent = decode_json(request)
    options: Obj = dict(sent) if isinstance(sent, dict) else {}
    if query.dry_run:
        options["dryRun"] = [query.text("dryRun")]
    if operation == "DELETE":
        if query.text("propagationPolicy"):
            options.setdefault("propagationPolicy", query.text("propagationPolicy"))
        if (grace := query.whole("gracePeriodSeconds")) is not None:
            options.setdefault("gracePeriodSeconds", grace)
    else:
        for name in ("fieldManager", "fieldValidation"):
            if query.text(name):
                options[name] = query.text(name)
    return options | {"kind": _KINDS[operation], "apiVersion": "meta.k8s.io/v1"}
