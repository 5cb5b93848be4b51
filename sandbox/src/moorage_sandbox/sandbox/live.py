"""Shows progress on a terminal: the lines to copy, counts, the last decisions; redrawn in place."""

from __future__ import annotations

import os
from collections import deque

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from moorage_sandbox.sandbox.lines import (
    Started,
    metrics_line,
    narrow_page_lines,
    nodes_text,
    summary,
)
from moorage_sandbox.sandbox.progress import Change, PodState, Progress

_COLOURS = {
    PodState.PENDING: "yellow",
    PodState.GATED: "yellow",
    PodState.UNSCHEDULABLE: "red",
    PodState.BOUND: "cyan",
    PodState.RUNNING: "green",
    PodState.FINISHED: "bright_black",
}
_DECISIONS_MAX = 20
_NAME_WIDTH_MAX = 40
_STATE_WIDTH = max(len(state.value) for state in PodState)
# Columns between the cells of the table, which has three.
_GAP = 2
# A reason keeps this many columns, however narrow the terminal; the pod's name wraps instead.
_REASON_WIDTH_MIN = 20
# Messages that are printed again after the terminal changed its size.
_MESSAGES_MAX = 5


class LiveView:
    """The view of a terminal.

    The redrawn part begins with the lines to copy, and is never higher than the terminal, so these
    lines stay on it. Messages are printed above.

    Parameters
    ----------
    console
        The terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._size = console.size
        self._live = self._new_live()
        self._head: list[Text] = []
        self._link = ""
        self._what: Started | None = None
        self._messages: deque[Text] = deque(maxlen=_MESSAGES_MAX)

    def started(self, what: Started) -> None:
        """Begin to draw, first of all the lines to copy."""
        self._what = what
        lines = [Text(f"    {line}") for line in what.copy_lines]
        self._head = [_title(what, what.nodes), *lines]
        for line in lines:
            if len(line) > self._console.width:
                # Once not wrapped by us, so that it can be copied as one line.
                self._console.print(line, soft_wrap=True)
        self._live.start()
        if self._in_foreground():
            self._live.update(Group(*self._head), refresh=True)

    def ready(self, seconds: float) -> None:
        """Draw the time until pods are scheduled from now on."""
        self._head.append(Text(f"ready in {seconds:.2f} s"))

    def serving(self, url: str) -> None:
        """Draw the address of the metrics from now on."""
        self._head.append(Text(metrics_line(url)))

    def page(self, link: str) -> None:
        """Draw the login link of the page from now on, where it fits into one line."""
        self._link = link

    def change(self, change: Change) -> None:
        """Nothing to do: the next tick draws from the progress."""

    def message(self, text: str) -> None:
        """Print a message above the redrawn part."""
        if not self._in_foreground():
            # The console would draw all of it again below the message.
            self._console.file.write(f"{text}\n")
            return
        self._messages.append(Text(text, style="yellow"))
        self._console.print(self._messages[-1])

    def tick(self, progress: Progress) -> None:
        """Draw, unless the terminal belongs to other work of the shell."""
        if not self._live.is_started or not self._in_foreground():
            return
        if self._console.size != self._size:
            self._begin_again()
        if self._what is not None and progress.nodes:
            self._head[0] = _title(self._what, progress.nodes)
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

    def _new_live(self) -> Live:
        return Live(console=self._console, auto_refresh=False, transient=True)

    def _begin_again(self) -> None:
        """Clear the terminal and draw anew: its lines have moved with its size."""
        self._size = self._console.size
        self._live.stop()
        self._console.clear()
        for message in self._messages:
            self._console.print(message)
        self._live = self._new_live()
        self._live.start()

    def _in_foreground(self) -> bool:
        """Whether the terminal is this process's to draw on.

        A shell gives each command a process group, and the terminal to one of the groups.
        """
        try:
            return os.tcgetpgrp(self._console.file.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            # Not the terminal that this process belongs to: no shell says whose it is.
            return True

    def _draw(self, progress: Progress) -> Group:
        counts = Text("pods")
        for state in PodState:
            counts.append(f"  {progress.counts[state]} ", style=f"bold {_COLOURS[state]}")
            counts.append(state.value)
        rate = Text(
            f"{progress.decisions} decisions, {progress.decisions_per_second():.0f} a second"
        )
        page = narrow_page_lines(self._link, self._console.width) if self._link else ()
        above = Group(*self._head, *map(Text, page), Text(""), counts, rate, Text(""))
        below = Group(Text(""), Text("Ctrl-C ends the cluster", style="bright_black"))
        # The last line of the terminal stays free: a full terminal would scroll.
        room = self._console.height - 1 - self._height(above) - self._height(below)
        return Group(above, self._decisions(progress.recent, room), below)

    def _decisions(self, recent: list[Change], room: int) -> Table:
        """Return the last decisions, as many as fit into some lines.

        The newest pod that no node takes keeps its place: it is what people look for.
        """
        refused = [each for each in recent if each.state is PodState.UNSCHEDULABLE][-1:]
        others = [each for each in reversed(recent) if each not in refused]
        wanted = [*refused, *others][:_DECISIONS_MAX]
        free = self._console.width - _STATE_WIDTH - 2 * _GAP
        longest = max((len(change.pod) for change in wanted), default=0)
        width = max(1, min(_NAME_WIDTH_MAX, longest, free - _REASON_WIDTH_MIN))
        rows: list[Change] = []
        for change in wanted:
            room -= self._height(_table([change], width))
            if room < 0:
                break
            rows.append(change)
        return _table([change for change in recent if change in rows], width)

    def _height(self, part: Group | Table) -> int:
        return len(self._console.render_lines(part))


def _title(what: Started, nodes: int) -> Text:
    scheduler = f"scheduler (seed {what.seed})" if what.scheduler else "no scheduler"
    title = Text("moorage", style="bold")
    counted = nodes_text(nodes, what.autoscale)
    return title.append(f" API server {what.url}, {counted}, {scheduler}", style="not bold")


def _table(changes: list[Change], name_width: int) -> Table:
    table = Table.grid(padding=(0, _GAP))
    table.add_column(overflow="fold", width=name_width)
    table.add_column(no_wrap=True, min_width=_STATE_WIDTH)
    table.add_column(overflow="fold")
    for change in changes:
        what = Text(change.state.value, style=_COLOURS[change.state])
        table.add_row(Text(change.pod), what, Text(change.node or change.message))
    return table


def _line(change: Change) -> Text:
    line = Text(f"{change.pod}  ")
    line.append(change.state.value, style=_COLOURS[change.state])
    return line.append(f"  {change.message}")
