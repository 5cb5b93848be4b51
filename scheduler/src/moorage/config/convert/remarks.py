"""Remarks about a conversion: everything that was dropped or changed, for the comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["dropped", "changed"]


class Remark(msgspec.Struct, frozen=True):
    """One thing that is not as it was.

    Parameters
    ----------
    kind
        dropped: it is not in the new file. changed: it stands there in another form.
    path
        Where it was, as ``profiles[0].plugins.score.enabled[1]``.
    text
        Its value or its name, and where its meaning is now; no full stop.
    """

    kind: Kind
    path: str
    text: str


class Remarks:
    """Collects remarks in the order in which they are made."""

    def __init__(self) -> None:
        self.remarks: list[Remark] = []

    def dropped(self, path: str, value: object, why: str) -> None:
        """Remark that a value is not in the new file."""
        self.remarks.append(Remark("dropped", path, f"{_short(value)}: {why}"))

    def changed(self, path: str, text: str) -> None:
        """Remark that something has another form."""
        self.remarks.append(Remark("changed", path, text))


def objects(path: str, values: Any, remarks: Remarks) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield path and value of each object in a list; anything else is dropped, with a remark."""
    if not isinstance(values, list):
        remarks.dropped(path, values, "expected a list")
        return
    for index, value in enumerate(values):
        where = f"{path}[{index}]"
        if isinstance(value, Mapping):
            yield where, value
        else:
            remarks.dropped(where, value, "expected an object")


def _short(value: object) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
