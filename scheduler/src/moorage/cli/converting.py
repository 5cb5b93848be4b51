"""The text of ``moorage config convert``: comments, documents, and faults that are left."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from moorage.base.errors import UsageError
from moorage.cli.checking import check_text
from moorage.cli.render import yaml_text
from moorage.config.convert.files import Converted, convert_flags, convert_text
from moorage.config.convert.remarks import Kind
from moorage.config.load import file_text

_WIDTH: Final = 100
_HEADINGS: Final[tuple[tuple[Kind, str], ...]] = (
    ("dropped", "Dropped:"),
    ("changed", "Changed:"),
)


def converted(old: Path | None, flags: Mapping[str, Any]) -> Converted:
    """Convert a file, or the flags of the time.

    Raises
    ------
    UsageError
        Neither a file nor a flag is given, or both are.
    ConfigError
        The file or a flag cannot be converted.
    """
    known_flags = {name: value for name, value in flags.items() if value is not None}
    if (old is None) == (not known_flags):
        raise UsageError("give either a configuration file or flags such as --policy-config-file")
    if old is not None:
        return convert_text(file_text(old), source=str(old))
    policy = known_flags.get("policy")
    lock = {"lockObjectName": "lock_name", "lockObjectNamespace": "lock_namespace"}
    fields = {
        "schedulerName": known_flags.get("scheduler_name"),
        "hardPodAffinitySymmetricWeight": known_flags.get("weight"),
        "leaderElection": {
            key: known_flags[name] for key, name in lock.items() if name in known_flags
        }
        or None,
        "algorithmSource": {"provider": known_flags["provider"]}
        if "provider" in known_flags
        else None,
    }
    known = {key: value for key, value in fields.items() if value is not None}
    if policy is None:
        return convert_flags(known)
    return convert_flags(known, file_text(policy), source=str(policy))


def as_text(conversion: Converted, source: Path | None) -> str:
    """Return the documents as YAML, below comments about everything dropped or changed."""
    origin = "the flags of the command line" if source is None else str(source)
    lines = [f"# Written by `moorage config convert` from {origin}."]
    for kind, heading in _HEADINGS:
        remarks = [f"{each.path}: {each.text}" for each in conversion.remarks if each.kind == kind]
        if remarks:
            lines += [f"# {heading}", *(line for each in remarks for line in _comment(each))]
    return "\n".join([*lines, "\n---\n".join(yaml_text(each) for each in conversion.documents)])


def _comment(text: str) -> Iterator[str]:
    first, rest = "#   - ", "#     "
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def remaining_faults(conversion: Converted) -> Sequence[str]:
    """Return the faults that `moorage config check` finds in the converted documents."""
    return check_text("\n---\n".join(yaml_text(each) for each in conversion.documents)).faults
