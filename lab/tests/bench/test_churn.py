"""``bench churn``: a small measurement, and its report.

Left out: the figures themselves.
"""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from moorage.cli.main import main
from moorage_lab.bench.churn import ChurnPlan, ChurnResult, Memory

RESULT = ChurnResult(
    plan=ChurnPlan(nodes=100, pods=80_000, present=64),
    seconds=160.4,
    memory=[
        Memory(pods=1, server=80.2, scheduler=90.0),
        Memory(pods=80_000, server=260.6, scheduler=101.1),
    ],
    peak={"server": 300.0, "scheduler": 110.0},
)


def test_report_for_people() -> None:
    assert RESULT.as_lines() == [
        "80,000 pods came and went on 100 nodes, at most 64 at a time, in 160 s",
        "      pods  server, MiB  scheduler, MiB",
        "         1           80              90",
        "    80,000          261             101",
        "      peak          300             110",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pods", "looks"),
    [
        pytest.param(80, 9, id="eight looks, and one after the first pod"),
        pytest.param(3, 3, id="fewer pods than looks"),
    ],
)
def test_a_small_measurement(pods: int, looks: int) -> None:
    size = ("--nodes", "4", "--pods", str(pods), "--present", "8")
    result = CliRunner().invoke(main, ["bench", "churn", *size, "-o", "json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    memory = found["memory"]
    assert [memory[0]["pods"], memory[-1]["pods"]] == [1, pods]
    assert len(memory) == looks
    assert all(each["server"] > 0 and each["scheduler"] > 0 for each in memory)
    assert set(found["peak"]) == {"server", "scheduler"}
