"""A terminal's screen after the bytes a program wrote: as far as rich and click write them.

Known are: line feed, carriage return, cursor up, erase of lines and of the screen, colours (kept as
they are written). Wider characters than one column are not.
"""

from __future__ import annotations

import re

_PIECE = re.compile(r"\x1b\[(?P<numbers>[\d;?]*)(?P<letter>[A-Za-z])|\x1b[^\[]|(?P<text>[^\x1b])")
_PLAIN = "\x1b[0m"


class Screen:
    """The lines of a screen, and where the cursor is.

    Parameters
    ----------
    columns, lines
        The size.
    """

    def __init__(self, columns: int, lines: int) -> None:
        self._columns = columns
        self._height = lines
        self._rows: list[list[tuple[str, str]]] = [[]]
        self._row = self._column = 0
        self._style = ""

    def write(self, text: str) -> None:
        """Take what a program wrote."""
        for piece in _PIECE.finditer(text):
            if piece["text"]:
                self._character(piece["text"])
            elif piece["letter"]:
                self._control(piece["letter"], piece["numbers"], piece[0])

    def text(self) -> list[str]:
        """Return the lines on the screen, without colours."""
        return ["".join(char for char, _ in row).rstrip() for row in self._shown()]

    def coloured(self) -> list[str]:
        """Return the lines on the screen with the escape sequences of their colours."""
        lines = []
        for row in self._shown():
            line, last = "", ""
            for char, style in row:
                line += char if style == last else f"{_PLAIN}{style}{char}"
                last = style
            lines.append(f"{line}{_PLAIN}")
        return lines

    def _shown(self) -> list[list[tuple[str, str]]]:
        return self._rows[-self._height :]

    def _character(self, char: str) -> None:
        if char == "\n":
            self._row += 1
        elif char == "\r":
            self._column = 0
        elif char >= " ":
            if self._column >= self._columns:
                self._row, self._column = self._row + 1, 0
            row = self._line()
            row += [(" ", "")] * (self._column + 1 - len(row))
            row[self._column] = (char, self._style)
            self._column += 1
        self._line()

    def _line(self) -> list[tuple[str, str]]:
        while len(self._rows) <= self._row:
            self._rows.append([])
        return self._rows[self._row]

    def _control(self, letter: str, numbers: str, whole: str) -> None:
        if letter == "m":
            self._style = "" if numbers in ("", "0") else self._style + whole
        elif letter == "A":
            top = max(0, len(self._rows) - self._height)
            self._row = max(top, self._row - int(numbers or 1))
        elif letter == "K" and numbers == "2":
            self._line().clear()
        elif letter == "K":
            del self._line()[self._column :]
        elif letter == "J" and numbers == "2":
            self._row = max(0, len(self._rows) - self._height)
            del self._rows[self._row :]
            self._line()
        elif letter == "J":
            del self._rows[self._row + 1 :]
        elif letter == "H":
            self._row, self._column = max(0, len(self._rows) - self._height), 0


def screen_of(text: str, *, columns: int, lines: int) -> list[str]:
    """Return what a terminal of this size shows after a program has written `text`."""
    screen = Screen(columns, lines)
    screen.write(text)
    return screen.text()
