"""Contains plugins: a failure becomes the status Error with the plugin's name, for one attempt.

`contained` is for every plugin. `Containment` is for plugins from outside the package: their calls
have a time budget, their answers are checked, and every failure is counted. Whatever such a plugin
raises comes out as an `Exception` with a short text and a short traceback. Only a signal and a
cancellation of the task come out as they are. `raised` tells these apart.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from types import coroutine
from typing import Any, Final, Protocol, TypeVar

from moorage.base.errors import TransportError
from moorage.framework.cycle_state import StateMissingError
from moorage.framework.raised import is_signal, passes_unchanged, safe_text_of, shorten, text_of
from moorage.framework.status import Code, Status

_log = logging.getLogger(__name__)

T = TypeVar("T")

RAISED: Final = "raised"
"""Kind of failure: the plugin raised."""
OVERRAN: Final = "overran"
"""Kind of failure: the plugin was stopped when its time was up."""
WRONG_ANSWER: Final = "wrong answer"
"""Kind of failure: the extension point does not allow the plugin's answer."""


def contained(plugin: str, point: str, problem: Exception) -> Status:
    """Turn an exception a plugin raised into the status Error.

    A failure of the network, or of the lease that writes ask for, is no fault of the plugin: the
    status names it for every affected pod, and a traceback would add nothing.
    """
    if isinstance(problem, TransportError):
        _log.info("plugin %s failed at %s: %s", plugin, point, problem)
    elif not isinstance(problem, StateMissingError):
        _log.exception("plugin %s failed at %s", plugin, point, exc_info=problem)
    return Status(Code.ERROR, (text_of(problem),), plugin)


class PluginFailedError(Exception):
    """A plugin from outside failed in a way that cannot be passed on as its own exception."""


def harmless(problem: BaseException, text: str) -> Exception:
    """Return an exception that can be logged: the same if possible, otherwise one with a text."""
    shorten(problem)
    if isinstance(problem, Exception) and passes_unchanged(problem):
        return problem
    return PluginFailedError(text).with_traceback(problem.__traceback__)


class WrongAnswerError(PluginFailedError):
    """A plugin from outside gave an answer that its extension point does not allow."""


class BudgetExceededError(BaseException):
    """Raised inside a plugin's code when its time is up.

    Not an `Exception`, so that a plugin's own ``except Exception`` does not swallow it.
    """


class Budget(Protocol):
    """Runs a call within the time plugins have; see `moorage.service.intake.plugin_watch`."""

    def run(
        self, label: str, call: Callable[..., T], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> T:
        """Return the value of the call.

        Parameters
        ----------
        label
            The plugin that is called, for messages.
        call, args, kwargs
            The call.

        Raises
        ------
        BudgetExceededError
            The call took longer than it may.
        """
        ...


class NoBudget:
    """Does not limit calls: for code without a clock (tests, conformance, what-if)."""

    def run(
        self, label: str, call: Callable[..., T], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> T:
        """Return the value of the call."""
        del label
        return call(*args, **kwargs)


class Containment:
    """Calls plugins from outside, and counts their failures.

    Parameters
    ----------
    budget
        The time a call may take.
    is_cancelled
        Whether the running task is being cancelled; None: every cancellation is taken for one.

    Attributes
    ----------
    failures
        How often, by (plugin, extension point, kind); kinds are `RAISED`, `OVERRAN`
        and `WRONG_ANSWER`.
    """

    def __init__(
        self, budget: Budget | None = None, *, is_cancelled: Callable[[], bool] | None = None
    ) -> None:
        self.budget: Budget = NoBudget() if budget is None else budget
        self._is_cancelled = is_cancelled
        self.failures: Counter[tuple[str, str, str]] = Counter()

    def ask(
        self, plugin: str, point: str, call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Return the answer to one call of a plugin.

        Raises
        ------
        PluginFailedError
            Its time was up, or it raised something that cannot be passed on.
        KeyboardInterrupt
            A signal came during the call.
        Exception
            The exception that the plugin raised.
        """
        try:
            return self._run(plugin, point, call, args, kwargs)
        except BaseException as problem:
            raise self._failure(plugin, point, problem) from _cause(problem)

    def _run(
        self,
        plugin: str,
        point: str,
        call: Callable[..., T],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> T:
        depth = sys.getrecursionlimit()
        try:
            return self.budget.run(f"{plugin} at {point}", call, args, kwargs)
        finally:
            if sys.getrecursionlimit() != depth:
                sys.setrecursionlimit(depth)

    def _failure(self, plugin: str, point: str, problem: BaseException) -> BaseException:
        """Return what a failed call raises, and count it."""
        if is_signal(problem):
            return problem
        if isinstance(problem, BudgetExceededError):
            self.count_failure(plugin, point, OVERRAN)
            return harmless(problem, str(problem))
        self.count_failure(
            plugin, point, WRONG_ANSWER if isinstance(problem, WrongAnswerError) else RAISED
        )
        if passes_unchanged(problem):
            return harmless(problem, "")
        try:
            # Its text may be made by code of the plugin, which has the budget of a call, too.
            text = self._run(plugin, point, safe_text_of, (problem,), {})
        except BudgetExceededError:
            text = type(problem).__name__
        if isinstance(problem, SystemExit):
            text = f"it tried to end the process: {text}"
        elif not isinstance(problem, Exception):
            text = f"it raised {text}"
        return harmless(problem, text)

    def count_failure(self, plugin: str, point: str, kind: str) -> None:
        """Count a failure."""
        self.failures[plugin, point, kind] += 1

    @coroutine
    def stepwise(self, plugin: str, point: str, awaitable: Awaitable[T]) -> Generator[Any, Any, T]:
        """Await a plugin's coroutine; each step between two waits has the budget of a call.

        Waiting itself is not bounded: a plugin may legitimately wait for a volume for minutes, and
        no other work waits meanwhile.
        """
        if inspect.iscoroutine(awaitable):
            steps: Any = awaitable.__await__()
        else:  # code of the plugin
            steps = self.ask(plugin, point, awaitable.__await__)
        value: Any = None
        problem: BaseException | None = None
        cancelled: BaseException | None = None
        while True:
            call, args = _step(steps, value, problem)
            try:
                waits_for = self._run(plugin, point, call, args, {})
            except StopIteration as end:
                answer: T = end.value
                return answer
            except BaseException as raised:
                if cancelled is not None and type(raised) is type(cancelled):
                    raise
                if isinstance(raised, BudgetExceededError):
                    # The plugin may have swallowed the interruption and be waiting again.
                    self.ask(plugin, point, steps.close)
                raise self._failure(plugin, point, raised) from _cause(raised)
            value, problem = None, None
            try:
                value = yield waits_for
            except GeneratorExit:
                self.ask(plugin, point, steps.close)
                raise
            except BaseException as thrown:  # the plugin must see the cancellation, too
                problem = thrown
                if not isinstance(thrown, Exception) and self._is_cancellation():
                    cancelled = thrown

    def _is_cancellation(self) -> bool:
        """Whether a cancellation is of the task itself, not of something that it waits for."""
        return self._is_cancelled is None or self._is_cancelled()


def _step(
    steps: Any, value: Any, problem: BaseException | None
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the call that continues a coroutine, and its arguments."""
    if problem is not None:
        return steps.throw, (problem,)
    return (steps.__next__, ()) if value is None else (steps.send, (value,))


def _cause(problem: BaseException) -> BaseException | None:
    """Return the cause to show: none where an exception replaces the plugin's own."""
    return problem.__cause__ if passes_unchanged(problem) else None
