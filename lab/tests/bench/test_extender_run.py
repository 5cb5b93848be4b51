"""What asking an extender costs, with real processes: that it is asked, not how fast."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from moorage.cli.main import main


@pytest.mark.slow
def test_each_pod_is_asked_about_over_one_connection() -> None:
    sizes = ["--nodes", "3", "--init-pods", "1", "--pods", "5"]
    done = CliRunner().invoke(main, ["bench", "extender", *sizes, "--names-only", "-o", "json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["extender"] == {"calls": {"filter": 6, "prioritize": 6}, "connections": 1}
