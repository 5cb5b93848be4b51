"""The time of plugins from outside: what is interrupted, and what ends the process.

Real time passes here, a tenth of a second or two a test; how long exactly is never asserted.
"""

from __future__ import annotations

import contextlib
import select
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moorage.base.clock import SystemClock
from moorage.framework.containment import BudgetExceededError
from moorage.service.intake.plugin_watch import EXIT_HANGS, PluginWatch

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals reach the main thread only",
)


@pytest.fixture
def watch() -> Iterator[PluginWatch]:
    with PluginWatch(0.05, SystemClock(), hang_seconds=None) as made:
        yield made


def loops() -> None:
    while True:
        pass


def loops_and_ignores_exceptions() -> None:
    while True:
        try:
            while True:
                pass
        except Exception:
            pass


def sleeps() -> None:
    select.select([], [], [], 60)


def waits_for_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def comes_back_late() -> None:
    with contextlib.suppress(BaseException):
        loops()


@pytest.mark.parametrize(
    "call", [loops, loops_and_ignores_exceptions, sleeps, waits_for_a_lock, comes_back_late]
)
def test_a_call_is_stopped_when_its_time_is_up(watch: PluginWatch, call: Callable[[], Any]) -> None:
    with pytest.raises(BudgetExceededError) as stopped:
        watch.run("Mine at Filter", call, (), {})
    assert str(stopped.value) == (
        "Mine at Filter took longer than 0.05 s and was stopped (pluginBudgetSeconds)"
    )
    assert watch.run("Mine at Filter", lambda a, *, b: a + b, (1,), {"b": 2}) == 3


def test_a_call_within_another_is_stopped_alone(watch: PluginWatch) -> None:
    def outer() -> str:
        with pytest.raises(BudgetExceededError, match="Inner"):
            watch.run("Inner", loops, (), {})
        with pytest.raises(BudgetExceededError, match="Outer"):
            loops()
        return "done"

    with pytest.raises(BudgetExceededError, match="Outer"):
        watch.run("Outer", outer, (), {})


def test_an_exception_of_a_call_passes_through_the_watch(watch: PluginWatch) -> None:
    with pytest.raises(ZeroDivisionError):
        watch.run("Mine at Filter", lambda: 1 // 0, (), {})


def test_in_another_thread_a_late_call_fails_when_it_returns(watch: PluginWatch) -> None:
    found: list[object] = []

    def work() -> None:
        found.append(watch.run("A", int, (), {}))
        try:
            watch.run("B", threading.Event().wait, (0.06,), {})
        except BudgetExceededError as problem:
            found.append(str(problem))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [0, "B took longer than 0.05 s and was stopped (pluginBudgetSeconds)"]


def test_the_plugin_watch_restores_signal_handler_and_threads() -> None:
    handler, threads = signal.getsignal(signal.SIGURG), threading.active_count()
    with PluginWatch(0.05, SystemClock(), hang_seconds=None) as made:
        assert threading.active_count() == threads
        made.run("Mine at Filter", int, (), {})
        assert threading.active_count() == threads + 1
    assert (signal.getsignal(signal.SIGURG), threading.active_count()) == (handler, threads)


HANGS = """
    import itertools, logging, re, time
    from moorage.base.clock import SystemClock
    from moorage.service.intake.plugin_watch import PluginWatch

    logging.basicConfig()

    def holds_the_interpreter():
        re.match("(a+)+b", "a" * 64)

    def swallows_everything():
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass

    with PluginWatch(0.1, SystemClock(), hang_seconds=0.4) as watch:
        for _ in range(50):
            watch.run("Good at Filter", int, (), {})
        time.sleep(0.6)
        print("still here", flush=True)
        watch.run("Bad at Filter", CALL, (), {})
"""


@pytest.mark.parametrize("call", ["holds_the_interpreter", "swallows_everything"])
def test_a_hang_that_cannot_be_interrupted_ends_the_process(call: str) -> None:
    script = textwrap.dedent(HANGS).replace("CALL", call)
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.stdout == "still here\n"
    assert (ended.returncode, EXIT_HANGS) == (-signal.SIGALRM, 142)
    assert f"in {call}" in ended.stderr
