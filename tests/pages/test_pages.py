"""The commands of every page run as written. Asked for with ``-m pages`` (``make test-pages``).

Without the mark: how blocks are found and outputs compared, and which blocks are not run, and why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path
from tests.pages.runner import COMMANDS, ROOT, CommandFailedError, Reader, blocks_of, missing, pages

PAGES = [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in pages()]
PAGE_SECONDS_MAX = 900


@pytest.mark.pages
@pytest.mark.timeout(PAGE_SECONDS_MAX)
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_as_written(page: Path, tmp_path: Path) -> None:
    try:
        kubectl = kubectl_path(RELEASES[0])
    except NoKubectlError as error:
        pytest.skip(str(error))
    for _ in Reader(tmp_path, kubectl).follow(blocks_of(page)):
        pass


def test_most_blocks_are_run_and_the_others_tell_why() -> None:
    blocks = [block for page in pages() for block in blocks_of(page) if block.kind in COMMANDS]
    left = [block for block in blocks if block.marked("not run")]
    assert all(len(reason) > 10 for block in left for reason in block.marked("not run"))
    assert len(left) < len(blocks) / 3, [f"{each.page}:{each.line}" for each in left]
    nothing = [
        f"{each.page}:{each.line}" for each in blocks if each not in left and not each.commands
    ]
    assert nothing == [], "a block of commands has none"


def test_a_command_that_fails_and_an_output_that_differs_are_reported(tmp_path: Path) -> None:
    page = ROOT / "docs" / "index.md"
    block = blocks_of(ROOT / "README.md")[0]._replace(page=page.name, line=1, marks=())
    for text, fault in (
        ("$ false\n", "index.md:1: false\nended with 1:\n"),
        (
            "$ echo one 12\none 7\ntwo\n",
            "index.md:1: echo one 12\ndoes not print\ntwo\nbut\none 12",
        ),
    ):
        folder = tmp_path / str(len(text))
        folder.mkdir()
        with pytest.raises(CommandFailedError) as caught:
            list(Reader(folder, Path("/bin/true")).follow([block._replace(text=text)]))
        assert str(caught.value).strip() == fault.strip()


@pytest.mark.parametrize(
    ("shown", "printed", "lines"),
    [
        pytest.param(["pods 3"], "pods  17\n", [], id="numbers and widths may differ"),
        pytest.param(["a … z"], "a and so on to z", [], id="an ellipsis stands for anything"),
        pytest.param(["... 0/3 nodes"], "x: 0/4 nodes", [], id="three dots do as well"),
        pytest.param(["one", "two"], "one", ["two"], id="a line that is not printed"),
    ],
)
def test_outputs_are_compared_loosely(shown: list[str], printed: str, lines: list[str]) -> None:
    assert missing(shown, printed) == lines
