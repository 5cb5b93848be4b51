"""The start of the process: Ctrl-C during the imports ends it without a traceback.

This module imports next to nothing itself, so that the time without this protection is short.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # Nothing is started yet that has to be ended, so the signal may end the process at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from moorage.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()
