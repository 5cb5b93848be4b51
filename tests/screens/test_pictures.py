"""The pictures of the live view: each is there, is shown on a page, and shows what has to stay.

Left out: drawing them, which takes a minute (``python -m tests.screens.pictures``).
"""

from __future__ import annotations

import html
import re

import pytest

from tests.screens.emulator import Screen
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
