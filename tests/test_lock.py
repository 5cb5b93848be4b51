"""requirements.lock covers pyproject.toml, is hashed throughout and names no index."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def _locked() -> dict[str, list[str]]:
    """Versions by package name; a package may be locked twice under different markers."""
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", LOCK, flags=re.MULTILINE):
        versions.setdefault(canonicalize_name(name), []).append(version)
    return versions


def _wanted() -> list[str]:
    extras = PYPROJECT["project"]["optional-dependencies"].values()
    lists = [PYPROJECT["project"]["dependencies"], PYPROJECT["build-system"]["requires"], *extras]
    return sorted({r for group in lists for r in group if not r.startswith("moorage")})


@pytest.mark.parametrize("text", _wanted())
def test_each_requirement_is_locked_at_a_version_it_allows(text: str) -> None:
    requirement = Requirement(text)
    versions = _locked().get(canonicalize_name(requirement.name), [])
    assert versions, "run make lock"
    assert [v for v in versions if v not in requirement.specifier] == []


def test_each_locked_package_has_a_hash() -> None:
    blocks = re.split(r"\n(?=[\w])", re.sub(r"^#.*\n", "", LOCK, flags=re.MULTILINE))
    assert [block for block in blocks if "--hash=sha256:" not in block] == []


def test_the_lock_names_no_index_and_no_file() -> None:
    assert re.findall(r"https?:|file:|--(?:extra-)?index|--find-links", LOCK) == []
