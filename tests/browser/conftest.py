"""A browser, and a sandbox whose page it has open."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest

from sandbox.tests.sandbox.process import Up
from tests.browser.install import Browser, NoBrowserError, browser

# Generous: a condition that comes true at all comes true far sooner.
WAIT_MILLISECONDS = 60_000
_ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)


@pytest.fixture(scope="session")
def installed() -> Browser:
    """The browser; where it cannot be had, tests are skipped with the reason."""
    try:
        return browser()
    except NoBrowserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def chromium(installed: Browser) -> Iterator[Any]:
    """A running headless Chromium."""
    sys.path.append(str(installed.site))
    playwright = import_module("playwright.sync_api")
    libraries = [str(installed.libraries), os.environ.get("LD_LIBRARY_PATH", "")]
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(
            executable_path=str(installed.program),
            args=list(_ARGUMENTS),
            env={**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, libraries))},
        )
        yield running
        running.close()


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A sandbox with a page."""
    with Up(tmp_path_factory.mktemp("page"), "--nodes", "20", "--seed", "7") as running:
        yield running


def link_of(up: Up) -> str:
    """Return the next login link of a sandbox's page."""
    found = re.search(r"http://\S+/login\?token=\S+", up.until("/login?token="))
    assert found is not None
    return found[0]


class Faults:
    """What the browser complained about."""

    def __init__(self, page: Any) -> None:
        self.told: list[str] = []
        page.on("pageerror", lambda error: self.told.append(str(error)))
        page.on("console", self._said)

    def _said(self, message: Any) -> None:
        # A question that has no answer is told by the browser, too; the page shows it.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.told.append(message.text)


@contextmanager
def logged_in(chromium: Any, up: Up) -> Iterator[Any]:
    """Yield a browser's context in which the next login link of a sandbox was followed."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(WAIT_MILLISECONDS)
    first = context.new_page()
    link = link_of(up)
    first.goto(link)
    first.wait_for_selector("#tiles[data-painted]")
    first.close()
    context.moorage_url = link.partition("/login")[0]
    yield context
    context.close()


@pytest.fixture(scope="session")
def opened(chromium: Any, up: Up) -> Iterator[Any]:
    """A browser's context in which the login link of the sandbox was followed."""
    with logged_in(chromium, up) as context:
        yield context


@pytest.fixture
def page(opened: Any) -> Iterator[Any]:
    """A page of the browser; it fails a test whose script failed."""
    made = opened.new_page()
    faults = Faults(made)
    made.moorage_url = opened.moorage_url
    yield made
    made.close()
    assert faults.told == []
