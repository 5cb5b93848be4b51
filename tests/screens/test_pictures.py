"""The pictures of the live view: each is there, is shown on a page, and shows what has to stay.

Left out: drawing them, which takes a minute (``python -m tests.screens.pictures``).
"""

from __future__ import annotations

import html
import re

import pytest

from tests.screens.emulator import Screen
from tests.screens.moving import FILE, Frame, moving
from tests.screens.pictures import IMAGES, PICTURES, ROOT, Picture, svg

PAGE = ROOT / "docs" / "reference" / "live-view.md"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_shows_the_lines_to_copy_and_the_last_line(picture: Picture) -> None:
    drawn = (IMAGES / f"{picture.name}.svg").read_text()
    lines = [html.unescape(each) for each in re.findall(r"<text [^>]*>([^<]*)</text>", drawn)]
    text = "".join(lines).replace("\N{NO-BREAK SPACE}", " ")
    for words in ("export KUBECONFIG=/tmp/", "kubectl get nodes", "Ctrl-C ends the cluster"):
        assert words in text
    assert "x".join(map(str, picture.size)) in text
    assert f"../images/{picture.name}.svg" in PAGE.read_text()


def test_colours_become_colours_of_the_picture() -> None:
    screen = Screen(12, 2)
    screen.write("plain \x1b[31mred\x1b[0m")
    drawn = svg(screen, columns=12, title="a title")
    assert ">a&#160;title<" in drawn or ">a title<" in drawn
    assert len(set(re.findall(r"class=\"(screen-r\d+)\"[^>]*>[^<\s]+<", drawn))) >= 2


def test_the_moving_picture_shows_one_frame_at_a_time() -> None:
    frames = [Frame(("$ a", ""), 1.0), Frame(("$ b", ""), 3.0)]
    drawn = moving(frames)
    assert re.findall(
        r"@keyframes (\w+) \{ 0% \{ visibility: hidden \} ([\d.]+)%.*?([\d.]+)%, 100%", drawn
    ) == [
        ("frame0", "0.00", "25.00"),
        ("frame1", "25.00", "100.00"),
    ]
    assert re.findall(r'<g class="(frame\d)">', drawn) == ["frame0", "frame1"]
    assert "<script" not in drawn


def test_the_readme_begins_with_the_moving_picture() -> None:
    drawn = html.unescape(FILE.read_text()).replace("\N{NO-BREAK SPACE}", " ")
    for words in ("$ moorage up", "29 bound", "$ moorage explain pod giant", "never fits here"):
        assert words in re.sub(r"<[^>]*>", "", drawn)
    assert f"](docs/images/{FILE.name})" in (ROOT / "README.md").read_text()[:1500]
