"""What kubectl 1.36.3 sent in protobuf, recorded once.

``kubectl_bodies.json`` has each command with the body it sent, in base 64, in the order typed.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

import msgspec


class Recorded(msgspec.Struct, frozen=True):
    """One command, and the call it made with a body in protobuf."""

    command: str
    method: str
    path: str
    body: str


RECORDED: Final = msgspec.json.decode(
    Path(__file__).with_name("kubectl_bodies.json").read_bytes(), type=list[Recorded]
)

# Drawn by each server.
_BY_CHANCE: Final = ("uid", "token", "controller-uid", "managedFields")


def body_of(recorded: Recorded) -> bytes:
    """Return the bytes that were sent."""
    return base64.b64decode(recorded.body)


def told(obj: Any) -> Any:
    """Return what JSON tells a Go client: neither nulls nor empty structs differ from nothing."""
    if isinstance(obj, dict):
        said = {key: told(value) for key, value in obj.items() if key not in _BY_CHANCE}
        return {key: value for key, value in said.items() if value not in (None, {}, [], 0, "")}
    return [told(each) for each in obj] if isinstance(obj, list) else obj
