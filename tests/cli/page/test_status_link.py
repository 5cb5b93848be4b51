"""``moorage status`` shows a link to the page of a sandbox, which works once; then a new one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from sandbox.tests.sandbox.process import Up
from tests.cli.conftest import Type
from tests.cli.page.test_command import Opened

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def link_of_status(bare: Type, up: Up) -> str:
    """Return the link that the text of `moorage status` shows."""
    text = bare("status", "--kubeconfig", str(up.kubeconfig)).stdout
    (shown,) = re.findall(r"^page: +(\S+) \(the link works once\)$", text, re.MULTILINE)
    return str(shown)


def test_status_shows_a_link_to_the_page_that_has_not_been_used(bare: Type, up_page: Up) -> None:
    first = link_of_status(bare, up_page)
    named = ("--kubeconfig", str(up_page.kubeconfig))
    (described,) = json.loads(bare("status", *named, "-o", "json").stdout)["sandboxes"]
    assert described["page"] == first
    page = Opened(first)
    assert page.read("/page/v1/state")["nodes"] != {}
    with pytest.raises(HTTPError, match="401"):
        Opened(first)
    second = link_of_status(bare, up_page)
    while second == first:  # the new link is recorded soon after; the test's timeout is the bound
        second = link_of_status(bare, up_page)
    assert second.partition("?")[0] == first.partition("?")[0]
    assert Opened(second).read("/page/v1/state")["nodes"] != {}


@pytest.fixture
def up_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Run a sandbox with a page of its own."""
    with Up(tmp_path_factory.mktemp("page"), "--nodes", "2") as up:
        up.until("/login?token=")
        yield up
