"""The container of a pod that a call is about, and the stored state of the container."""

from __future__ import annotations

from typing import Any

from moorage.kinds.kind import Obj
from moorage.kinds.status import bad_request
from moorage_sandbox.apiserver.wire.requests import Query

_SPECS = ("containers", "initContainers", "ephemeralContainers")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def requested_container(pod: Obj, query: Query) -> str:
    """Return the name of the container a call asks for.

    Raises
    ------
    StatusError
        400: the pod has no such container, or several to choose from.

    Notes
    -----
    Messages: kubernetes v1.36 pkg/registry/core/pod/strategy.go, LogLocation.
    """
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    regular, inits, added = ([each["name"] for each in spec.get(part) or ()] for part in _SPECS)
    asked = query.text("container")
    if asked:
        if asked not in (*regular, *inits, *added):
            raise bad_request(f"container {asked} is not valid for pod {pod_name}")
        return str(asked)
    if len(regular) == 1:
        return str(regular[0])
    text = f"a container name must be specified for pod {pod_name}"
    if regular:
        text += f", choose one of: [{' '.join(regular)}]"
    if inits:
        text += f" or one of the init containers: [{' '.join(inits)}]"
    if added:
        text += f" or one of the ephemeral containers: [{' '.join(added)}]"
    raise bad_request(text)


def status_of(pod: Obj, container: str) -> Obj | None:
    """Return the stored status of a container; None before a node reported one."""
    told = pod.get("status") or {}
    for part in _STATUSES:
        for each in told.get(part) or ():
            if each.get("name") == container:
                return dict(each)
    return None


def spec_of(pod: Obj, container: str) -> dict[str, Any]:
    """Return the entry of the pod's spec for a container."""
    found = (each for part in _SPECS for each in pod["spec"].get(part) or ())
    return next(dict(each) for each in found if each["name"] == container)
