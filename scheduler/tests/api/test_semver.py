"""Semantic versions: what is one, what is made one, and their order."""

from __future__ import annotations

import pytest

from moorage.api.semver import Version, normalized, parse_version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1.2.3", Version(1, 2, 3), id="three numbers"),
        pytest.param("1.2.3-rc.1", Version(1, 2, 3, ("rc", "1")), id="a pre-release"),
        pytest.param("1.2.3+b01", Version(1, 2, 3), id="build metadata is left out"),
        pytest.param("0.0.0-0a.-", Version(0, 0, 0, ("0a", "-")), id="odd identifiers"),
        pytest.param("1.2", None, id="two numbers are not enough"),
        pytest.param("v1.2.3", None, id="no v before it"),
        pytest.param("1.02.3", None, id="no leading zeros"),
        pytest.param("1.2.3-01", None, id="nor in a pre-release"),
        pytest.param("1.2.3-a..b", None, id="no empty identifier"),
        pytest.param("1.2.3+", None, id="no empty build metadata"),
        pytest.param("1.2.18446744073709551616", None, id="nothing beyond 64 bits"),
        pytest.param("1.2.\uff13", None, id="ASCII digits only"),
    ],
)
def test_which_text_is_a_semantic_version(text, expected):
    if expected is not None:
        assert parse_version(text) == expected
        return
    with pytest.raises(ValueError, match="no semantic version"):
        parse_version(text)


def test_the_order_of_versions():
    """The chain of section 11 of semver.org, and releases."""
    chain = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.2.0",
        "1.10.0",
        "2.0.0",
    ]
    shuffled = sorted(chain, key=lambda text: text[::-1])
    assert sorted(shuffled, key=lambda text: parse_version(text).precedence) == chain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("v1", "1.0.0", id="missing numbers are 0"),
        pytest.param("01.02", "1.2.0", id="leading zeros go"),
        pytest.param("v1.2.3-rc.1", "1.2.3-rc.1", id="a pre-release stays"),
        pytest.param("one", "one", id="text without a version is unchanged"),
    ],
)
def test_a_loosely_written_version_is_normalized(text, expected):
    assert normalized(text) == expected
