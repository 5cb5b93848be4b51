"""Fingerprints of sets of pods: by them a topology says which pods it has counted.

An exporter signs the names of the pods on its node; the scheduler signs those that it knows. Equal
fingerprints mean that both know the same pods.

Rules mirrored: ``k8stopologyawareschedwg/podfingerprint`` v0.2, version ``v001``: XXH64 of each
name, seeded by XXH64 of the namespace, then XXH64 of the sorted hashes, least byte first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

PREFIX: Final = "pfp0v001"

_P1: Final = 11400714785074694791
_P2: Final = 14029467366897019727
_P3: Final = 1609587929392839161
_P4: Final = 9650029242287828579
_P5: Final = 2870177450012600261
_MASK: Final = 2**64 - 1
_STRIPE: Final = 32
_LANE: Final = 8
_HALF: Final = 4


def fingerprint(names: Iterable[tuple[str, str]]) -> str:
    """Return the fingerprint of pods by namespace and name, in any order."""
    hashes = sorted(_pod_hash(namespace, name) for namespace, name in names)
    total = xxh64(b"".join(each.to_bytes(_LANE, "little") for each in hashes))
    return f"{PREFIX}{total:016x}"


def xxh64(data: bytes, seed: int = 0) -> int:
    """Return the 64-bit hash of xxHash."""
    at, length = 0, len(data)
    if length >= _STRIPE:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at + _STRIPE <= length:
            for lane in range(4):
                start = at + lane * _LANE
                word = int.from_bytes(data[start : start + _LANE], "little")
                lanes[lane] = _round(lanes[lane], word)
            at += _STRIPE
        total = sum(_rotated(each, by) for each, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for each in lanes:
            total = ((total ^ _round(0, each)) * _P1 + _P4) & _MASK
    else:
        total = seed + _P5
    return _finished(_rest_added((total + length) & _MASK, data[at:]))


@lru_cache(maxsize=65_536)  # a guess: the pods of a large cluster, some ten megabytes
def _pod_hash(namespace: str, name: str) -> int:
    return xxh64(name.encode(), xxh64(namespace.encode()))


def _rest_added(total: int, rest: bytes) -> int:
    at = 0
    while at + _LANE <= len(rest):
        word = int.from_bytes(rest[at : at + _LANE], "little")
        total = (_rotated(total ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        at += _LANE
    if at + _HALF <= len(rest):
        word = int.from_bytes(rest[at : at + _HALF], "little")
        total = (_rotated(total ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += _HALF
    for byte in rest[at:]:
        total = _rotated(total ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    return total


def _finished(total: int) -> int:
    total = (total ^ (total >> 33)) * _P2 & _MASK
    total = (total ^ (total >> 29)) * _P3 & _MASK
    return total ^ (total >> 32)


def _round(total: int, word: int) -> int:
    return _rotated((total + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(word: int, by: int) -> int:
    word &= _MASK
    return (word << by | word >> (64 - by)) & _MASK
