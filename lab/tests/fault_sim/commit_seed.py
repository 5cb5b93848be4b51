"""A first seed that each commit draws for itself: continuous integration plays what nobody saw.

`MOORAGE_COMMIT_SEED` takes its place, to play the runs of another commit again.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache

from tests.packages import ROOT

VARIABLE = "MOORAGE_COMMIT_SEED"

_DIGITS = 6  # of the name of the commit, so that seeds stay short and are none of the usual ones


@cache
def commit_seed() -> int:
    """Return the seed; the usual first one where the tests are no checkout of a repository."""
    if chosen := os.environ.get(VARIABLE):
        return int(chosen)
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):  # no git, or no repository
        return 1
    return int(done.stdout[:_DIGITS], 16)
