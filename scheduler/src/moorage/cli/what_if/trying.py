"""Tries changes: a running scheduler does, or they are rehearsed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from moorage.base.clock import SystemClock
from moorage.cli.what_if.source import Source, ask_scheduler, load
from moorage.what_if.change import Apply, Change, Delete, Scale
from moorage.what_if.consequences import ChangeComparison
from moorage.what_if.course import Reconfigure, Step, try_steps
from moorage.what_if.limits import Limits
from moorage.what_if.wire import WHAT_IF, WhatIfAnswer, WhatIfBody


class Tried(msgspec.Struct, frozen=True):
    """The consequences of changes.

    Parameters
    ----------
    course
        The pods that the user may read.
    worse
        A sentence for each deterioration; it counts all pods.
    source
        Where the answer comes from, in words.
    """

    course: ChangeComparison
    worse: tuple[str, ...]
    source: str


def tried(source: Source, steps: Sequence[Step]) -> Tried:
    """Return the consequences of changes.

    Raises
    ------
    MoorageError
        A change cannot be made, or there is nobody to ask and nothing to compute from.
    """
    changes: list[Change] = [each for each in steps if not isinstance(each, Reconfigure)]
    answered = ask_scheduler(
        source,
        WHAT_IF,
        lambda manifests: WhatIfBody(tuple(changes), manifests),
        answer=WhatIfAnswer,
        owners=_owners(changes),
        computed_by=() if len(changes) == len(steps) else ("another configuration or plugin",),
    )
    if answered is not None:
        answer, told = answered
        return Tried(answer.course, answer.worse, told)
    inputs, told = load(source)
    course = try_steps(inputs, steps, check=Limits(SystemClock()).check_limits)
    return Tried(course, course.worse, told)


def _owners(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the kinds that changes are about."""
    for each in changes:
        if isinstance(each, Scale | Delete):
            yield each.kind
        elif isinstance(each, Apply):
            yield str(each.manifest.get("kind") or "")
