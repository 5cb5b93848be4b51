"""Each notebook in ``examples`` runs from the first cell to the last, and prints what it shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_BETWEEN = "--- end of a cell ---"


@pytest.mark.parametrize(
    "name", [pytest.param("sandbox.ipynb", marks=pytest.mark.slow), "simulate.ipynb"]
)
def test_each_cell_prints_what_the_notebook_shows(name: str, tmp_path: Path) -> None:
    cells: list[dict[str, Any]] = [
        each
        for each in json.loads((EXAMPLES / name).read_text())["cells"]
        if each["cell_type"] == "code"
    ]
    program = f"\nprint({_BETWEEN!r})\n".join("".join(each["source"]) for each in cells)
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    # A table or a picture is shown by the notebook itself, not printed.
    shown = ["".join("".join(each.get("text", "")) for each in cell["outputs"]) for cell in cells]
    assert done.stdout.split(f"{_BETWEEN}\n") == shown
