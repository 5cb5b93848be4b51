"""Shows progress on a terminal: counts, a rate, the last decisions, redrawn in place."""

from __future__ import annotations

import os

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from moorage.sandbox.lines import Started, metrics_line, summary
from moorage.sandbox.progress import Change, PodState, Progress

_COLOURS = {
    PodState.PENDING: "yellow",
    PodState.GATED: "yellow",
    PodState.UNSCHEDULABLE: "red",
    PodState.BOUND: "cyan",
    PodState.RUNNING: "green",
    PodState.FINISHED: "bright_black",
}
# Lines around the list of decisions: counts, rate, headings, and how to stop.
_FRAME_LINES = 7
_DECISIONS_MAX = 20
_NAME_WIDTH_MAX = 40


class LiveView:
    """The view of a terminal.

    Parameters
    ----------
    console
        The terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def started(self, what: Started) -> None:
        """Print the fixed lines above the redrawn part, and begin to draw."""
        scheduler = f"scheduler (seed {what.seed})" if what.scheduler else "no scheduler"
        self._console.print(
            f"[bold]moorage[/bold] API server {what.url}, {what.nodes} nodes, {scheduler}\n",
            highlight=False,
        )
        for line in what.copy_lines:
            # Not wrapped by us, so that it can be copied as one line.
            self._console.print(f"    {line}", highlight=False, soft_wrap=True, markup=False)
        self._console.print()
        self._live.start()

    def ready(self, seconds: float) -> None:
        """Print the time until pods are scheduled above the redrawn part."""
        self._console.print(f"ready in {seconds:.2f} s", highlight=False)

    def serving(self, url: str) -> None:
        """Print the address of the metrics above the redrawn part."""
        self.message(metrics_line(url), style="")

    def change(self, change: Change) -> None:
        """Nothing to do: the next tick draws from the progress."""

    def message(self, text: str, *, style: str = "yellow") -> None:
        """Print a message above the redrawn part."""
        if not self._in_foreground():
            # The console would draw all of it again below the message.
            self._console.file.write(f"{text}\n")
            return
        self._console.print(text, style=style, markup=False, highlight=False)

    def tick(self, progress: Progress) -> None:
        """Draw, unless the terminal belongs to other work of the shell."""
        if self._live.is_started and self._in_foreground():
            self._live.update(self._draw(progress), refresh=True)

    def closed(self) -> bool:
        """Return False: a terminal that is gone ends the process by a signal."""
        return False

    def ended(self, progress: Progress, *, settled: bool) -> None:
        """Stop drawing and print the counts, and why pods wait."""
        word = "settled" if settled else "stopped"
        text = f"{word}: {summary(progress)}; {progress.decisions} decisions"
        if not self._in_foreground():
            self._console.show_cursor()
            self._console.file.write(f"{text}\n")
            return
        self._live.stop()
        for change in progress.waiting:
            self._console.print(_line(change))
        self._console.print(text, highlight=False)

    def _in_foreground(self) -> bool:
        """Whether the terminal is this process's to draw on.

        A shell gives each command a process group, and the terminal to one of the groups.
        """
        try:
            return os.tcgetpgrp(self._console.file.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            # Not the terminal that this process belongs to: no shell says whose it is.
            return True

    def _draw(self, progress: Progress) -> RenderableType:
        counts = Text("pods  ")
        for state in PodState:
            counts.append(f"{progress.counts[state]} ", style=f"bold {_COLOURS[state]}")
            counts.append(f"{state.value}   ")
        rate = Text(
            f"{progress.decisions} decisions, {progress.decisions_per_second():.0f} a second"
        )
        room = max(3, min(_DECISIONS_MAX, self._console.height - _FRAME_LINES))
        shown = list(progress.recent)[-room:]
        # A long reason is cut at the edge; it must not shorten the pod's name.
        widths = (
            min(_NAME_WIDTH_MAX, max((len(change.pod) for change in shown), default=0)),
            max(len(state.value) for state in PodState),
            None,
        )
        table = Table.grid(padding=(0, 2))
        for width in widths:
            table.add_column(no_wrap=True, overflow="ellipsis", min_width=width)
        for change in shown:
            what = Text(change.state.value, style=_COLOURS[change.state])
            table.add_row(Text(change.pod), what, Text(change.node or change.message))
        stop = Text("Ctrl-C ends the cluster", style="bright_black")
        return Group(counts, rate, Text(""), table, Text(""), stop)


def _line(change: Change) -> Text:
    line = Text(f"{change.pod}  ")
    line.append(change.state.value, style=_COLOURS[change.state])
    return line.append(f"  {change.message}")
