"""Options of the scheduler itself, apart from those of its process.

``moorage up`` starts the scheduler as a process of its own and has no use for its plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

RECORDS_BYTES: Final = 64 * 1024 * 1024
"""`moorage.observe.records.ring.BYTES_MAX`, which takes long to import."""
PAGE: Final = "127.0.0.1:10270"
"""The address of the page unless told otherwise."""


class StartListeners(msgspec.Struct, frozen=True):
    """The functions that a starting scheduler calls; None where nobody is told.

    Parameters
    ----------
    ready
        Called when the first lists have arrived and pods are being scheduled.
    serving
        Called after that with the address of metrics and health checks, where a free port is taken.
    page
        Called after that with the first login link of the page, if there is one; later links, and
        all links without it, are reported on standard error.
    """

    ready: Callable[[], None] | None = None
    serving: Callable[[str], None] | None = None
    page: Callable[[str], None] | None = None


NOBODY: Final = StartListeners()


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options given to ``moorage run``.

    Parameters
    ----------
    kubeconfig, context
        The kubeconfig and its context; "" for the kubeconfig of the configuration, else the usual
        files.
    config
        File of the configuration; None for the defaults.
    seed
        Seed of all random choices; None draws a seed.
    plugins
        Plugins from outside, as ``--plugin`` names them.
    groups
        Whether pod groups of every form are scheduled as groups.
    flags
        Flags of kube-scheduler that were given, by name.
    verbosity
        How much is logged, as ``-v`` of kube-scheduler.
    free_port
        Whether to serve on any free port, once pods are scheduled; in a sandbox, where a start in
        good time matters more than health checks during it.
    records_bytes
        Memory of the records of attempts, bytes; 0 keeps none.
    record
        File that records are written to; None writes none.
    page
        ``ADDRESS:PORT`` to serve the page on; "" serves none.
    page_acts
        Kubeconfig of the administrator of a sandbox, whose acts the page offers; "" offers none.
    """

    kubeconfig: str = ""
    context: str = ""
    config: Path | None = None
    seed: int | None = None
    plugins: tuple[str, ...] = ()
    groups: bool = False
    flags: Mapping[str, Any] = {}
    verbosity: int = 0
    free_port: bool = False
    records_bytes: int = RECORDS_BYTES
    record: Path | None = None
    page: str = ""
    page_acts: str = ""
