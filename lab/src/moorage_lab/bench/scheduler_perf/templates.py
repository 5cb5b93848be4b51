"""Manifests from template files: read once, rendered for each object.

Source: kubernetes v1.36 test/integration/scheduler_perf (``getSpecFromTextTemplateFile``).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moorage.api.yaml_text import read_one
from moorage.base.errors import DecodeError, UsageError
from moorage_lab.bench.scheduler_perf.go_template import GoTemplate
from moorage_lab.bench.scheduler_perf.spelling import Spelling, spelt

Manifest = dict[str, Any]


class Templates:
    """The template files of a test case.

    Parameters
    ----------
    folder
        The folder that paths start from.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parsed: dict[str, GoTemplate] = {}
        self._plain: dict[tuple[str, Spelling], Manifest] = {}

    def path_of(self, name: str) -> Path:
        """Return where a file is: below the folder, or below the folder above it.

        Notes
        -----
        Until v1.32 the suite was one folder above its file, which was in the folder ``config``.
        """
        path, above = self._folder / name, self._folder.parent / name
        return above if above.exists() and not path.exists() else path

    def manifest(
        self,
        name: str,
        index: int = 0,
        *,
        count: int = 1,
        params: Mapping[str, Any] | None = None,
        spelling: Spelling = "any case",
    ) -> Manifest:
        """Return the object of a template.

        Parameters
        ----------
        index, count
            The object's number, from 0, and how many there are.
        params
            Further values that the template may name.
        spelling
            Whether the names of fields have to be spelt as the kind spells them.

        Raises
        ------
        UsageError
            The file cannot be read, is no manifest, or has fields that its kind does not have.
        """
        plain = self._plain.get((name, spelling))
        if plain is not None:
            return copy.deepcopy(plain)
        try:
            template = self._template(name)
            text = template.render({**(params or {}), "Index": index, "Count": count})
            manifest = spelt(_object(text), spelling)
        except DecodeError as error:
            raise UsageError(f"{self.path_of(name)}: {error}") from error
        if template.is_plain:
            self._plain[name, spelling] = manifest
            return copy.deepcopy(manifest)
        return manifest

    def check_template(self, name: str) -> None:
        """Read a template.

        Raises
        ------
        UsageError
            It cannot be read, or has actions that are not understood.
        """
        try:
            self._template(name)
        except DecodeError as error:
            raise UsageError(f"{self.path_of(name)}: {error}") from error

    def _template(self, name: str) -> GoTemplate:
        template = self._parsed.get(name)
        if template is None:
            path = self.path_of(name)
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
                raise UsageError(f"{path}: cannot be read: {reason}") from error
            template = self._parsed[name] = GoTemplate(text)
        return template


def _object(text: str) -> Manifest:
    found = read_one(text)
    if not isinstance(found, dict) or not found.get("kind") or not found.get("apiVersion"):
        raise DecodeError("expected a manifest with apiVersion and kind")
    return found
