"""The time of a sandbox on the page: stopped, stepped, and run as usual."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.tests.sandbox.process import Up
from tests.browser.conftest import Faults, logged_in

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def told(page: Any) -> int:
    """Return the time that the view shows, seconds of the day."""
    hours, minutes, seconds = page.locator("main time").inner_text().split(":")
    return 3600 * int(hours) + 60 * int(minutes) + int(seconds)


def test_the_time_of_a_sandbox_is_stepped_and_runs_again(chromium: Any, tmp_path: Path) -> None:
    with (
        Up(tmp_path, "--nodes", "2", "--empty", "--speed", "0") as up,
        logged_in(chromium, up) as context,
    ):
        page = context.new_page()
        faults = Faults(page)
        page.goto(f"{context.moorage_url}/time")
        page.locator(".sum").get_by_text("stopped").wait_for()
        before = told(page)
        page.get_by_role("button", name="Step 10 s").click()
        page.wait_for_function(
            "(at) => document.querySelector('main time').textContent === at", arg=clock(before + 10)
        )
        page.locator(".sum").get_by_text("stopped").wait_for()
        page.get_by_role("button", name="As usual").click()
        page.locator(".sum").get_by_text("one second passes in one").wait_for()
        page.wait_for_function(
            "(at) => document.querySelector('main time').textContent !== at", arg=clock(before + 10)
        )
        assert faults.told == []


def clock(seconds: int) -> str:
    """Return a time of the day as the page writes it."""
    minutes, second = divmod(seconds % 86400, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}"
