"""5000 nodes and 50,000 pods on the page, from a scheduler that only answers.

Left out: what the scheduler itself takes to answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.tests.dashboard.fake import FakeSource, serving
from tests.browser.conftest import WAIT_MILLISECONDS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

NODES, PODS_OF_A_NODE = 5000, 10
SCRIPT = '<img src=x onerror="document.body.dataset.hit=1">'
SIGHT = """() => {
  const at = document.querySelector("aside.detail h2").getBoundingClientRect();
  return at.top >= 0 && at.bottom <= innerHeight;
}"""


def filled(number: int) -> dict[str, Any]:
    return {
        "allocatable": {"cpu": 8000, "memory": 32 * 1024**3, "pods": 110},
        "domains": {"topology.kubernetes.io/zone": "abc"[number % 3]},
        "pods": [
            {
                "namespace": f"team-{pod % 5}",
                "name": f"web-{number}-{pod}",
                "uid": f"{number}-{pod}",
                "requests": {"cpu": 100 * pod, "memory": 1024**3},
            }
            for pod in range(PODS_OF_A_NODE)
        ],
    }


@pytest.fixture(scope="module")
def link() -> Iterator[str]:
    """The login link of a page, served by a thread while the browser works in this one."""
    source = FakeSource()
    source.nodes = {f"node-{number}": filled(number) for number in range(NODES)}
    name = {"namespace": "default", "name": SCRIPT}
    source.nodes["node-0"]["pods"].append({**name, "uid": "script", "requests": {}})
    source.pods = [{**name, "uid": "waiting", "queue": "active", "plugins": [SCRIPT]}]
    links: list[str] = []
    begun, ending = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with serving(source) as (_, told):
            links.extend(told)
            begun.set()
            await ending.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert begun.wait(60)
        yield links[0]
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(60)
        loop.close()


def test_every_one_of_5000_nodes_is_drawn_and_names_stay_text(chromium: Any, link: str) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(WAIT_MILLISECONDS)
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector(f"#tiles[data-painted='{NODES}']")
    page.goto(f"{link.partition('/login')[0]}/cluster?node=node-4321")
    page.locator("aside.detail").get_by_text("team-4/web-4321-9").wait_for()
    # A node that is chosen far down is in sight, and so is what the page tells of it.
    page.locator("#tiles").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/cluster?node=node-4324")
    page.wait_for_function("scrollY > 0")
    assert page.evaluate(SIGHT)
    # No API server stores such a name; a scheduler that tells one does no harm.
    for view, place in (("cluster?node=node-0", "aside.detail"), ("queue", "[data-lane=active]")):
        page.goto(f"{link.partition('/login')[0]}/{view}")
        page.locator(place).get_by_role("link", name=f"default/{SCRIPT}").wait_for()
        assert page.evaluate("document.body.dataset.hit") is None
        assert page.locator("main img").count() == 0
    context.close()
