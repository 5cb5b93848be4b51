"""What holds for every test: properties are limited by examples, never by the machine's speed."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadline: pytest's own timeout names a test that hangs, and a busy machine is no failure.
# With CI set, the same examples are drawn each time; elsewhere a failure prints how to repeat it.
settings.register_profile(
    "moorage",
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("moorage")
