"""The user on whose behalf a call is answered.

Place in the flow: `auth` finds out the user of a request; authorization, and kinds that write down
the caller, read it.
"""

from __future__ import annotations

import msgspec


class User(msgspec.Struct, frozen=True):
    """Who is calling.

    Parameters
    ----------
    name
        User name, such as ``kubernetes-admin``.
    groups
        Groups the user is in.
    """

    name: str
    groups: tuple[str, ...] = ()
