"""The runner in the binding task: plain and awaitable answers, who is skipped, what breaks."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from moorage.framework.cycle_state import CycleState
from moorage.framework.runner_binding import (
    run_bind,
    run_post_bind,
    run_pre_bind,
    run_pre_bind_pre_flight,
)
from moorage.framework.status import SKIP, SUCCESS, Code, Status, error, unschedulable
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.framework.builders import Fake, answers, profile
from scheduler.tests.snapshot.builders import pod

POD = PodInfo(pod("p"))
BROKEN = RuntimeError("boom")
PENDING = Status(Code.PENDING, ("soon",))


def of(method: str, *, awaitable: bool, **by_name: Any):
    """A profile of plugins by name; PreBind of those in small letters may run at once."""
    asked: list[str] = []

    def make(name: str, value: Any) -> Fake:
        answer = answers(value)

        def plain(*args: Any) -> Any:
            asked.append(name)
            return answer(*args)

        async def later(*args: Any) -> Any:
            return plain(*args)

        parallel = method == "pre_bind" and name.islower()
        given = {method: later if awaitable else plain}
        return Fake(name, pre_bind_parallel=parallel, **given)

    return profile(*(make(name, value) for name, value in by_name.items())), asked


async def alone(works):
    raise AssertionError("nothing here may run at once")


both = pytest.mark.parametrize(
    "awaitable", [pytest.param(False, id="plain"), pytest.param(True, id="awaited")]
)


@both
@pytest.mark.parametrize(
    ("plugins", "skip", "status", "asked"),
    [
        pytest.param({"A": SUCCESS, "B": SUCCESS}, "", SUCCESS, "AB", id="in order"),
        pytest.param(
            {"A": BROKEN, "B": SUCCESS}, "A", SUCCESS, "B", id="a plugin without work is not asked"
        ),
        pytest.param(
            {"A": unschedulable("no"), "B": SUCCESS},
            "",
            unschedulable("no").by("A"),
            "A",
            id="a rejection passes through",
        ),
        pytest.param(
            {"A": SUCCESS, "B": BROKEN},
            "",
            error('running PreBind plugin "B": boom').by("B"),
            "AB",
            id="an error says where",
        ),
        pytest.param(
            {"A": SKIP},
            "",
            error('running PreBind plugin "A": ').by("A"),
            "A",
            id="Skip is an error",
        ),
    ],
)
async def test_pre_bind(awaitable, plugins, skip, status, asked):
    given, seen = of("pre_bind", awaitable=awaitable, **plugins)
    state = CycleState()
    state.skip_pre_bind = frozenset(skip)
    assert await run_pre_bind(given, state, POD, "n1", together=alone) == status
    assert "".join(seen) == asked


@pytest.mark.parametrize(
    ("names", "skip", "groups"),
    [
        pytest.param("ab", "", ["ab"], id="neighbours that may run at once run at once"),
        pytest.param("aBc", "", [], id="a plugin that must run alone parts its neighbours"),
        pytest.param("abCde", "", ["ab", "de"], id="two groups"),
        pytest.param("abC", "C", ["ab"], id="a plugin without work is not run"),
        pytest.param(
            "aBc", "B", [], id="a plugin that must run alone parts its neighbours even without work"
        ),
        pytest.param("abc", "b", ["ac"], id="a parallel plugin without work parts no neighbours"),
        pytest.param("AB", "", [], id="no plugin may run at once with others"),
        pytest.param("abc", "abc", [], id="no plugin has work"),
    ],
)
async def test_neighbours_in_parallel(names, skip, groups):
    """Capital letters are plugins that must run alone."""
    asked: list[str] = []
    seen: list[str] = []

    def make(name: str) -> Fake:
        def pre_bind(*args: Any) -> Status:
            asked.append(name)
            return SUCCESS

        return Fake(name, pre_bind=pre_bind, pre_bind_parallel=name.islower())

    async def together(works):
        begin = len(asked)
        for work in works:
            await work
        seen.append("".join(asked[begin:]))
        return SUCCESS

    state = CycleState()
    state.skip_pre_bind = frozenset(skip)
    given = profile(*map(make, names))
    assert await run_pre_bind(given, state, POD, "n1", together=together) == SUCCESS
    assert "".join(asked) == "".join(name for name in names if name not in skip)
    assert seen == groups


async def test_a_group_that_fails_is_the_last():
    given, seen = of("pre_bind", awaitable=True, a=SUCCESS, b=SUCCESS, C=SUCCESS)

    async def together(works):
        for work in works:
            work.close()
        return unschedulable("no").by("b")

    status = await run_pre_bind(given, CycleState(), POD, "n1", together=together)
    assert (status, seen) == (unschedulable("no").by("b"), [])


@both
@pytest.mark.parametrize(
    ("plugins", "status", "asked"),
    [
        pytest.param(
            {"A": SKIP, "B": SUCCESS, "C": BROKEN},
            SUCCESS.by("B"),
            "AB",
            id="the first plugin that does not skip binds",
        ),
        pytest.param({"A": SKIP, "B": SKIP}, SKIP, "AB", id="all plugins skip: Skip"),
        pytest.param({"A": PENDING, "B": SUCCESS}, PENDING.by("A"), "A", id="a rejection is final"),
        pytest.param(
            {"A": BROKEN, "B": SUCCESS},
            error('running Bind plugin "A": boom').by("A"),
            "A",
            id="an error is final",
        ),
    ],
)
async def test_bind(awaitable, plugins, status, asked):
    given, seen = of("bind", awaitable=awaitable, **plugins)
    assert await run_bind(given, CycleState(), POD, "n1") == status
    assert "".join(seen) == asked


@both
async def test_every_post_bind_is_told(awaitable, caplog):
    given, seen = of("post_bind", awaitable=awaitable, A=None, B=BROKEN, C=None)
    with caplog.at_level(logging.ERROR):
        await run_post_bind(given, CycleState(), POD, "n1")
    assert seen == ["A", "B", "C"]
    assert [record.getMessage() for record in caplog.records] == ["plugin B failed at PostBind"]


@pytest.mark.parametrize(
    ("answered", "status", "skipped"),
    [
        pytest.param([], SKIP, set(), id="no plugin, no work"),
        pytest.param([SKIP, SKIP], SKIP, {"0", "1"}, id="no plugin has work"),
        pytest.param([SKIP, SUCCESS], SUCCESS, {"0"}, id="one plugin has work"),
        pytest.param([SKIP, None], SUCCESS, {"0"}, id="a plugin without pre-flight may have work"),
        pytest.param(
            [SKIP, error("bad")],
            error('running PreBindPreFlight "1": bad').by("1"),
            set(),
            id="an error says where",
        ),
        pytest.param(
            [BROKEN], error('running PreBindPreFlight "0": boom').by("0"), set(), id="raising"
        ),
        pytest.param(
            [unschedulable("no")],
            error(
                'PreBindPreFlight 0 returned "Unschedulable", which is unsupported. It is '
                "supposed to return Success, Skip, or Error status"
            ).by("0"),
            set(),
            id="any other answer is an error",
        ),
    ],
)
def test_pre_flight(answered, status, skipped):
    plugins = [
        Fake(
            str(i),
            pre_bind=answers(SUCCESS),
            **({} if each is None else {"pre_bind_pre_flight": answers(each)}),
        )
        for i, each in enumerate(answered)
    ]
    state = CycleState()
    assert run_pre_bind_pre_flight(profile(*plugins), state, POD, "n1") == status
    assert state.skip_pre_bind == skipped


async def test_cancelling_is_not_contained():
    async def bind(*args: Any) -> Status:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await run_bind(profile(Fake("A", bind=bind)), CycleState(), POD, "n1")
