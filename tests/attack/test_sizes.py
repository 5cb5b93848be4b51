"""The calls that held the loop longest, of those that the fuzzer of sizes has drawn.

`tests.attack.sizes` draws a call from a seed and a number; ``SLOWEST`` keeps the numbers. The bound
is ten times what the calls take on a quiet 2-core machine, and well below the renewal of a lease.
Processor time of the loop's thread is measured, so other programs hardly change it, and a call that
exceeds the bound is made again. Work of the threads next to the loop is measured in
`test_nobody_waits`, not here.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moorage.base.aio import sleep
from moorage.base.memory import settle_memory, unsettle_memory
from tests.attack.holds import measured_holds
from tests.attack.sizes import NAMESPACE, Sent, SizedCall, prepared, sized_call
from tests.attack.wire import SECRET, Answer, Wire, listening

HOLD_SECONDS_MAX = 0.1
TRIES_MAX = 5
SEED = 1
# Drawn with seed 1, of the numbers 0 to 480, on 2026-11-28.
SLOWEST = (
    *(0, 12, 16, 21, 29, 50, 54, 62, 66, 71, 74, 79, 83, 88, 91, 101, 102, 107, 108, 112),
    *(122, 125, 133, 139, 142, 150, 157, 159, 171, 172, 173, 174, 190, 195, 198, 201, 211),
    *(215, 237, 249, 292, 315, 341, 352, 367, 400, 402, 403, 440, 442, 479),
)


def _placed(call: SizedCall, namespace: str) -> SizedCall:
    """Return a call in a namespace of its own."""

    def moved(sent: Sent) -> Sent:
        return sent._replace(path=sent.path.replace(f"/{NAMESPACE}", f"/{namespace}"))

    return SizedCall(call.words, moved(call.call), tuple(map(moved, call.before)))


async def _send(wire: Wire, sent: Sent) -> Answer:
    headers = [b"Accept: " + sent.accept.encode()]
    if sent.body:
        headers.append(b"Content-Type: " + sent.content_type.encode())
    return await wire.send(f"{sent.method} {sent.path}".encode(), SECRET, *headers, body=sent.body)


@contextmanager
def _settled() -> Iterator[None]:
    """Set memory up as the process of a server does; collect no garbage of the tests."""
    thresholds = gc.get_threshold()
    settle_memory(collect=False)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
        unsettle_memory()


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_none_of_the_slowest_calls_holds_the_loop(tmp_path: Path):
    async with listening(tmp_path) as wire:
        for sent in prepared():
            await wire.cluster.reply(sent.method, sent.path, sent.body)
        found = {}
        with _settled(), measured_holds() as holds:
            for number in SLOWEST:
                words = sized_call(SEED, number).words
                for attempt in range(TRIES_MAX):
                    namespace = f"s{number}-{attempt}"
                    made = {"metadata": {"name": namespace}}
                    await wire.cluster.ok("POST", "/api/v1/namespaces", made)
                    call = _placed(sized_call(SEED, number), namespace)
                    for sent in call.before:
                        await _send(wire, sent)
                    await sleep(0)  # or the step that built the call would be measured, too
                    holds.clear()
                    answer = await _send(wire, call.call)
                    await sleep(0)
                    assert answer.status < 500, (number, words, answer.body[:300])
                    if holds.longest < HOLD_SECONDS_MAX:
                        break
                else:
                    found[number, words] = (holds.longest, holds.callback)
    assert found == {}


def test_a_call_is_the_same_whenever_it_is_drawn():
    assert [sized_call(SEED, n) for n in range(30)] == [sized_call(SEED, n) for n in range(30)]
    assert sized_call(SEED, 0) != sized_call(SEED + 1, 0)
