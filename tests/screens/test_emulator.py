"""What the emulated terminal shows after the writes of a program."""

from __future__ import annotations

import pytest

from tests.screens.emulator import Screen, screen_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("one\r\ntwo", ["one", "two"], id="two lines"),
        pytest.param("abcdefghij", ["abcdef", "ghij"], id="a line longer than the screen wraps"),
        pytest.param("1\r\n2\r\n3\r\n4", ["2", "3", "4"], id="the first lines scroll away"),
        pytest.param("one\r\ntwo\r\x1b[2K\x1b[1A\x1b[2Knew", ["new", ""], id="drawn anew"),
        pytest.param("\x1b[1;31mred\x1b[0m", ["red"], id="colours"),
        pytest.param("old\r\n\x1b[2J\x1b[Hnew", ["new"], id="a cleared screen"),
        pytest.param("abc\rd\x1b[K", ["d"], id="the rest of a line erased"),
        pytest.param("\x1b[?25lhidden", ["hidden"[:6]], id="a hidden cursor"),
    ],
)
def test_the_screen(text: str, shown: list[str]) -> None:
    assert screen_of(text, columns=6, lines=3) == shown


def test_colours_are_kept_where_they_are_asked_for() -> None:
    screen = Screen(10, 2)
    screen.write("a\x1b[31mb\x1b[0mc")
    assert screen.coloured() == ["a\x1b[0m\x1b[31mb\x1b[0mc\x1b[0m"]
