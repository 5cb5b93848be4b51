"""Views of the progress of ``moorage up``, chosen by option, terminal and foreground process."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from moorage_sandbox.sandbox.lines import View

Output = Literal["auto", "lines", "json", "quiet"]


def view_of(output: Output, *, detached: bool = False) -> View:
    """Return the view.

    Parameters
    ----------
    output
        The option. ``auto`` draws on a terminal that is this process's to draw on, and prints
        lines elsewhere; in the background it prints only the start and messages.
    detached
        Whether the command returns when the sandbox is ready.
    """
    from moorage_sandbox.sandbox.lines import JsonView, LinesView, QuietView, SteadyView

    if output == "quiet":
        return QuietView(sys.stdout, sys.stderr, detached=detached)
    if output == "json":
        return JsonView(sys.stdout, sys.stderr, detached=detached)
    if output == "lines" or not (detached or sys.stdout.isatty()):
        return LinesView(sys.stdout, sys.stderr, detached=detached)
    if detached or not _may_draw():
        return SteadyView(sys.stdout, sys.stderr, detached=detached)
    from rich.console import Console

    from moorage_sandbox.sandbox.live import LiveView

    return LiveView(Console())


def _may_draw() -> bool:
    """Whether no other job writes to the terminal, as far as known.

    A shell with job control makes another process group the terminal's own; a script that starts
    something with ``&`` gives it an empty standard input.
    """
    try:
        return sys.stdin.isatty() and os.tcgetpgrp(sys.stdout.fileno()) == os.getpgrp()
    except OSError:
        return False
