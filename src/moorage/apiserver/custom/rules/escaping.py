"""Names of properties in the spelling of rules.

Place in the flow: used by `forms`. Mirrors kubernetes v1.36 apiserver pkg/cel/escaping.go.
"""

from __future__ import annotations

import re
from typing import Final

_RESERVED: Final = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function"}
    | {"if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
_NAME: Final = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_ESCAPED: Final = re.compile(r"__|[-./]")
_ESCAPES: Final = {
    "__": "__underscores__",
    ".": "__dot__",
    "-": "__dash__",
    "/": "__slash__",
}


def escaped(name: str) -> str | None:
    """Return the spelling of a property in rules; None for a name that rules cannot spell."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)
