"""The reader of ``first_hour.txt``: what its lines mean, and that a claim can fail.

Left out: the hour itself, which ``make proof`` follows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.first_hour import TEXT, Claim, Newcomer, NotSoError, Step, parts_of

WRITTEN = """\
What it is.

## 1 Begin
$ echo one
~ ^one$
- two
! 3 exit 3
@ 80x24 2.5 moorage up

## 2 Go on
> a.txt
$ not a step
<
"""


def test_the_lines_of_a_text_become_steps() -> None:
    assert parts_of(WRITTEN) == {
        "1 Begin": [
            Step("$", "echo one", claims=(Claim("^one$", holds=True), Claim("two", holds=False))),
            Step("!", "exit 3", code=3),
            Step("@", "moorage up", size="80x24 2.5"),
        ],
        "2 Go on": [Step(">", "a.txt", text="$ not a step\n")],
    }


def test_a_line_that_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no step: whoops"):
        parts_of("## 1 Begin\nwhoops\n")


def test_the_hour_goes_through_all_items() -> None:
    assert [int(name.partition(" ")[0]) for name in parts_of(TEXT.read_text())] == [*range(1, 13)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("$ false", "false: ended with 1, not 0", id="another exit code"),
        pytest.param("! 2 true", "true: ended with 0, not 2", id="an exit code of 0"),
        pytest.param("$ echo one\n~ ^two", "echo one: '^two' is not printed", id="a missing line"),
        pytest.param("$ echo one\n- one", "echo one: 'one' is printed", id="an unwanted line"),
        pytest.param(
            "$ echo 'Traceback (most recent call last)'",
            "echo 'Traceback (most recent call last)': "
            "'^Traceback \\\\(most recent call last\\\\)' is printed",
            id="a traceback",
        ),
    ],
)
def test_a_claim_that_does_not_hold_is_told(
    text: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.proof.first_hour.kubectl_path", lambda _: Path("/bin/true"))
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "moorage").symlink_to("/bin/true")
    told: list[str] = []
    with pytest.raises(NotSoError) as caught:
        Newcomer(tmp_path).follow("part", parts_of(f"## part\n{text}\n")["part"], told.append)
    assert str(caught.value) == fault
    assert told
