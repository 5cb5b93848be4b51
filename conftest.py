"""What holds for every test: properties are limited by examples, never by the machine's speed."""

from __future__ import annotations

import functools
import gc
import os
import sys
import typing
from collections.abc import Generator, Iterator
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from moorage.base import memory
from moorage.base.entry_points import entry_points
from moorage.snapshot.pod_info import forget_shared_parts
from tests import packages

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

# Python 3.12 keeps the members of a protocol by itself. Before, each `isinstance` collects them
# anew: four hundredths of the time of all tests with a scheduler.
if sys.version_info < (3, 12):
    _MEMBERS = "_get_protocol_attrs"
    setattr(typing, _MEMBERS, functools.cache(getattr(typing, _MEMBERS)))

# A guess: properties wait for nothing, so only an endless loop should get here. The longest needs
# 12 s of a core, which took 31 s at a load of seven; at nine it failed as if 120 s had run out.
PROPERTY_SECONDS_MAX = 1200


def pytest_configure() -> None:
    """Refuse an environment that was built before the entry points in ``pyproject.toml``."""
    for group, points in packages.entry_points().items():
        if entry_points(group) != points:
            raise pytest.UsageError(f"{group} of pyproject.toml is not installed: make venv")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Take the modules and the collected tests, 370 MB, out of every garbage collection.

    Later collections are made rarer: a sixth of the time of all tests went into them.
    """
    gc.disable()
    collected = yield
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    return collected


@pytest.fixture(scope="session", autouse=True)
def _shared_collector() -> Iterator[None]:
    """Keep the parts that live long in a process of their own from setting the collector of this.

    With their settings the garbage of later tests stayed, and each start of a scheduler or of a
    benchmark looked through all that earlier tests had left.
    """
    nothing = SimpleNamespace(
        collect=lambda: 0,
        freeze=lambda: None,
        unfreeze=lambda: None,
        set_threshold=lambda *_counts: None,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "gc", nothing)
        yield


@pytest.fixture(scope="module", autouse=True)
def _no_cluster_of_another_module() -> Iterator[None]:
    """Free the clusters of a module's tests: pods of later ones share their parts with those."""
    yield
    forget_shared_parts()


@pytest.hookimpl(trylast=True)  # after hypothesis has marked its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give properties time: the limit's alarm goes off inside an example.

    Hypothesis takes it for the example's failure, cannot repeat it and calls the test flaky; within
    a garbage collection it is an exception that nobody catches. Neither says that time was up.
    """
    for item in items:
        if item.get_closest_marker("hypothesis") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PROPERTY_SECONDS_MAX))
