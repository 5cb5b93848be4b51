"""Bounds on texts that plugins and extenders write: they are kept, logged and sent to the server.

The mark at the end of a text that was cut states how long the text was.
"""

from __future__ import annotations

from typing import Final

TEXT_MAX: Final = 4096
"""Most characters of a text from outside; messages of the API server are shorter."""


_NAMES: Final = 512
"""Characters that names of nodes add to a text that was cut already."""


def cut_text(text: str) -> str:
    """Return a plain text that can be written to a log and to a server.

    Parameters
    ----------
    text
        Any text; a subclass of str comes out as str, because its methods are code of others.
    """
    plain = str.__str__(text)
    if len(plain) > TEXT_MAX + _NAMES:
        mark = f"... ({len(plain)} characters)"
        plain = plain[: TEXT_MAX - len(mark)] + mark
    # A text with half a surrogate pair could be written to no log and to no server.
    return plain if plain.isascii() else plain.encode(errors="replace").decode()


def cut_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return texts that have at most about twice `TEXT_MAX` characters together, and a mark.

    The same tuple comes back where nothing had to be changed.
    """
    if (
        all(type(text) is str and text.isascii() for text in texts)
        and _size(texts) <= TEXT_MAX + _NAMES
    ):
        return texts
    room, result = TEXT_MAX, []
    for text in texts:
        if room <= 0:
            result.append(f"... ({len(texts)} texts)")
            break
        result.append(cut_text(text))
        room -= len(result[-1]) + 1
    return tuple(result)


def _size(texts: tuple[str, ...]) -> int:
    return sum(map(len, texts)) + len(texts)
