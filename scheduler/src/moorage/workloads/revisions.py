"""Revisions of a pod template, as ControllerRevisions keep them."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.api.meta import ApiObject
from moorage.workloads.objects import Json


class Revision(ApiObject, frozen=True, kw_only=True):
    """apps/v1 ControllerRevision: a patch that restores a template, and the revision number."""

    data: dict[str, Any] = {}  # noqa: RUF012  (the codec library copies it)
    revision: int = 0

    @property
    def template(self) -> Json:
        """The pod template of this revision."""
        template = (self.data.get("spec") or {}).get("template") or {}
        return {name: value for name, value in template.items() if name != "$patch"}


class History(msgspec.Struct, frozen=True):
    """The revisions of an object, oldest first, and the revision of its template."""

    every: list[Revision]
    update: Revision

    def revision_named(self, name: str) -> Revision:
        """Return the revision of a name; the newest revision if no revision has the name."""
        return next((each for each in self.every if each.name == name), self.update)
