"""What a plugin may raise: thirty kinds, each a function that raises."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, NoReturn


class OwnBaseError(BaseException):
    """Neither an Exception nor one of Python's own."""


class TextInterrupts(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise KeyboardInterrupt


class TextRaises(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("no text")


class TextIsNoText(Exception):  # noqa: N818
    def __str__(self) -> Any:
        return 5  # noqa: PLE0307 - that is the kind


class ArgumentInterrupts:
    def __repr__(self) -> str:
        raise SystemExit(4)


class MadeByRaising(Exception):  # noqa: N818
    def __init__(self, needed: int) -> None:
        super().__init__(needed)


def _raiser(problem: Callable[[], BaseException | type[BaseException]]) -> Callable[..., NoReturn]:
    def call(*_: object, **__: object) -> NoReturn:
        raise problem()

    return call


def _with_cause() -> BaseException:
    first: BaseException = ValueError("first")
    for number in range(20_000):
        problem = ValueError(f"number {number}")
        problem.__cause__ = first
        first = problem
    return first


def _with_itself_as_cause() -> BaseException:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    return one


def _with_evil_notes() -> BaseException:
    problem = ValueError("noted")
    problem.__notes__ = [ArgumentInterrupts()]  # type: ignore[list-item]
    return problem


def _deep(*_: object, **__: object) -> NoReturn:
    sys.setrecursionlimit(20_000)

    def descend(level: int) -> NoReturn:
        if level > 15_000:
            raise ValueError("deep")
        descend(level + 1)

    descend(0)
    raise AssertionError


def _endless(*_: object, **__: object) -> NoReturn:
    def descend() -> NoReturn:
        descend()

    descend()
    raise AssertionError


def _shallow(*_: object, **__: object) -> NoReturn:
    sys.setrecursionlimit(sys.getrecursionlimit() - 100)
    raise ValueError("shallow")


def _generator_exit_of_a_generator(*_: object, **__: object) -> NoReturn:
    def numbers() -> Any:
        yield 1

    found = numbers()
    next(found)
    found.throw(GeneratorExit("thrown in"))
    raise AssertionError


KINDS: dict[str, tuple[Callable[..., NoReturn], str]] = {
    "KeyboardInterrupt": (_raiser(KeyboardInterrupt), "it raised KeyboardInterrupt()"),
    "GeneratorExit": (_raiser(GeneratorExit), "it raised GeneratorExit()"),
    "GeneratorExit thrown into a generator": (
        _generator_exit_of_a_generator,
        "it raised GeneratorExit('thrown in')",
    ),
    "SystemExit": (
        _raiser(lambda: SystemExit(3)),
        "it tried to end the process: SystemExit(3)",
    ),
    "SystemExit whose code has no text": (
        _raiser(lambda: SystemExit(ArgumentInterrupts())),
        "it tried to end the process: SystemExit",
    ),
    "CancelledError": (_raiser(asyncio.CancelledError), "it raised CancelledError()"),
    "BaseException": (_raiser(lambda: BaseException("base")), "it raised BaseException('base')"),
    "an own BaseException": (_raiser(OwnBaseError), "it raised OwnBaseError()"),
    "BaseExceptionGroup": (
        _raiser(lambda: BaseExceptionGroup("all", [KeyboardInterrupt()])),
        "it raised BaseExceptionGroup('all', [KeyboardInterrupt()])",
    ),
    "ExceptionGroup": (
        _raiser(lambda: ExceptionGroup("all", [ValueError("one")])),
        "all (1 sub-exception)",
    ),
    "StopIteration": (_raiser(lambda: StopIteration(5)), "5"),
    "StopAsyncIteration": (_raiser(StopAsyncIteration), "StopAsyncIteration"),
    "RuntimeError": (_raiser(lambda: RuntimeError("boom")), "boom"),
    "an exception without a text": (_raiser(RuntimeError), "RuntimeError"),
    "AssertionError": (_raiser(AssertionError), "AssertionError"),
    "MemoryError": (_raiser(MemoryError), "MemoryError"),
    "TimeoutError": (_raiser(lambda: TimeoutError("late")), "late"),
    "OSError": (_raiser(lambda: OSError(28, "No space left")), "[Errno 28] No space left"),
    "a Warning": (_raiser(lambda: UserWarning("careful")), "careful"),
    "RecursionError": (_endless, "maximum recursion depth exceeded"),
    "an exception from deep down": (_deep, "deep"),
    "a lower recursion limit": (_shallow, "shallow"),
    "a text that interrupts": (_raiser(TextInterrupts), "TextInterrupts"),
    "a text that raises": (_raiser(TextRaises), "TextRaises"),
    "a text that is none": (_raiser(TextIsNoText), "TextIsNoText"),
    "an argument whose text exits": (
        _raiser(lambda: KeyError(ArgumentInterrupts())),
        "KeyError",
    ),
    "an exception that cannot be made": (
        _raiser(lambda: MadeByRaising),
        "MadeByRaising.__init__() missing 1 required positional argument: 'needed'",
    ),
    "a number": (_raiser(lambda: 5), "exceptions must derive from BaseException"),  # type: ignore[arg-type,return-value]
    "a text of 10 MB": (
        _raiser(lambda: ValueError("x" * 10_000_000)),
        "x... (10000000 characters)",
    ),
    "a text with half a character": (_raiser(lambda: ValueError("\udc80")), "?"),
    "a long chain of causes": (_raiser(_with_cause), "number 19999"),
    "a cause of itself": (_raiser(_with_itself_as_cause), "one"),
    "notes that exit": (_raiser(_with_evil_notes), "noted"),
}
