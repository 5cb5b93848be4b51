"""UIDs are random UUIDs of version 4."""

from __future__ import annotations

import uuid

from moorage.base.ids import new_uid
from moorage.base.rng import Streams


def test_a_uid_is_what_the_standard_library_makes_of_the_same_bits():
    mine, same = Streams(3).stream("ids"), Streams(3).stream("ids")
    for _ in range(200):
        found = uuid.UUID(int=same.getrandbits(128), version=4)
        assert new_uid(mine) == str(found)
        assert (found.version, found.variant) == (4, uuid.RFC_4122)
