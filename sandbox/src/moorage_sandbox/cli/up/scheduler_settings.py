"""The settings of the scheduler's process of a sandbox, as data between processes."""

from __future__ import annotations

import msgspec

from moorage.base.process import Pace
from moorage.cli.run.scheduler_options import SchedulerOptions


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``moorage run`` for the process, and the pace of the sandbox's time."""

    options: SchedulerOptions
    pace: Pace = Pace()
