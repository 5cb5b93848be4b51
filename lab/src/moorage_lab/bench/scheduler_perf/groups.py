"""waitForPodGroups: groups of pods that have to be there before their pods come."""

from __future__ import annotations

from typing import Any, Final

from moorage.api.resources import POD_GROUPS
from moorage.base import aio
from moorage.base.errors import MoorageError
from moorage.client.requests import Selection
from moorage_lab.bench.scheduler_perf.operations import WaitForPodGroups
from moorage_lab.bench.scheduler_perf.scene import Scene
from moorage_lab.bench.timing import Stopwatch

_LOOK_SECONDS: Final = 0.1
_WAIT_SECONDS: Final = 10.0  # as in the suite


async def wait_for_groups(scene: Scene, op: WaitForPodGroups) -> None:
    """Wait until a namespace has so many groups.

    Raises
    ------
    MoorageError
        The time is over.
    """
    watch = Stopwatch(scene.clock.monotonic_ns)
    while True:
        listed: Any = await scene.objects.client.list(POD_GROUPS, Selection(op.namespace))
        if len(listed["items"]) >= op.count:
            return
        if watch.seconds >= _WAIT_SECONDS:
            raise MoorageError(
                f"namespace {op.namespace}: {len(listed['items'])} of {op.count} groups of pods "
                f"are there after {_WAIT_SECONDS:.0f} s"
            )
        await aio.sleep(_LOOK_SECONDS)
