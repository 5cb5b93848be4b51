"""The health paths: ``/healthz``, ``/livez`` and ``/readyz``, and each check below them.

This server is one process, and it is healthy when it answers. It says so under the names of
kube-apiserver's checks (v1.36), because programs look for them.
"""

from __future__ import annotations

from typing import Final

from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.wire.requests import Query

_HOOKS: Final = (
    "start-apiserver-admission-initializer start-kube-apiserver-admission-initializer "
    "generic-apiserver-start-informers priority-and-fairness-config-consumer "
    "priority-and-fairness-filter storage-object-count-tracker-hook start-apiextensions-informers "
    "start-apiextensions-controllers crd-informer-synced bootstrap-controller "
    "start-system-namespaces-controller rbac/bootstrap-roles "
    "scheduling/bootstrap-system-priority-classes priority-and-fairness-config-producer "
    "start-cluster-authentication-info-controller start-kube-aggregator-informers "
    "apiservice-registration-controller apiservice-status-available-controller "
    "apiservice-discovery-controller kube-apiserver-autoregistration"
)
_CHECKS: Final = (
    "ping",
    "log",
    "etcd",
    *(f"poststarthook/{name}" for name in _HOOKS.split()),
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
_MORE: Final = {
    "healthz": _CHECKS,
    "livez": _CHECKS,
    "readyz": (*_CHECKS, "etcd-readiness", "informer-sync", "shutdown"),
}


def health(path: str, query: Query) -> bytes | None:
    """Return the answer of a health path, None for other paths.

    Parameters
    ----------
    path
        The path as sent.
    query
        ``verbose`` asks for the names of all checks, as ``kubectl get --raw='/readyz?verbose'``.

    Raises
    ------
    StatusError
        404: an unknown check below a health path.
    """
    head, _, check = path.strip("/").partition("/")
    checks = _MORE.get(head)
    if checks is None:
        return None
    if check and check not in checks:
        raise StatusError(404, "NotFound", f"there is no health check named {check}", details={})
    if check or "verbose" not in query:
        return b"ok"
    return (
        "".join(f"[+]{name} ok\n" for name in checks).encode() + f"{head} check passed\n".encode()
    )
