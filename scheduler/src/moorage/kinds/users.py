"""The user of a call.

Place in the flow: `moorage_sandbox.apiserver.authentication` determines the user of a request.
Authorization reads the user, and so do kinds that record the caller.
"""

from __future__ import annotations

import msgspec


class User(msgspec.Struct, frozen=True):
    """An authenticated user.

    Parameters
    ----------
    name
        User name, such as ``kubernetes-admin``.
    groups
        Groups the user is in.
    """

    name: str
    groups: tuple[str, ...] = ()
