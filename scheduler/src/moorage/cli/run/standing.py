"""The scheduler of a sandbox stands for election again when it has lost its lease.

Place in the flow: `run` and `up` start the scheduler of a sandbox here. The process of another
scheduler ends instead, as kube-scheduler's does, and a kubelet starts it again. In a sandbox nobody
would, and the cluster would end with it.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import LeaseLostError
from moorage.cli.render import show_note
from moorage.cli.run.scheduler_options import SchedulerOptions, Told
from moorage.cli.run.scheduling import schedule


async def schedule_in_sandbox(options: SchedulerOptions, clock: Clock, told: Told) -> None:
    """Schedule the pods of a sandbox until cancelled, also after a lost lease.

    The port of health checks and metrics stays the same. A page gets another login link, which is
    shown on standard error.

    Raises
    ------
    Exception
        As `schedule`, apart from a lost lease.
    """
    first = _First(told)
    while True:
        try:
            await schedule(options, clock, first.telling())
        except LeaseLostError as error:
            show_note(f"{error}; the scheduler stands for election again")
        if first.port:
            flags = {**options.flags, "secure-port": first.port}
            options = msgspec.structs.replace(options, flags=flags, free_port=False)


class _First:
    """Passes on the first report of each sort: the address that it names stays the same."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self.port = 0

    def telling(self) -> Told:
        """Return the functions that a scheduler calls; none once all has been reported."""
        return Told() if self.port else Told(self._ready, self._serving, self._told.page)

    def _ready(self) -> None:
        if self._told.ready is not None:
            self._told.ready()
            self._told = msgspec.structs.replace(self._told, ready=None)

    def _serving(self, url: str) -> None:
        self.port = urlsplit(url).port or 0
        if self._told.serving is not None:
            self._told.serving(url)
