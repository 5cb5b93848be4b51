"""Where the tasks of a program stand: the await in the source at which a task waits."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import moorage

_PACKAGE = f"{Path(moorage.__file__).parent}/"
# Rooms between a scheduler and its connection or its clock.
_CARRIERS = ("base/",)


def place_of(ran: Callable[..., object]) -> str:
    """Return the await at which the task of a callback stands, or the name of the callback."""
    task = getattr(ran, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return f"callback {_name(ran)}"
    coroutine: Any = task.get_coro()
    return f"end of {coroutine.__qualname__}" if task.done() else _chain(coroutine)


def _name(ran: Callable[..., object]) -> str:
    inner = ran.func if isinstance(ran, functools.partial) else ran
    return getattr(inner, "__qualname__", type(inner).__name__)


def _chain(coroutine: Any) -> str:
    """Return the awaits of the scheduler's own code, from the outermost to the innermost."""
    awaits: list[str] = []
    while coroutine is not None:
        code, line = _standing(coroutine)
        if code is not None and code.co_filename.startswith(_PACKAGE):
            path = code.co_filename.removeprefix(_PACKAGE)
            if not path.startswith(_CARRIERS):
                awaits.append(f"{path}:{line}")
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return " > ".join(awaits)


def _standing(coroutine: Any) -> tuple[CodeType | None, int]:
    frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
    return (frame.f_code, frame.f_lineno) if frame is not None else (None, 0)
