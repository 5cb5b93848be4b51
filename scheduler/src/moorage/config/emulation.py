"""The version of Kubernetes that is emulated: its spellings, and what may not be combined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.config.gate_table import V1_36, VERSIONS
from moorage.config.strict import quoted, unsupported

DEFAULT_VERSION: Final = V1_36
"""The version that is emulated if nobody names one."""
COMPATIBLE_VERSIONS: Final = ("1.35", *VERSIONS)
"""The versions that may be the oldest one in a cluster."""
_SPELLINGS: Final = ", ".join(f"{prefix}{VERSIONS[-1]}" for prefix in ("v", "kube=", "kube=v"))
EMULATED_TEXT: Final = (
    f"Kubernetes version whose decisions are made: {' or '.join(VERSIONS)}; also {_SPELLINGS}"
)
OLDEST_TEXT: Final = (
    f"Oldest Kubernetes version in the cluster: {COMPATIBLE_VERSIONS[0]} to the emulated one"
)
"""The help of the two flags, for every command that has them."""
_FIELDS: Final = ("emulatedVersion", "minCompatibilityVersion")


def version_of(text: str) -> str:
    """Return the version in a text: ``1.37``, ``v1.37``, ``kube=1.37`` or ``kube=v1.37``."""
    return text.removeprefix("kube=").removeprefix("v")


def minor_of(version: str) -> int:
    """Return 37 for version ``1.37``."""
    return int(version.partition(".")[2])


def emulation_faults(
    emulated: str, oldest: str, *, names: tuple[str, str] = _FIELDS
) -> Iterator[str]:
    """Yield the faults of two versions, as Kubernetes field errors.

    Parameters
    ----------
    emulated
        The version to emulate, in any spelling.
    oldest
        The minimal compatibility version, in any spelling; "" if nobody names one.
    names
        What the user calls both.
    """
    version, compatible = version_of(emulated), version_of(oldest)
    if version not in VERSIONS:
        yield _unsupported(names[0], emulated, VERSIONS)
    if not oldest:
        return
    if compatible not in COMPATIBLE_VERSIONS:
        yield _unsupported(names[1], oldest, COMPATIBLE_VERSIONS)
    elif version in VERSIONS and minor_of(compatible) > minor_of(version):
        yield (
            f"{names[1]}: Invalid value: {quoted(oldest)}: must not be newer than the emulated "
            f"version {version}"
        )


def _unsupported(name: str, value: str, versions: tuple[str, ...]) -> str:
    newest = versions[-1]
    return (
        f"{unsupported(name, value, versions)}; {newest} may also be written v{newest}, "
        f"kube={newest} or kube=v{newest}"
    )
