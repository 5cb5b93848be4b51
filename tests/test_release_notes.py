"""Fragments become a release's section in the changelog, in the order the rule gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.release.release_notes import release, release_section


def test_a_section_lists_kinds_then_issues_in_order() -> None:
    fragments = {
        "12.fix.md": "Before,\nit was wrong.\n",
        "3-2.fix.md": "Second.\n",
        "3.fix.md": "First.\n",
        "12.breaking.md": "Gone.\n",
    }
    assert release_section("1.0.0", "2027-01-02", fragments).splitlines() == [
        "## 1.0.0 (2027-01-02)",
        "",
        "### Breaking",
        "",
        "- Gone. (#12)",
        "",
        "### Fixed",
        "",
        "- First. (#3)",
        "- Second. (#3)",
        "- Before, it was wrong. (#12)",
    ]


@pytest.mark.parametrize(
    ("fragments", "message"),
    [
        pytest.param({}, "nothing to release", id="no fragments"),
        pytest.param({"x.md": ""}, "x.md is not named", id="a name without issue and kind"),
        pytest.param({"1.idea.md": ""}, "with kind one of", id="a kind that does not exist"),
    ],
)
def test_a_release_is_refused(fragments: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        release_section("1.0.0", "2027-01-02", fragments)


def test_a_release_goes_above_the_older_one_and_uses_the_fragments_up(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    changelog = tmp_path / "docs" / "changelog.md"
    changelog.write_text("# Changelog\n\nIntro.\n\n## 0.1.0 (2026-11-20)\n\n- Old. (#1)\n")
    (tmp_path / "changelog.d").mkdir()
    readme = tmp_path / "changelog.d" / "README.md"
    readme.write_text("the rule")
    (tmp_path / "changelog.d" / "5.feature.md").write_text("New thing.\n")
    release(tmp_path, "0.2.0", "2026-12-01")
    assert changelog.read_text() == (
        "# Changelog\n\nIntro.\n\n## 0.2.0 (2026-12-01)\n\n### New\n\n- New thing. (#5)\n"
        "\n## 0.1.0 (2026-11-20)\n\n- Old. (#1)\n"
    )
    assert list((tmp_path / "changelog.d").iterdir()) == [readme]
