"""The scheduler's process of a sandbox: ``python -m moorage_sandbox.cli.up.scheduler_process``.

It reads `SchedulerSettings` and writes lines of `SchedulerReport`; see `child_process`. It makes
its imports while the server starts, and begins with its settings.

The scheduler of a sandbox stands for election again when it has lost its lease. The process of
another scheduler ends instead, as kube-scheduler's does, and a kubelet starts it again. In a
sandbox nobody would, and the cluster would end with it.
"""

from __future__ import annotations

import logging
import sys
from urllib.parse import urlsplit

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import LeaseLostError
from moorage.base.importing import without_collecting
from moorage.base.verbosity import level_of
from moorage.cli.run.scheduler_options import SchedulerOptions, StartListeners

with without_collecting():
    from moorage.cli.options import log_from
    from moorage.cli.render import error_text, show_note
    from moorage.cli.run.scheduling import schedule
    from moorage_sandbox.cli.up.scheduler_settings import SchedulerSettings
    from moorage_sandbox.sandbox.processes.child_process import run_child, send_report
    from moorage_sandbox.sandbox.settings import SchedulerReport


def main() -> int:
    """Schedule until the process should end; return the exit code."""
    return run_child(SchedulerSettings, _schedule, name="scheduler", explain=error_text)


async def _schedule(settings: SchedulerSettings, clock: Clock) -> None:
    # The lines of a sandbox's scheduler stand among those of its other parts: warnings only,
    # unless more is asked for.
    verbosity = settings.options.verbosity
    log_from(level_of(verbosity) if verbosity else logging.WARNING)
    listeners = StartListeners(
        ready=lambda: send_report(SchedulerReport(ready=True)),
        serving=lambda url: send_report(SchedulerReport(serving=url)),
        page=lambda link: send_report(SchedulerReport(page=link)),
    )
    await schedule_in_sandbox(settings.options, clock, listeners)


async def schedule_in_sandbox(
    options: SchedulerOptions, clock: Clock, listeners: StartListeners
) -> None:
    """Schedule the pods of a sandbox until cancelled, also after a lost lease.

    The port of health checks and metrics stays the same. A page gets another login link.

    Raises
    ------
    Exception
        As `schedule`, apart from a lost lease.
    """
    first = _First(listeners)
    while True:
        try:
            await schedule(options, clock, first.telling())
        except LeaseLostError as error:
            show_note(f"{error}; the scheduler stands for election again")
        if first.port:
            flags = {**options.flags, "secure-port": first.port}
            options = msgspec.structs.replace(options, flags=flags, free_port=False)


class _First:
    """Passes on the first report of each sort, and every login link.

    The address that a later report names stays the same.
    """

    def __init__(self, listeners: StartListeners) -> None:
        self._listeners = listeners
        self.port = 0

    def telling(self) -> StartListeners:
        """Return the functions that a scheduler calls."""
        return (
            StartListeners(page=self._listeners.page)
            if self.port
            else StartListeners(self._ready, self._serving, self._listeners.page)
        )

    def _ready(self) -> None:
        if self._listeners.ready is not None:
            self._listeners.ready()
            self._listeners = msgspec.structs.replace(self._listeners, ready=None)

    def _serving(self, url: str) -> None:
        self.port = urlsplit(url).port or 0
        if self._listeners.serving is not None:
            self._listeners.serving(url)


if __name__ == "__main__":
    sys.exit(main())
