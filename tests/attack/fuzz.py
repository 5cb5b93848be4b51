"""Mutations of bytes and of values, drawn from a seed.

``FUZZ_RUNS=5000 make test ARGS='tests/attack -k "random or hostile" --timeout 0'`` runs each fuzzer
for longer: 5000 files of each form, twice 20,000 API calls, 5000 hostile objects. ``FUZZ_SEED=7``
takes other draws. A failure names its seed and run; what it found becomes a case
of a table in this folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from moorage.base.rng import Random, Streams

RUNS = int(os.environ.get("FUZZ_RUNS", "150"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))

ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 2**70, -(2**70), 0.5, 1e400, -0.0, 1e-400),
    *("", " ", "a", "\x00", "\ud800", "\u2028", "a\r\nb", "x" * 300, "1Gi", "-1", "0x1f", "{}"),
    *([], [[]], [None], {}, {"": None}, {"a": {"a": {}}}, [{}] * 30, ["a", "a"], [1, "a"]),
]
ODD_BYTES: list[bytes] = [
    *(b"", b"\x00", b"\xff", b"\xfe\xff", b"\r\n", b"\n", b"\t", b" ", b":", b",", b"-", b"- "),
    *(b"[", b"]", b"{", b"}", b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b"&a ", b"*a", b"<<: "),
    *(b"!!int ", b"!!binary ", b"!", b"%", b"%TAG ! x\n", b"---\n", b"...\n", b"#", b"|\n", b">"),
    *(b"? ", b"1e999", b"9" * 400, b"0o17", b"12:30", b"~", b"null", b"\xed\xa0\x80", b"[" * 300),
]


def draws(name: str, runs: int = RUNS) -> Iterator[tuple[int, Random]]:
    """Yield the number of each run and its own draws, so that one run can be repeated alone."""
    for run in range(runs):
        yield run, Streams(SEED).stream(f"{name}/{run}")


def mutated_bytes(data: bytes, rng: Random) -> bytes:
    """Return bytes with a few of them removed, repeated, replaced, or moved."""
    for _ in range(rng.randrange(1, 5)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice([0, 1, 2, 8, 40]))
        piece = rng.choice([rng.choice(ODD_BYTES), data[start:end] * rng.choice([2, 9]), b""])
        data = data[:start] + piece + data[end:]
    return data


def mutated_value(value: Any, rng: Random) -> Any:
    """Return a copy of a value with one place in it replaced, removed or repeated."""
    value = json.loads(json.dumps(value))
    # A walk stops early, so it seldom reaches what is deep inside; a draw of all places does.
    holder, key = _walked([value], rng) if rng.random() < 0.5 else rng.choice(_places([value]))
    what = rng.randrange(5)
    if what == 0 and isinstance(holder, dict):
        holder[rng.choice(["", "a", "\x00", "metadata", "$patch", "x" * 300])] = holder.pop(key)
    elif what == 1 and isinstance(holder, list):
        holder.extend(holder[:3])
    elif what == 2:
        holder[key] = [holder[key]]
    else:
        holder[key] = rng.choice(ODD_VALUES)
    return value


def _walked(holder: Any, rng: Random) -> tuple[Any, Any]:
    """Return a place found by a walk from the outside, as (dict or list, key in it)."""
    key: Any = 0
    while isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.85:
        holder = holder[key]
        key = rng.choice(_keys(holder))
        if rng.random() < 0.1:
            break
    return holder, key


def _places(holder: Any) -> list[tuple[Any, Any]]:
    """Return every place in a value, as (dict or list, key in it)."""
    found = [(holder, key) for key in _keys(holder)]
    for key in _keys(holder):
        if isinstance(holder[key], dict | list):
            found += _places(holder[key])
    return found


def _keys(holder: Any) -> list[Any]:
    return list(holder) if isinstance(holder, dict) else list(range(len(holder)))
