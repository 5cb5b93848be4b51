"""Draws the moving picture of the README: ``python -m tests.screens.moving``.

`moorage up` runs on a terminal; its screens of the first seconds, and then the answer of
`moorage explain pod giant`, become the frames of one SVG. It moves by its own style sheet: no
script, which a code host would not run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from sandbox.tests.sandbox.terminal import Terminal
from tests.screens.emulator import Screen
from tests.screens.pictures import IMAGES, svg

FILE: Final = IMAGES / "first-minute.svg"
SIZE: Final = (110, 27)
LOOK_SECONDS: Final = 0.1
SETTLED: Final = r"1 unschedulable  0 bound  29 running"
LOOKS_MAX: Final = 100
# How long frames are shown: the first ones as long as they lasted, at least this.
FRAME_SECONDS: Final = 0.5
LAST_SECONDS: Final = 4.0
_ESCAPE: Final = re.compile(r"\x1b\[[\d;]*m")
_BODY: Final = re.compile(r"<svg (?P<head>[^>]*)>(?P<body>.*)</svg>", re.DOTALL)


class Frame(NamedTuple):
    """A screen, and how many seconds it is shown."""

    lines: tuple[str, ...]
    seconds: float


def recorded(folder: Path) -> list[Frame]:
    """Run the commands, and return the frames of different screens.

    Parameters
    ----------
    folder
        Where the sandbox is made.
    """
    moorage = str(Path(sys.executable).with_name("moorage"))
    screens: list[tuple[str, ...]] = []
    with Terminal(folder, [moorage, "up", "--seed", "1"], size=SIZE) as terminal:
        for _ in range(LOOKS_MAX):
            screen = shown("$ moorage up\r\n" + terminal.for_seconds(LOOK_SECONDS))
            if not screens or screen != screens[-1]:
                screens.append(screen)
            if re.search(SETTLED, _ESCAPE.sub("", "\n".join(screen))):
                break
        else:
            raise AssertionError("\n".join(screens[-1]))
        answer = subprocess.run(
            [moorage, "explain", "pod", "giant"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        terminal.interrupt()
        terminal.ended()
    last = shown("$ moorage explain pod giant\r\n" + answer.stdout.replace("\n", "\r\n"))
    frames = [Frame(each, FRAME_SECONDS) for each in screens[:-1]]
    return [*frames, Frame(screens[-1], LAST_SECONDS), Frame(last, LAST_SECONDS)]


def shown(text: str) -> tuple[str, ...]:
    """Return the lines of the screen, with their colours, after a text was written."""
    screen = Screen(*SIZE)
    screen.write(text)
    lines = screen.coloured()
    return (*lines, *[""] * (SIZE[1] - len(lines)))  # all frames have one height


def moving(frames: Sequence[Frame]) -> str:
    """Return the frames as one picture that shows them in turn, again and again."""
    whole = sum(each.seconds for each in frames)
    head, parts, rules, begin = "", [], [], 0.0
    for number, frame in enumerate(frames):
        screen = Screen(*SIZE)
        screen.write("\r\n".join(frame.lines))
        name = f"frame{number}"
        drawn = svg(screen, columns=SIZE[0], title="moorage", unique_id=name)
        match = _BODY.search(drawn)
        assert match is not None, "rich writes an svg"
        head = match["head"]
        first, last = 100 * begin / whole, 100 * (begin + frame.seconds) / whole
        begin += frame.seconds
        rules.append(
            f"@keyframes {name} {{ 0% {{ visibility: hidden }} "
            f"{first:.2f}% {{ visibility: visible }} {last:.2f}%, 100% {{ visibility: hidden }} }}"
            f".{name} {{ visibility: hidden; animation: {name} {whole:.1f}s step-end infinite }}"
        )
        parts.append(f'<g class="{name}">{match["body"]}</g>')
    # Who asked for less motion sees the last screen.
    still = (
        "@media (prefers-reduced-motion: reduce) { g { animation: none !important } "
        f".frame{len(frames) - 1} {{ visibility: visible }} }}"
    )
    style = "\n".join([*rules, still])
    return f"<svg {head}><style>{style}</style>{''.join(parts)}</svg>\n"


def main() -> None:
    """Record, and write the picture."""
    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        frames = recorded(Path(folder))
    FILE.write_text(moving(frames))
    sys.stdout.write(f"{FILE.name}: {len(frames)} frames\n")


if __name__ == "__main__":
    main()
