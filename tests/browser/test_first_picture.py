"""How long the first picture takes, from the address to the last tile, with a live scheduler.

The figures are printed and not judged: they say as much about the machine as about the page. The
tests check that every node is drawn. Left out: what viewers cost the scheduler (``moorage bench
page``).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage_lab.bench.page.cluster import logged_in, page_cluster
from tests.browser.conftest import WAIT_MILLISECONDS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1200)]

START_SECONDS = 900
LOOKS = 3
LARGE = pytest.mark.skipif(
    not os.environ.get("PAGE_LARGE"), reason="some minutes: `make page-bench` measures it"
)
LETTERS = "(at) => parseFloat(getComputedStyle(at).fontSize)"
PARTS = """() => {
  const loaded = performance.getEntriesByType("resource");
  const state = loaded.find((each) => each.name.endsWith("/page/v1/state"));
  const [painted] = performance.getEntriesByName("first picture");
  return {
    asked: state.requestStart,
    told: state.responseStart,
    arrived: state.responseEnd,
    painted: painted.startTime,
    bytes: state.decodedBodySize,
  };
}"""


@contextmanager
def serving(nodes: int, pods: int) -> Iterator[str]:
    """Yield the login link of a live scheduler's page, served beside the browser of this thread."""
    links: list[str] = []
    begun, loop = threading.Event(), asyncio.new_event_loop()
    ending = asyncio.Event()

    async def serve() -> None:
        clock, streams = SystemClock(), Streams(1)
        async with page_cluster(nodes=nodes, pods=pods, clock=clock, streams=streams) as cluster:
            viewer = await logged_in(await cluster.login_link())
            await viewer.all_counted(pods)
            await viewer.close()
            links.append(await cluster.login_link())
            begun.set()
            await ending.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        while not begun.wait(1):
            assert thread.is_alive(), "the cluster did not start"
        yield links[-1]
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(60)
        loop.close()


@pytest.mark.parametrize(("nodes", "pods"), [(100, 1000), pytest.param(5000, 50_000, marks=LARGE)])
def test_every_node_is_on_the_first_picture_of_a_live_scheduler(
    chromium: Any, capsys: pytest.CaptureFixture[str], nodes: int, pods: int
) -> None:
    with serving(nodes, pods) as link:
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(WAIT_MILLISECONDS)
        page = context.new_page()
        for look in range(LOOKS):
            # The first look asks the scheduler for everything, the next ones for what changed.
            page.goto(f"{link.partition('/login')[0]}/cluster" if look else link)
            page.wait_for_selector(f"#tiles[data-painted='{nodes}']")
            told = page.evaluate(PARTS)
            with capsys.disabled():
                print(line(nodes, pods, told))  # noqa: T201 - the purpose of this test
        # `moorage run --dashboard` serves this page: it has more rights than its viewers may have.
        rights = page.get_by_role("note")
        assert "everything that the scheduler of https://" in rights.inner_text()
        assert (
            "with the scheduler's rights, to whoever opened its login link" in rights.inner_text()
        )
        assert rights.evaluate(LETTERS) > page.locator("main p").first.evaluate(LETTERS)
        assert page.get_by_role("form").count() == 0
        context.close()


def line(nodes: int, pods: int, told: dict[str, float]) -> str:
    """Return the figures of a look, for people."""
    parts = {
        "files": told["asked"],
        "the scheduler": told["told"] - told["asked"],
        "the wire": told["arrived"] - told["told"],
        "reading and drawing": told["painted"] - told["arrived"],
    }
    words = ", ".join(f"{name} {ms:.0f}" for name, ms in parts.items())
    size = f"{nodes} nodes, {pods} pods, {told['bytes'] / 1e6:.2f} MB"
    return f"\n{size}: first picture {told['painted']:.0f} ms ({words})"
