"""Semantic versions 2.0.0, as device attributes hold them and selectors compare them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_NUMBER: Final = r"0|[1-9][0-9]*"
_FORM: Final = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})"
    rf"(?:-(?P<pre>[0-9A-Za-z.-]+))?(?:\+(?P<build>[0-9A-Za-z.-]+))?",
    re.ASCII,
)
_LOOSE: Final = re.compile(r"v?(?P<core>[0-9]+(?:\.[0-9]+){0,2})(?P<rest>[-+].*)?", re.ASCII)
_UINT64_MAX: Final = 2**64 - 1


class Version(NamedTuple):
    """A version without its build metadata, which comparison leaves out."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The version as written, build metadata left out."""
        return f"{self.major}.{self.minor}.{self.patch}" + (
            f"-{'.'.join(self.pre)}" if self.pre else ""
        )

    @property
    def precedence(self) -> tuple[object, ...]:
        """A key for comparing versions: a release is above its pre-releases."""
        # Numbers are below words, and a longer list is above its own beginning.
        words = tuple((0, int(w), "") if w.isdigit() else (1, 0, w) for w in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, words)


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version:
    """Read a version strictly: three numbers without leading zeros.

    Raises
    ------
    ValueError
        Not a semantic version; the message names the fault.

    Notes
    -----
    Accepts the versions that github.com/blang/semver v4 ``Parse`` accepts; Kubernetes reads
    versions with it.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no semantic version (three numbers, no leading zeros)")
    pre = tuple(match["pre"].split(".")) if match["pre"] else ()
    build = match["build"].split(".") if match["build"] else []
    if not all(pre) or not all(build):
        raise ValueError(f"{text!r} is no semantic version: an identifier is empty")
    if any(word.isdigit() and len(word) > 1 and word[0] == "0" for word in pre):
        raise ValueError(f"{text!r} is no semantic version: a number begins with 0")
    version = Version(int(match["major"]), int(match["minor"]), int(match["patch"]), pre)
    if max(version[:3]) > _UINT64_MAX:
        raise ValueError(f"{text!r} is no semantic version: a number is beyond 64 bits")
    return version


def normalized(text: str) -> str:
    """Return a loosely written version in strict form: ``v1.02`` is ``1.2.0``.

    Text that is no version even so is returned as it is; `parse_version` then says why.
    """
    match = _LOOSE.fullmatch(text)
    if match is None:
        return text
    numbers = [str(int(number)) for number in match["core"].split(".")]
    return ".".join((*numbers, *["0"] * (3 - len(numbers)))) + (match["rest"] or "")
