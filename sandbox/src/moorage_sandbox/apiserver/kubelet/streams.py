"""``pods/exec``, ``pods/attach`` and ``pods/portforward``: refused with a message that says why.

Place in the flow: `server` calls this module for these subresources. Every check of a real server
before a stream is made first, so a wrong pod or container gets its own error.
"""

from __future__ import annotations

from typing import Final

from moorage.kinds.status import StatusError, bad_request, method_not_allowed
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.kubelet.containers import requested_container
from moorage_sandbox.apiserver.verbs.reading import get_record
from moorage_sandbox.apiserver.wire.requests import Query, Request
from moorage_sandbox.apiserver.world import World

STREAMS: Final = frozenset({"attach", "exec", "portforward"})
"""The subresources refused here."""


def refuse_stream(world: World, target: Target, request: Request, query: Query) -> StatusError:
    """Return the error answer of a stream.

    Raises
    ------
    StatusError
        400: no such container, or the pod has no node. 404: no such pod. 405: another method than
        GET and POST.
    """
    if request.method not in ("GET", "POST"):
        raise method_not_allowed()
    pod = get_record(world.store, target).decode()
    about = f"pod {target.name}"
    if target.subresource != "portforward":
        about = f"container {requested_container(pod, query)} of {about}"
    node = pod["spec"].get("nodeName")
    if not node:
        raise bad_request(f"pod {target.name} does not have a host assigned")
    text = (
        f"{target.subresource} is not possible: node {node} plays {about} and runs no process; "
        "moorage's nodes run no containers"
    )
    return StatusError(501, "NotImplemented", text)
