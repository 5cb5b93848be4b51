"""What arrives for a loop while a task works: seen before the loop looks itself."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable

import pytest
import uvloop

from moorage.base import aio
from moorage.base.aio import Arrivals

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [
    asyncio.SelectorEventLoop,
    uvloop.new_event_loop,
]


@pytest.mark.parametrize("new_loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_call_is_there_until_the_loop_has_read_it(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        loop, arrivals, read = asyncio.get_running_loop(), Arrivals(), asyncio.Event()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)

            def on_input() -> None:
                ours.recv(16)
                read.set()

            loop.add_reader(ours.fileno(), on_input)
            await aio.sleep(0)
            assert not arrivals.are_there()
            theirs.send(b"call")
            assert arrivals.are_there()
            await read.wait()
            assert not arrivals.are_there()
            loop.remove_reader(ours.fileno())

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("new_loop", LOOPS, ids=["asyncio", "uvloop"])
def test_news_of_a_thread_arrive(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        loop, arrivals = asyncio.get_running_loop(), Arrivals()
        await aio.sleep(0)
        assert not arrivals.are_there()
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(int,))
        thread.start()
        thread.join()
        assert arrivals.are_there()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


def test_something_may_always_have_arrived_in_an_unknown_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "_selector", object())
        assert Arrivals().are_there()
        monkeypatch.undo()

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(main())
