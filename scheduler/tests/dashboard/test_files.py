"""The files of the page: libraries are what their authors published, and nothing is loaded."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

import moorage.dashboard
from moorage.dashboard.files import INDEX, page_files

ROOM = Path(moorage.dashboard.__file__).parent
VENDOR = ROOM / "static" / "vendor"
VENDORED = json.loads((ROOM / "vendored.json").read_text())
OWN = sorted(path for path in page_files() if not path.startswith("vendor/"))


def test_libraries_have_the_hashes_on_record() -> None:
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file()
    }
    assert found == {
        f"{each['package']}/{name}": digest
        for each in VENDORED
        for name, digest in each["files"].items()
    }


def test_each_library_is_on_record_with_version_licence_and_source() -> None:
    for each in VENDORED:
        assert set(each) == {"package", "version", "licence", "from", "sha256", "files"}
        assert each["from"].endswith(f"/{each['package']}-{each['version']}.tgz")


@pytest.mark.parametrize("path", OWN)
def test_no_file_of_the_page_names_another_server(path: str) -> None:
    text = page_files()[path].body.decode()
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", text) == []


@pytest.mark.parametrize("path", [path for path in OWN if path.endswith(".js")])
def test_objects_reach_the_page_as_text_only(path: str) -> None:
    unsafe = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "unsafeHTML",
        "eval(",
    )
    text = page_files()[path].body.decode()
    assert [word for word in unsafe if word in text] == []


@pytest.mark.parametrize("path", [path for path in OWN if path.endswith(".js")])
def test_every_import_of_the_page_is_a_file_of_the_page(path: str) -> None:
    files = page_files()
    for wanted in re.findall(r'^import .*?"(.*?)";', files[path].body.decode(), re.M | re.S):
        found = (Path("/") / path).parent / wanted
        parts: list[str] = []
        for part in found.parts[1:]:
            if part == "..":
                parts.pop()
            elif part != ".":
                parts.append(part)
        assert "/".join(parts) in files


def test_the_first_page_is_there() -> None:
    assert page_files()[INDEX].content_type.startswith("text/html")
