"""The page of measurements: the slow decisions have a section once they were measured."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tools.pages import performance_page
from tools.pages.performance_run import RECORD, Record


def test_slow_decisions_have_a_row_for_each_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"p50_us": 500.0, "p99_us": 1500.0, "max_us": 20_000.0}
    one = {"decisions": 2000, "per_second": 1234.5, "decision": times, "digest": "abc" * 8}
    record = msgspec.json.decode(RECORD.read_bytes(), type=Record)
    file = tmp_path / "performance.json"
    monkeypatch.setattr(performance_page, "RECORD", file)
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(record, tails={})))
    assert "## Slow decisions" not in performance_page.performance_page()
    tails = {"digest": "d", "cases": {"claims": {"200": one, "500": one}}}
    measured = {"tails": tails, "tails_from": ("2026-12-01", "1234abcd"), "tails_load": 2.5}
    replaced = msgspec.structs.replace(record, **measured)
    file.write_bytes(msgspec.json.encode(replaced))
    page = performance_page.performance_page()
    assert "one run of 2026-12-01, revision 1234abcd, begun at a load of 2.5:" in page
    row = "nodes | 2,000 | 1,234 | 0.50 | 1.50 | 20.00 | `abcabcabcabc` |"
    assert f"| `claims` | 200 {row}\n| `claims` | 500 {row}" in page
