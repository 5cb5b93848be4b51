"""Contains plugins: a failure becomes the status Error with the plugin's name, for one attempt.

`contained` is for every plugin. `Containment` is for plugins from outside the package: their calls
have a time budget, their answers are checked, and every failure is counted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from types import coroutine
from typing import Any, Final, Protocol, TypeVar

from moorage.base.errors import TransportError
from moorage.framework.cycle_state import StateMissingError
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
    return Status(Code.ERROR, (str(problem) or type(problem).__name__,), plugin)


class PluginFailedError(Exception):
    """A plugin from outside failed in a way that cannot be passed on as its own exception."""


class WrongAnswerError(PluginFailedError):
    """A plugin from outside gave an answer that its extension point does not allow."""


class BudgetExceededError(BaseException):
    """Raised inside a plugin's code when its time is up.

    Not an `Exception`, so that a plugin's own ``except Exception`` does not swallow it.
    """


class Budget(Protocol):
    """Runs a call within the time plugins have; see `moorage.service.plugin_watch`."""

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

    Attributes
    ----------
    failures
        How often, by (plugin, extension point, kind); kinds are `RAISED`, `OVERRAN`
        and `WRONG_ANSWER`.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget: Budget = NoBudget() if budget is None else budget
        self.failures: Counter[tuple[str, str, str]] = Counter()

    def ask(
        self, plugin: str, point: str, call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Return the answer to one call of a plugin.

        Raises
        ------
        PluginFailedError
            Its time was up, or it tried to end the process.
        Exception
            The exception that the plugin raised.
        """
        try:
            return self.budget.run(f"{plugin} at {point}", call, args, kwargs)
        except BudgetExceededError as problem:
            self.note(plugin, point, OVERRAN)
            raise PluginFailedError(str(problem)) from problem
        except StopIteration:
            raise
        except SystemExit as problem:
            self.note(plugin, point, RAISED)
            raise PluginFailedError(f"it tried to end the process: {problem!r}") from problem
        except Exception as problem:
            wrong = isinstance(problem, WrongAnswerError)
            self.note(plugin, point, WRONG_ANSWER if wrong else RAISED)
            raise

    def note(self, plugin: str, point: str, kind: str) -> None:
        """Count a failure."""
        self.failures[plugin, point, kind] += 1

    @coroutine
    def stepwise(self, plugin: str, point: str, awaitable: Awaitable[T]) -> Generator[Any, Any, T]:
        """Await a plugin's coroutine; each step between two waits has the budget of a call.

        Waiting itself is not bounded: a plugin may legitimately wait for a volume for minutes, and
        no other work waits meanwhile.
        """
        steps: Any = awaitable.__await__()
        value: Any = None
        problem: BaseException | None = None
        while True:
            try:
                if problem is None:
                    waits_for = (
                        self.ask(plugin, point, steps.__next__)
                        if value is None
                        else (self.ask(plugin, point, steps.send, value))
                    )
                else:
                    waits_for = self.ask(plugin, point, steps.throw, problem)
            except StopIteration as end:
                answer: T = end.value
                return answer
            except PluginFailedError:
                # The plugin may have swallowed the interruption and be waiting again.
                self.ask(plugin, point, steps.close)
                raise
            value, problem = None, None
            try:
                value = yield waits_for
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as thrown:  # the plugin must see the cancellation, too
                problem = thrown
