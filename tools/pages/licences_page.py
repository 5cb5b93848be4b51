"""Writes the reference page of licences, from the record of the locked packages."""

from __future__ import annotations

from tools.release.packages import ALLOWED, Scope, recorded, scopes, vendored

_HEAD = """# Licences

<!-- Written by `make docs` from docs/packages.json. Do not edit. -->

moorage is under Apache-2.0. Here are the licences of all packages of the lock, as SPDX expressions.
`make licences` reads them from the packages' own metadata after each `make lock`. Where the
metadata names no SPDX id, the text of the licence was read; these packages are named in
`tools/release/packages.py`. A test fails when a licence is unknown, or has a part that is none of
these: {allowed}.

The last table has the packages whose files are part of moorage. All others are installed
next to it.
"""
_TITLES: dict[Scope, str] = {
    "required": "At run time",
    "optional": "For extras",
    "excluded": "For development only",
}


def licences_page() -> str:
    """Return the page: a table for each scope."""
    packages, text = recorded(), _HEAD.format(allowed=", ".join(sorted(ALLOWED)))
    scope = scopes(packages)
    for wanted, title in _TITLES.items():
        text += f"\n## {title}\n\n| Package | Version | Licence |\n|---|---|---|\n"
        for pin, package in packages.items():
            name, _, version = pin.partition("==")
            if scope[name] == wanted:
                text += f"| {name} | {version} | {package.licence} |\n"
    text += "\n## Part of moorage\n\n| Package | Version | Licence |\n|---|---|---|\n"
    for each in vendored():
        text += f"| {each.package} (npm) | {each.version} | {each.licence} |\n"
    return text
