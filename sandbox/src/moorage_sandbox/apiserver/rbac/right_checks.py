"""Decides about the rights that expressions of policies and webhooks ask about.

Place in the flow: the variable ``authorizer`` of CEL (`moorage.cel.authorizer`) asks here. Mirrors
kubernetes v1.36 apiserver/pkg/cel/library ``authz.go``.
"""

from __future__ import annotations

from moorage.cel.authorizer import Decision, RightCheck
from moorage_sandbox.apiserver.rbac.authorizer import Authorizer
from moorage_sandbox.apiserver.rbac.impersonation import ACCOUNT_PREFIX, account_groups
from moorage_sandbox.apiserver.rbac.rules import Attributes
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.apiserver.world import World


class CallerRights:
    """The rights of the caller of the current call, and those of service accounts.

    Parameters
    ----------
    world
        Knows the caller.
    authorizer
        Reads roles.
    enforced
        Whether rights hold; otherwise everybody may do everything.
    """

    def __init__(self, world: World, authorizer: Authorizer, *, enforced: bool) -> None:
        self._world = world
        self._authorizer = authorizer
        self._enforced = enforced

    def decide(self, check: RightCheck) -> Decision:
        """Return whether a user may make a call, and why."""
        if not self._enforced:
            return Decision(allowed=True)
        call = Attributes(
            verb=check.verb,
            group=check.group,
            resource=check.resource,
            subresource=check.subresource,
            namespace=check.namespace,
            name=check.name,
            path=check.path,
        )
        user = _account_user(check.account) if check.account else self._world.caller
        why = self._authorizer.why(user, call)
        return Decision(allowed=why is not None, reason=why or "")


def _account_user(account: str) -> User:
    """Return the user of a service account, NAMESPACE/NAME, as upstream asks about it."""
    name = ACCOUNT_PREFIX + account.replace("/", ":")
    return User(name, account_groups(name))
