"""Settings of the garbage collector and of the C library in a process that lives long."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys

import pytest

from moorage.base.memory import settle_memory


@pytest.mark.parametrize("collect", [True, False])
def test_present_objects_are_taken_out_of_collection(collect: bool):
    before = gc.get_threshold()
    cycle: list[object] = []
    cycle.append(cycle)
    try:
        settle_memory(collect=collect)
        assert gc.get_threshold() == (2_000, 5, 8_000)
        assert gc.get_freeze_count() > 0
        assert not any(each is cycle for each in gc.get_objects())
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


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
    said = subprocess.run([sys.executable, "-c", _USED_AGAIN], check=True, capture_output=True)
    assert int(said.stdout) < 280
