"""Reads from the command of a container how it runs: ``sleep``, ``exit``, ``true`` and ``false``.

No container runs, so a command tells something only where its end does not depend on anything
else. Such commands are common in the pods of jobs and of tests.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.api.pod import Container

_SHELLS: Final = frozenset({"sh", "ash", "bash", "/bin/sh", "/bin/ash", "/bin/bash"})
# Characters by which a shell expands words, redirects output, or runs a command next to the rest.
_MORE: Final = re.compile(r"[$`<>|(){}*?\[\]~#]|(?<!&)&(?!&)")
_STEP: Final = re.compile(r"\s*(;|&&|\n)\s*")
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)")
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_CODE_MAX: Final = 255


class CommandRun(msgspec.Struct, frozen=True):
    """How a command runs: for how many seconds (None for ever), and with which exit code."""

    seconds: float | None = 0.0
    exit_code: int = 0


def course_of(container: Container) -> CommandRun | None:
    """Return how the command of a container runs; None if the command does not tell.

    Parameters
    ----------
    container
        Its command and its arguments count together, as in a container.
    """
    words = [*container.command, *container.args]
    if not container.command:
        return None
    if len(words) == 3 and words[0] in _SHELLS and words[1] == "-c":
        return _script(words[2])
    course = _simple(words)
    return None if words[0] == "exit" else course


def _script(script: str) -> CommandRun | None:
    """Return how a script of known commands runs; None if one of them is not known."""
    if _MORE.search(script):
        return None
    seconds, code, joint = 0.0, 0, ";"
    for index, part in enumerate(_STEP.split(script.strip(" \n;"))):
        if index % 2:
            joint = part
            continue
        try:
            words = shlex.split(part)
        except ValueError:
            return None
        course = _simple(words)
        if course is None:
            return None
        if joint == "&&" and code:
            continue
        if course.seconds is None:
            return CommandRun(None)
        seconds, code = seconds + course.seconds, course.exit_code
        if words[0] == "exit":
            break
    return CommandRun(seconds, code)


def _simple(words: Sequence[str]) -> CommandRun | None:
    match words:
        case ["true"] | ["echo", *_]:
            return CommandRun()
        case ["false"]:
            return CommandRun(exit_code=1)
        case ["exit", code] if code.isdecimal() and int(code) <= _CODE_MAX:
            return CommandRun(exit_code=int(code))
        case ["sleep", "infinity" | "inf"]:
            return CommandRun(None)
        case ["sleep", duration] if found := _DURATION.fullmatch(duration):
            return CommandRun(float(found[1]) * _UNITS[found[2]])
        case _:
            return None
