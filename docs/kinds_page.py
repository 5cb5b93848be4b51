"""The page of the API server's kinds: kept, validated or alive."""

from __future__ import annotations

from moorage.apiserver.kinds.registry import GROUPS, all_kinds
from moorage.apiserver.kinds.served import ServedKind

_HEADER = """# Kinds of the embedded API server

<!-- Written by `make docs` from moorage.apiserver.kinds. Do not edit. -->

`moorage up` serves every resource of Kubernetes v1.36, in every version. Each object is checked
against the schema of its version (types, unknown fields), stored, listed, watched, patched and
applied. Tables show at least name and age.

- **kept**: nothing more happens. The object is there for the programs that read it.
- **validated**: the kind has defaults and rules as upstream, and columns of its own.
- **alive**: a part of moorage acts on the objects.

"Stored as" names the version an object is stored in, where that is another one.

| Kind | API version | Here | Acted on by | Subresources | Stored as |
|---|---|---|---|---|---|
"""
_FOOTER = """
Refused with a reason: `attach`, `exec`, `portforward`, and `proxy` of pods, services and nodes,
which need a running container. Reviews (`authentication.k8s.io`, `authorization.k8s.io`) and
`bindings` are answered and never stored.
"""


def kinds_page() -> str:
    """Return the page: one row for each kind and version."""
    own = {kind.resource for group in GROUPS for kind in group}
    kinds = sorted(all_kinds(), key=lambda kind: (kind.resource.kind, kind.resource.api_version))
    return _HEADER + "".join(_row(kind, own=kind.resource in own) for kind in kinds) + _FOOTER


def _row(kind: ServedKind, *, own: bool) -> str:
    resource, translation = kind.resource, kind.translation
    stored = translation.stored.api_version if translation else ""
    state = (
        "alive" if kind.acted_on_by else "validated" if own else "as stored" if stored else "kept"
    )
    parts = ", ".join(f"`{name}`" for name in sorted(kind.subresources))
    return (
        f"| {resource.kind} | {resource.api_version} | {state} | {kind.acted_on_by} | {parts} "
        f"| {stored} |\n"
    )
