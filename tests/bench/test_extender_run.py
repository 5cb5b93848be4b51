"""What asking an extender costs, with real processes: that it is asked, not how fast."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from moorage.cli.main import main


@pytest.mark.slow
def test_each_pod_is_asked_about_over_one_connection() -> None:
    arguments = ["bench", "extender", "--nodes", "3", "--pods", "5", "--names-only", "-o", "json"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["extender"] == {"calls": {"filter": 5, "prioritize": 5}, "connections": 1}
