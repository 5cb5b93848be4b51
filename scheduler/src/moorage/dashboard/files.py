"""The files of the page, and the libraries among them with their hashes."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

import msgspec

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
INDEX: Final = "index.html"


class PageFile(msgspec.Struct, frozen=True):
    """A file of the page: its content and media type."""

    body: bytes
    content_type: str


def page_files() -> dict[str, PageFile]:
    """Return every file that the page consists of, by its path below ``static``."""
    return dict(_files_under(resources.files("moorage.dashboard").joinpath("static"), ""))


def _files_under(folder: Traversable, path: str) -> list[tuple[str, PageFile]]:
    files: list[tuple[str, PageFile]] = []
    for each in folder.iterdir():
        if each.is_dir():
            files += _files_under(each, f"{path}{each.name}/")
        elif kind := _TYPES.get(each.name.rpartition(".")[2]):
            files.append((f"{path}{each.name}", PageFile(each.read_bytes(), kind)))
    return files
