"""Objects that expressions of mutating policies build, as maps.

Place in the flow: `expressions` rewrites the text of a mutation here before it is compiled. The CEL
runtime has no types for objects. ``Object.spec{replicas: 1}`` becomes a map without a declared type
of its values, ``dyn({"replicas": 1})``, and ``JSONPatch{...}`` the same. Mirrors kubernetes v1.36
apiserver pkg/cel/mutation.
"""

from __future__ import annotations

import re
from typing import Final

from moorage.cel.rule_text import QUOTED
from moorage.cel.values import unescaped

_TOKEN: Final = re.compile(
    rf"(?P<quoted>{QUOTED.pattern})"
    r"|(?P<object>(?<![\w.])(?:Object(?:\s*\.\s*[A-Za-z_]\w*)*|JSONPatch)\s*\{)"
    r"|(?P<open>[\[({])|(?P<close>[\])}])"
    r"|(?P<field>(?<![\w.])[A-Za-z_]\w*(?=\s*:))"
    r"|(?P<other>.)",
    re.S,
)
_OBJECT: Final = "object"


def with_maps(text: str) -> str:
    """Return an expression with maps in place of the objects that it builds."""
    parts: list[str] = []
    # What each bracket around the current place belongs to, and the last token but for spaces.
    around: list[str] = []
    before = ""
    for token in _TOKEN.finditer(text):
        kind, part = token.lastgroup or "", token[0]
        if kind in (_OBJECT, "open"):
            around.append(kind)
            part = "dyn({" if kind == _OBJECT else part
        elif kind == "close" and around and around.pop() == _OBJECT:
            part = "})"
        elif kind == "field" and around[-1:] == [_OBJECT] and before in ("{", ",", "?"):
            part = f'"{unescaped(part)}"'
        if not token[0].isspace() and not token[0].startswith("//"):
            before = token[0][-1]
        parts.append(part)
    return "".join(parts)
