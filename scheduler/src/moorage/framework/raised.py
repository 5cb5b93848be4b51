"""What plugins from outside raise, made harmless: a short text, and a short traceback.

An exception is an object of the plugin. Its text may be made by code of the plugin, be as long as
the memory, or never end. Its traceback has an entry for each level of a recursion, and writing two
million of them to the log takes minutes.
"""

from __future__ import annotations

import builtins
import opcode
import signal
from typing import Any, Final

from moorage.base.entry_points import is_own_module
from moorage.base.outside_texts import TEXT_MAX, cut_text

_FRAMES_MAX: Final = 50
_CHAIN_MAX: Final = 10
_PLAIN: Final = (str, int, float, bool, bytes, type(None))
_BUILTIN: Final = tuple(
    each
    for each in vars(builtins).values()
    if isinstance(each, type) and issubclass(each, BaseException)
)
_TEXT_METHODS: Final = frozenset(each.__str__ for each in _BUILTIN)
_RAISING: Final = frozenset({"RAISE_VARARGS", "RERAISE"})


def text_of(problem: BaseException) -> str:
    """Return the text of an exception, or its type where it has none; long texts are cut."""
    try:
        text = str(problem) if isinstance(problem, Exception) else repr(problem)
    except Exception:
        text = ""
    return cut_text(text) or type(problem).__name__


def safe_text_of(problem: BaseException) -> str:
    """Return the text of an exception, or its type where making the text raises anything."""
    try:
        return text_of(problem)
    except BaseException as again:
        if is_signal(again):
            raise
        return type(problem).__name__


def passes_unchanged(problem: BaseException) -> bool:
    """Whether an exception is harmless as it is: of this package, or of Python and plain inside."""
    kind = type(problem)
    if not isinstance(problem, Exception) or isinstance(
        problem, StopIteration | StopAsyncIteration | ExceptionGroup
    ):
        return False
    if is_own_module(kind.__module__):
        return True
    inside: Any = (*problem.args, *getattr(problem, "__notes__", ()))
    return kind.__str__ in _TEXT_METHODS and all(
        type(each) in _PLAIN and not (isinstance(each, str | bytes) and not _is_writable(each))
        for each in inside
    )


def _is_writable(text: str | bytes) -> bool:
    """Whether a text can be written to a log: it is not long, and has no half surrogate pair."""
    if len(text) > TEXT_MAX:
        return False
    try:
        return isinstance(text, bytes) or text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def shorten(problem: BaseException) -> None:
    """Cut tracebacks and chains of causes to what a person reads, and can read without harm."""
    _cut(problem)
    link = problem
    for _ in range(_CHAIN_MAX):
        cause = link.__cause__ or link.__context__
        if cause is None:
            return
        if not passes_unchanged(cause):
            break
        _cut(cause)
        link = cause
    link.__cause__ = link.__context__ = None


def _cut(problem: BaseException) -> None:
    entry = problem.__traceback__
    for _ in range(_FRAMES_MAX):
        if entry is None:
            return
        entry = entry.tb_next
    if entry is not None:
        entry.tb_next = None


def is_signal(problem: BaseException) -> bool:
    """Whether an exception is a SIGINT of the process, not a statement of the plugin.

    Python raises KeyboardInterrupt between two instructions, and only if the handler of the signal
    is one that raises; a plugin raises it by an instruction.
    """
    if type(problem) is not KeyboardInterrupt:
        return False
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or getattr(handler, "__name__", "") == "_sighandler_noop":
        return False
    entry = problem.__traceback__
    if entry is None:
        return True
    while entry.tb_next is not None:
        entry = entry.tb_next
    return opcode.opname[entry.tb_frame.f_code.co_code[entry.tb_lasti]] not in _RAISING
