"""Each section of the scheduling spec that the code cites is a heading of its page.

Left out: whether the sections say what kube-scheduler does; the conformance cases look at that.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import packages

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "scheduling-spec.md"
SECTIONS = re.compile(r"([a-z][a-z -]*?) sections? ([A-D\d.]+(?:(?:, | and | to )[A-D\d.]+)*)")


def citations(text: str) -> list[str]:
    """Return the sections that a text cites, as the page names them: ``Cycle 3.4``."""
    if "cheduling spec" not in text:
        return []
    line = " ".join(text.replace("\n#", " ").split())
    cited = []
    for rest in re.findall(r"[Ss]cheduling spec[,:]? ([^();]{0,120})", line):
        for area, numbers in SECTIONS.findall(rest.partition(". ")[0]):
            name = area.removeprefix("and ").strip().capitalize()
            cited += [
                f"{name} {each}" for each in re.findall(r"[A-D]?\d+(?:\.\d+)?|[A-D]", numbers)
            ]
    return cited


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("Rules: scheduling spec, cycle sections 3.4 and 10.", ["Cycle 3.4", "Cycle 10"]),
        ("(scheduling spec, queue\n# sections 9 and 10).", ["Queue 9", "Queue 10"]),
        (
            "scheduling spec, cycle section 9 and gang sections A4 to A6 (kubernetes",
            ["Cycle 9", "Gang A4", "Gang A6"],
        ),
        ("Scheduling spec, gang sections B and C. Cycle section 4.", ["Gang B", "Gang C"]),
    ],
)
def test_the_sections_of_a_citation_are_read(text: str, cited: list[str]) -> None:
    assert citations(text) == cited


def test_each_cited_section_is_in_the_documents() -> None:
    headings = re.findall(r"(?m)^### ([A-Z][a-z -]* [A-D]?[\d.]*) ", PAGE.read_text())
    paths = [
        *packages.modules().values(),
        *(path for folder in packages.TESTS for path in (ROOT / folder).rglob("*.py")),
        *(ROOT / "tools").rglob("*.py"),
    ]
    cited = {
        section
        for path in paths
        if path != Path(__file__)
        for section in citations(path.read_text())
    }
    assert len(cited) > 30
    assert cited - set(headings) == set()


def test_contributors_are_sent_to_the_page() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert "docs/reference/scheduling-spec.md" in text
    assert "next to this repository" not in text
