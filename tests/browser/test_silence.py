"""A connection that is gone without a word, as over a port that nobody forwards any more.

And one that is refused, because the program that serves the page was started again.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from sandbox.tests.sandbox.process import Up
from tests.browser.conftest import Faults, logged_in

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_a_silent_connection_comes_back_and_a_refused_one_asks_for_a_link(
    chromium: Any, tmp_path: Path
) -> None:
    with Up(tmp_path, "--nodes", "2", "--empty") as up, logged_in(chromium, up) as context:
        page = context.new_page()
        faults = Faults(page)
        page.goto(f"{context.moorage_url}/cluster")
        page.wait_for_selector("#tiles[data-painted]")
        banner = page.get_by_role("alert")
        scheduler = up.member("moorage_sandbox.cli.up.scheduler_process")
        scheduler.send_signal(signal.SIGSTOP)
        try:
            banner.get_by_text("Not connected: nothing has come for 15 seconds").wait_for()
        finally:
            scheduler.send_signal(signal.SIGCONT)
        banner.wait_for(state="detached")
        # A program that was started again knows no cookie of the one before.
        page.route("**/page/v1/changes*", lambda route: route.abort())
        page.goto(f"{context.moorage_url}/cluster")
        banner.get_by_text("Not connected").wait_for()
        context.clear_cookies()
        page.unroute("**/page/v1/changes*")
        banner.get_by_text("This page opens with a login link").wait_for()
        assert faults.told == []
