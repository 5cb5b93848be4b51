"""Acting as another user: ``kubectl --as``.

Place in the flow: `server` asks here for the user of a call before it looks at the call's
attributes. Mirrors kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/endpoints/filters/
impersonation: a caller needs the verb ``impersonate`` for each name it takes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.kinds.status import bad_request
from moorage_sandbox.apiserver.rbac.authorizer import Authorizer
from moorage_sandbox.apiserver.rbac.rules import Attributes
from moorage_sandbox.apiserver.wire.requests import User, authenticated, readable

ACCOUNT_PREFIX = "system:serviceaccount:"
ACCOUNTS_GROUP = "system:serviceaccounts"
IMPERSONATE = "impersonate-"
"""The beginning of the headers that name another user."""
GROUP_HEADER = "impersonate-group"
_USER_HEADER = "impersonate-user"
# Headers without an effect here: accepting them silently would promise an effect.
_NOT_SERVED = ("impersonate-uid", "impersonate-extra-")
_SEPARATOR = "\n"


def joined(values: list[str]) -> str:
    """Return several values of a header as one value; no value contains a line break."""
    return _SEPARATOR.join(values)


def acting_user(user: User, headers: Mapping[str, str], authorizer: Authorizer | None) -> User:
    """Return the user of a call: the caller, or the user that the caller asks to act as.

    Parameters
    ----------
    user
        The caller, `authenticated`.
    headers
        By lower-case name, some with `IMPERSONATE`; of several groups the values are `joined`.
    authorizer
        Decides whether the caller may; None where every known user may do everything.

    Raises
    ------
    StatusError
        400: groups without a user, unsupported headers, or no UTF-8. 403: the caller may not.
    """
    impersonated = requested_user(headers)
    for header, value in headers.items():
        if header.startswith(IMPERSONATE) and readable(value) != value:
            raise bad_request(f"{header} is not UTF-8")
        if header.startswith(_NOT_SERVED):
            raise bad_request(f"{header}: only users and groups can be impersonated here")
    if impersonated is None:
        if groups := _groups(headers):
            raise bad_request(f"requested groups {list(groups)} without impersonating a user")
        return user
    if authorizer is not None:
        for wanted in _wanted(impersonated.name, _groups(headers)):
            authorizer.require_right(user, wanted)
    return authenticated(impersonated)


def requested_user(headers: Mapping[str, str]) -> User | None:
    """Return the user that a call asks to act as; None without such a header."""
    name = headers.get(_USER_HEADER, "")
    if not name:
        return None
    return User(name, _groups(headers) or account_groups(name))


def account_groups(name: str) -> tuple[str, ...]:
    """Return the groups of a service account; no groups for other users."""
    account = _account(name)
    return () if account is None else (ACCOUNTS_GROUP, f"{ACCOUNTS_GROUP}:{account[0]}")


def _account(name: str) -> tuple[str, str] | None:
    """Return the namespace and name of a service account; None for other users.

    Notes
    -----
    kubernetes v1.36 apiserver pkg/authentication/serviceaccount/util.go (SplitUsername): exactly
    two parts, and both are valid names.
    """
    parts = name.removeprefix(ACCOUNT_PREFIX).split(":")
    if not name.startswith(ACCOUNT_PREFIX) or len(parts) != 2:
        return None
    namespace, account = parts
    if dns_label_faults(namespace) or dns_subdomain_faults(account):
        return None
    return namespace, account


def _groups(headers: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(each for each in headers.get(GROUP_HEADER, "").split(_SEPARATOR) if each)


def _wanted(name: str, groups: tuple[str, ...]) -> Iterator[Attributes]:
    account = _account(name)
    if account is None:
        yield Attributes(verb="impersonate", resource="users", name=name)
    else:
        namespace, account_name = account
        yield Attributes(
            verb="impersonate", resource="serviceaccounts", namespace=namespace, name=account_name
        )
    for group in groups:
        yield Attributes(verb="impersonate", resource="groups", name=group)
