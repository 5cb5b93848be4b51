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
from moorage.bench.scheduler_perf.go_template import GoTemplate

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
        self._plain: dict[str, Manifest] = {}

    def path_of(self, name: str) -> Path:
        """Return where a file is: below the folder, or below the folder above it.

        Notes
        -----
        Until v1.32 the suite was one folder above its file, which was in the folder ``config``.
        """
        path, above = self._folder / name, self._folder.parent / name
        return above if above.exists() and not path.exists() else path

    def manifest(
        self, name: str, index: int = 0, *, count: int = 1, params: Mapping[str, Any] | None = None
    ) -> Manifest:
        """Return the object of a template.

        Parameters
        ----------
        index, count
            The object's number, from 0, and how many there are.
        params
            Further values that the template may name.

        Raises
        ------
        UsageError
            The file cannot be read, or is no manifest.
        """
        plain = self._plain.get(name)
        if plain is not None:
            return copy.deepcopy(plain)
        try:
            template = self._template(name)
            text = template.render({**(params or {}), "Index": index, "Count": count})
            found = read_one(text)
        except DecodeError as error:
            raise UsageError(f"{self.path_of(name)}: {error}") from error
        if not isinstance(found, dict) or not found.get("kind") or not found.get("apiVersion"):
            raise UsageError(f"{self.path_of(name)}: expected a manifest with apiVersion and kind")
        if template.is_plain:
            self._plain[name] = found
            return copy.deepcopy(found)
        return found

    def _template(self, name: str) -> GoTemplate:
        found = self._parsed.get(name)
        if found is None:
            path = self.path_of(name)
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"{path}: cannot be read: {error}") from error
            found = self._parsed[name] = GoTemplate(text)
        return found
