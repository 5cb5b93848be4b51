"""Acting as somebody else: ``kubectl --as``.

Place in the flow: `server` asks here for which user it answers a call, before it looks at what the
call wants. Mirrors kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/endpoints/filters/
impersonation: a caller needs the verb ``impersonate`` for each name it takes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.apiserver.rbac.authorizer import AUTHENTICATED, Authorizer
from moorage.apiserver.rbac.rules import Attributes
from moorage.apiserver.requests import User, readable
from moorage.apiserver.status import bad_request

ACCOUNT_PREFIX = "system:serviceaccount:"
ACCOUNTS_GROUP = "system:serviceaccounts"
GROUP_HEADER = "impersonate-group"
_USER_HEADER = "impersonate-user"
_ANONYMOUS = "system:anonymous"
# Names that decide nothing here; taking them on without saying so would be a promise not kept.
_NOT_SERVED = ("impersonate-uid", "impersonate-extra-")
_SEPARATOR = "\n"


def joined(values: list[str]) -> str:
    """Return several values of a header as one; a line break is in none of them."""
    return _SEPARATOR.join(values)


def acting_user(user: User, headers: Mapping[str, str], authorizer: Authorizer | None) -> User:
    """Return whom a call is answered for: the caller, or the user it asks to act as.

    Parameters
    ----------
    user
        The caller.
    headers
        By lower-case name; of several groups the values are `joined`.
    authorizer
        Who decides whether the caller may; None where everybody known may do everything.

    Raises
    ------
    StatusError
        400: groups without a user, names that are not served or no UTF-8. 403: the caller may not.
    """
    user = known(user)
    if not any(header.startswith("impersonate-") for header in headers):
        return user
    asked = asked_for(headers)
    for header, value in headers.items():
        if header.startswith("impersonate-") and readable(value) != value:
            raise bad_request(f"{header} is not UTF-8")
        if header.startswith(_NOT_SERVED):
            raise bad_request(f"{header}: only users and groups can be impersonated here")
    if asked is None:
        if groups := _groups(headers):
            raise bad_request(f"requested groups {list(groups)} without impersonating a user")
        return user
    if authorizer is not None:
        for wanted in _wanted(asked.name, _groups(headers)):
            authorizer.check(user, wanted)
    return known(asked)


def known(user: User) -> User:
    """Return a user with the group that everybody is in whose name has been made sure of."""
    if user.name == _ANONYMOUS or AUTHENTICATED in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED))


def asked_for(headers: Mapping[str, str]) -> User | None:
    """Return the user whom a call asks to act as, None without such a wish."""
    name = headers.get(_USER_HEADER, "")
    if not name:
        return None
    return User(name, _groups(headers) or account_groups(name))


def account_groups(name: str) -> tuple[str, ...]:
    """Return the groups of the user that a service account is; none for other users."""
    account = _account(name)
    return () if account is None else (ACCOUNTS_GROUP, f"{ACCOUNTS_GROUP}:{account[0]}")


def _account(name: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account that a user is, None for other users.

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
