"""Settings of the garbage collector and of the C library in a process that lives long."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# In processes of their own: the tests keep their own process from such settings (conftest.py).
_TAKEN_OUT = """
import gc
import sys
from moorage.base.memory import settle_memory

cycle = []
cycle.append(cycle)
settle_memory(collect=sys.argv[1] == "collect")
kept = any(each is cycle for each in gc.get_objects())
print(gc.get_threshold(), gc.get_freeze_count() > 0, kept)
"""


@pytest.mark.parametrize("first", ["collect", "do not"])
def test_present_objects_are_taken_out_of_collection(first: str) -> None:
    assert _printed(_TAKEN_OUT, first) == "(2000, 0, 8000) True False\n"


_USED_AGAIN = """
import resource
import numpy as np
from moorage.base.memory import settle_memory

def use():
    columns = [np.ones(20_000) for _ in range(8)]  # 160 kB each

settle_memory()
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the limits are those of glibc")
def test_freed_arrays_cost_no_page_faults_when_memory_is_used_again() -> None:
    """Without the settings this process has 28,000 page faults."""
    assert int(_printed(_USED_AGAIN)) < 280


def _printed(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
