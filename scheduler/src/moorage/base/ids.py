"""Unique names: UIDs and the short random suffixes Kubernetes puts behind generateName."""

from __future__ import annotations

from moorage.base.rng import Random

# The letters Kubernetes uses for generated names: no vowels (no accidental words) and nothing
# that is easily misread (apimachinery v1.36 util/rand).
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
# The bits of a UUID that say its version and variant (RFC 9562, section 5.4), and all others.
_VERSION_4 = 4 << 76 | 2 << 62
_RANDOM_BITS = ~(0xF << 76 | 3 << 62)


def new_uid(rng: Random) -> str:
    """Return a version 4 UUID drawn from a seeded stream."""
    digits = f"{rng.getrandbits(128) & _RANDOM_BITS | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def name_suffix(rng: Random, length: int = 5) -> str:
    """Return a random suffix as ``generateName`` appends it."""
    return "".join(rng.choice(_SUFFIX_LETTERS) for _ in range(length))
