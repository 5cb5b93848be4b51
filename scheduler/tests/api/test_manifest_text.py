"""Every form in which people have objects in files is read as the same objects.

Not covered: what the commands do with them.
"""

from __future__ import annotations

import json

import msgspec
import pytest

from moorage.api.manifest_text import object_texts
from moorage.base.errors import DecodeError

A = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ä"}}
B = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}
BOTH = [A, B]
ITEM = {"metadata": {"name": "ä"}}


def text(value: object, **how: object) -> str:
    return json.dumps(value, ensure_ascii=False, **how)  # type: ignore[arg-type]


LINES = f"{text(A)}\n{text(B)}\n"
YAML = f"kind: Pod\napiVersion: v1\nmetadata: {{name: ä}}\n---\n{text(B)}\n"


def read(data: bytes) -> list[object]:
    return [msgspec.json.decode(each) for _, each in object_texts(data)]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(LINES, id="JSON lines"),
        pytest.param(text(A, indent=2) + text(B, indent=2), id="JSON objects one after another"),
        pytest.param(f"{text(A)}\nnull\n{text(B)}\nnull", id="JSON lines with null"),
        pytest.param(f"{text(A)}\n---\n{text(B)}", id="JSON objects as YAML documents"),
        pytest.param(text(BOTH), id="an array"),
        pytest.param(text([[A], B]), id="an array in an array"),
        pytest.param(text({"kind": "List", "apiVersion": "v1", "items": BOTH}), id="a List"),
        pytest.param(
            text({"kind": "PodList", "apiVersion": "v1", "items": [ITEM]})
            + text({"kind": "NodeList", "apiVersion": "v1", "items": [B]}),
            id="typed lists, one with items that have no kind",
        ),
        pytest.param(
            "{kind: Pod, apiVersion: v1, metadata: {name: ä}}\n---\n" + text(B),
            id="YAML in flow style",
        ),
        pytest.param(YAML, id="YAML documents"),
        pytest.param(f"---\n---\n{YAML}---\n", id="empty documents"),
    ],
)
@pytest.mark.parametrize(
    "encoding",
    [
        "utf-8",
        pytest.param("utf-8-sig", id="UTF-8 with a mark"),
        pytest.param("utf-16", id="UTF-16, as PowerShell writes it"),
        pytest.param("utf-32", id="UTF-32"),
    ],
)
def test_every_form_is_read(content: str, encoding: str) -> None:
    assert read(content.encode(encoding)) == BOTH


def test_big_endian_is_read() -> None:
    assert read(b"\xfe\xff" + LINES.encode("utf-16-be")) == BOTH


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"[]", [], id="an empty array"),
        pytest.param(b'{"kind":"PodList","items":[]}', [], id="an empty list"),
        pytest.param(b'{"kind":"PodList","items":null}', [], id="an empty list as Go writes it"),
        pytest.param(
            b'{"kind":"PodList","apiVersion":"v1","items":[{}, {"kind":4}]}',
            [{"apiVersion": "v1", "kind": "Pod"}, {"kind": 4}],
            id="a kind that is no text is left to the reader",
        ),
        pytest.param(
            b'{"kind":"AllowList","items":{}}',
            [{"kind": "AllowList", "items": {}}],
            id="an object of a kind that ends like a list",
        ),
    ],
)
def test_odd_texts(content: bytes, expected: list[object]) -> None:
    assert read(content) == expected


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"{", id="half an object"),
        pytest.param(b"5", id="a number"),
        pytest.param(b"[1]", id="a number in an array"),
        pytest.param(b'{"kind": "List", "items": {"a": 1}}', id="a List with a mapping of items"),
        pytest.param(b"- just\n- words\n", id="words"),
        pytest.param(b'{"a": 1} x: [', id="an object and something else"),
        pytest.param(b"\xff\xfeabc", id="a mark of another encoding"),
        pytest.param(b"[" * 100_000, id="an endless depth"),
        pytest.param(b'{"a":' * 100_000, id="another endless depth"),
    ],
)
def test_what_is_neither_is_refused(content: bytes) -> None:
    with pytest.raises(DecodeError):
        read(content)


def test_the_place_of_an_object_is_told() -> None:
    content = text({"kind": "List", "items": BOTH}) + text(A)
    places = [where for where, _ in object_texts(content.encode())]
    assert places == ["document 1, item 1", "document 1, item 2", "document 2"]
