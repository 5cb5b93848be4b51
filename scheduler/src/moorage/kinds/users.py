"""The user of a call.

Place in the flow: `moorage_sandbox.apiserver.authentication` determines the user of a request.
Authorization reads the user, and so do kinds that record the caller.
"""

from __future__ import annotations

from typing import Any

import msgspec


class User(msgspec.Struct, frozen=True):
    """An authenticated user.

    Parameters
    ----------
    name
        User name, such as ``kubernetes-admin``.
    groups
        Groups the user is in.
    uid
        Uid of the service account; empty for other users.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @property
    def info(self) -> dict[str, Any]:
        """The user as reviews show it (authentication.k8s.io ``UserInfo``)."""
        uid = {"uid": self.uid} if self.uid else {}
        return {"username": self.name, **uid, "groups": list(self.groups)}
