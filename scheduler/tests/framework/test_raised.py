"""Whatever a plugin raises, at any method, comes out as one short Exception, and is counted.

A signal and a cancellation of the task come out as they are. Does not cover: what the scheduler
makes of it (`scheduler.tests.service.test_plugins_that_raise`).
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.aio import being_cancelled
from moorage.base.errors import ConfigError, UsageError
from moorage.base.outside_texts import TEXT_MAX
from moorage.config.merge import ProfileSpec
from moorage.framework.capabilities import Reads
from moorage.framework.containment import Containment, contained
from moorage.framework.cycle_state import CycleState
from moorage.framework.guarded import Guarded
from moorage.framework.handle import Handle
from moorage.framework.loading import entry_of, load_plugin
from moorage.framework.profile import Profile
from moorage.framework.registry import MAY_WAIT, METHODS, Registry
from moorage.snapshot.shifted import NOTHING_MORE
from scheduler.tests.framework.builders import handle
from scheduler.tests.framework.outside import NODES, POD, plugin_class, snapshot
from scheduler.tests.framework.raising import KINDS

GIVEN = snapshot(*NODES)
VIEW = GIVEN.all()
STATE = CycleState()
ROWS: tuple[Any, ...] = (STATE, POD, VIEW)
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("filter", "filter_node", "score", "score_node"), ROWS),
    "normalize": (STATE, POD, VIEW.row_numbers()),
    "score_placements": (None, ()),
}
IN_ROWS = ("filter_node", "score_node")
# The order of the queue has an answer for every failure: `test_guarded`.
CALLED = [each for each in METHODS if each not in ("events_to_register", "sort_key", "less")]


def guarded(containment: Containment, methods: dict[str, Any], own: Handle | None = None) -> Any:
    return Guarded("Mine", plugin_class(**methods)(), own or handle(GIVEN), containment)


def outcome(method: str, raising: Any, containment: Containment) -> str:
    """Call a method as the engine does; return the text of the failure."""
    own = handle(GIVEN)
    asked = getattr(guarded(containment, {method: raising}, own), method.removesuffix("_node"))
    try:
        answer = asked(*ARGUMENTS.get(method, (STATE, POD, "a")))
        if method in MAY_WAIT:
            answer.send(None)
    except Exception as problem:
        return contained("Mine", METHODS[method][0], problem).message
    # A node that breaks Filter is a status: another plugin may reject the node anyway.
    assert method == "filter_node"
    return own.reasons.reasons(int(answer.reason_n[0]))[0]


@pytest.fixture(autouse=True)
def _same_recursion_limit() -> Iterator[None]:
    before = sys.getrecursionlimit()
    yield
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("method", CALLED)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_method_raises_comes_out_as_one_short_exception(
    kind: str, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    raising, text = KINDS[kind]
    containment = Containment()
    message = outcome(method, raising, containment)
    if kind in ("a text that interrupts", "an argument whose text exits") and method in IN_ROWS:
        # The text is made within the one call for all rows, and ends this call.
        text = "it "
    assert text in message
    assert len(message) < TEXT_MAX + 100
    assert message.encode()
    assert sum(containment.failures.values()) == 1
    assert {each[:2] for each in containment.failures} == {("Mine", METHODS[method][0])}
    assert len(caplog.text) < 200_000


@pytest.mark.parametrize("method", ["sort_key", "less"])
@pytest.mark.parametrize("kind", KINDS)
def test_pods_have_an_order_whatever_queue_sort_raises(kind: str, method: str) -> None:
    raising, _ = KINDS[kind]
    containment = Containment()
    key = guarded(containment, {method: raising}).sort_key
    first, second = key(5, 0, POD.pod), key(3, 0, POD.pod)
    assert first < second
    assert containment.failures


@pytest.mark.parametrize("capability", ["never_reused", "epoch", "filter_row", "row_scorer"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_capability_raises_is_contained(kind: str, capability: str) -> None:
    raising, _ = KINDS[kind]
    containment = Containment()
    reads: dict[str, Any] = {
        "filter": None,
        "filter_reads": Reads.PODS,
        "score": VIEW.row_numbers(),
        "score_reads": Reads.PODS,
        "shape_parts": (),
    }
    plugin = guarded(containment, {**reads, capability: raising})
    function = getattr(plugin.capabilities, capability)
    arguments = {
        "never_reused": (POD,),
        "epoch": (GIVEN,),
        "filter_row": (STATE, POD, 0, NOTHING_MORE),
        "row_scorer": (STATE, POD),
    }[capability]
    try:
        function(*arguments)
    except Exception:  # the caller asks the vector form then, or fails the attempt
        assert capability in ("filter_row", "row_scorer")
    assert sum(containment.failures.values()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_plugin_that_raises_while_it_is_made_is_a_fault_of_the_configuration(kind: str) -> None:
    raising, text = KINDS[kind]
    before = sys.getrecursionlimit()
    made = type("Mine", (plugin_class(permit=True),), {"__init__": raising})
    registry = Registry([entry_of(made, origin="here")])
    spec = ProfileSpec("mine", {"permit": ("Mine",)}, {}, {})
    with pytest.raises(ConfigError, match="initializing plugin"):
        Profile(spec, registry, handle(GIVEN))
    sys.setrecursionlimit(before)  # what a plugin sets while it is made is its own affair
    listening = guarded(Containment(), {"events_to_register": raising})
    with pytest.raises(ConfigError) as caught:
        listening.events_to_register()
    assert text in str(caught.value)


@pytest.mark.parametrize("statement", ["raise KeyboardInterrupt", "raise SystemExit(0)"])
def test_a_file_that_raises_while_it_is_imported_is_a_fault_of_the_command(
    statement: str, tmp_path: Any
) -> None:
    file = tmp_path / "raises.py"
    file.write_text(f"{statement}\n")
    with pytest.raises(UsageError, match=statement.split()[1].removesuffix("(0)")):
        load_plugin(f"{file}:Mine")


class Evil:
    """An answer whose every use raises what no plugin should raise."""

    def _raise(self, *_: object) -> Any:
        raise KeyboardInterrupt

    __repr__ = __bool__ = __float__ = __len__ = __iter__ = __array__ = __eq__ = _raise
    __hash__ = None  # type: ignore[assignment]


NOT_LOOKED_AT = ("add_pod", "remove_pod", "unreserve", "post_bind")


@pytest.mark.parametrize("method", [each for each in CALLED if each not in NOT_LOOKED_AT])
def test_an_answer_whose_use_raises_is_a_failure(method: str) -> None:
    containment = Containment()
    assert outcome(method, lambda *_: Evil(), containment)
    assert sum(containment.failures.values()) == 1


# -- signals and cancellation -----------------------------------------------------------------


def _signalled(*_: object) -> Any:
    signal.raise_signal(signal.SIGINT)
    raise AssertionError


@pytest.mark.parametrize("method", CALLED)
def test_a_signal_during_a_call_is_no_failure_of_the_plugin(method: str) -> None:
    containment = Containment()
    with pytest.raises(KeyboardInterrupt):
        outcome(method, _signalled, containment)
    assert not containment.failures


async def _cancelled_wait(*_: object) -> Any:
    task = asyncio.get_running_loop().create_task(aio.sleep(60))
    task.cancel()
    await task


async def _cancelled_itself(*_: object) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(_cancelled_wait, id="by a task that the plugin waits for"),
        pytest.param(_cancelled_itself, id="by a statement of the plugin"),
    ],
)
@pytest.mark.parametrize("method", sorted(MAY_WAIT))
async def test_a_cancellation_of_something_else_is_a_failure_of_the_plugin(
    method: str, waiting: Any
) -> None:
    containment = Containment(is_cancelled=being_cancelled)
    plugin = guarded(containment, {method: waiting})
    with pytest.raises(Exception, match="it raised CancelledError"):
        await getattr(plugin, method)(STATE, POD, "a")
    assert sum(containment.failures.values()) == 1


async def _tidies(*_: object) -> Any:
    try:
        await aio.sleep(60)
    finally:
        await aio.sleep(0)


async def _raises_another(*_: object) -> Any:
    try:
        await aio.sleep(60)
    except asyncio.CancelledError:
        raise asyncio.CancelledError("another") from None


@pytest.mark.parametrize(
    "waiting",
    [partial(aio.sleep, 60), _tidies, _raises_another],
    ids=["waits", "tidies", "other"],
)
async def test_a_cancellation_of_the_task_is_obeyed(waiting: Any) -> None:
    containment = Containment(is_cancelled=being_cancelled)

    async def pre_bind(*_: object) -> Any:
        await waiting()

    plugin = guarded(containment, {"pre_bind": pre_bind})
    task = asyncio.get_running_loop().create_task(plugin.pre_bind(STATE, POD, "a"))
    await aio.sleep(0)
    await aio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not containment.failures
