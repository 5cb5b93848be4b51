"""Callers that a front proxy names in headers: kube-apiserver's aggregation layer, for example.

Notes
-----
Kubernetes v1.36 ``apiserver/pkg/authentication/request/headerrequest``.
"""

from __future__ import annotations

from urllib.parse import unquote

from moorage.service.serving.callers import Caller, Credentials, checked
from moorage.service.serving.trust import ProxyNames


def named_caller(credentials: Credentials, names: ProxyNames) -> Caller | None:
    """Return the caller that the headers name; None if they name none.

    Parameters
    ----------
    credentials
        Of a connection whose certificate is that of a trusted proxy.
    names
        The headers.

    Raises
    ------
    UnauthenticatedError
        A value is not UTF-8.
    """
    users = [checked(value) for name in names.users for value in credentials.values(name)[:1]]
    if not users:
        return None
    uids = [checked(value) for name in names.uids for value in credentials.values(name)[:1]]
    groups = [checked(value) for name in names.groups for value in credentials.values(name)]
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in names.extra_prefixes:
        for header, value in credentials.headers:
            if header.startswith(prefix.lower()):
                key = checked(unquote(header[len(prefix) :]))
                extra[key] = (*extra.get(key, ()), checked(value))
    return Caller(users[0], uids[0] if uids else "", tuple(groups), extra)
