"""Unique names: UIDs and the short random suffixes Kubernetes puts behind generateName."""

from __future__ import annotations

import uuid

from moorage.base.rng import Random

# The letters Kubernetes uses for generated names: no vowels (no accidental words) and nothing
# that is easily misread (apimachinery v1.36 util/rand).
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def new_uid(rng: Random) -> str:
    """Return a version 4 UUID drawn from a seeded stream."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def name_suffix(rng: Random, length: int = 5) -> str:
    """Return a random suffix as ``generateName`` appends it."""
    return "".join(rng.choice(_SUFFIX_LETTERS) for _ in range(length))
