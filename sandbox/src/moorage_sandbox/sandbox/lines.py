"""Shows progress as lines, for pipes and logs: text for people or JSON for programs."""

from __future__ import annotations

import os
import select
from collections import deque
from typing import Protocol, TextIO

import msgspec

from moorage_sandbox.sandbox.progress import Change, PodState, Progress

# Above this many lines in one tick (four ticks a second), lines are counted instead of printed. The
# first thirty pods have three lines each, and these may come all at once.
_LINES_MAX = 100
_PENDING_MAX = 10_000


class Started(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a sandbox once all of them run."""

    url: str
    kubeconfig: str
    nodes: int
    scheduler: bool
    seed: int
    context: str = ""
    """The context in the user's own kubeconfig; "" for none."""
    autoscale: str = ""
    """``MIN:MAX`` where nodes come and go; "" where they stay."""
    example: str = ""
    """A pod that no node takes, to be explained; "" where there is none."""

    @property
    def copy_lines(self) -> tuple[str, ...]:
        """The lines to copy into another terminal."""
        option = f" --context {self.context}" if self.context else ""
        lines = [f"kubectl{option} get nodes"]
        if not self.context:
            lines.insert(0, f"export KUBECONFIG={self.kubeconfig}")
        if self.example:
            lines.append(f"moorage explain pod {self.example}{option}")
        return tuple(lines)


class View(Protocol):
    """Shows the progress of a sandbox."""

    def started(self, what: Started) -> None:
        """Say that everything runs."""
        ...

    def ready(self, seconds: float) -> None:
        """Show the time until pods are scheduled, or without a scheduler until all parts run."""
        ...

    def serving(self, url: str) -> None:
        """Show where the scheduler's metrics and health checks are."""
        ...

    def page(self, link: str) -> None:
        """Show the login link of the page."""
        ...

    def change(self, change: Change) -> None:
        """Show that a pod changed."""
        ...

    def message(self, text: str) -> None:
        """Show a message of a part."""
        ...

    def tick(self, progress: Progress) -> None:
        """Bring the view up to date; called a few times a second."""
        ...

    def closed(self) -> bool:
        """Whether to end, as the reader of the output has gone: after ``| head``."""
        ...

    def ended(self, progress: Progress, *, settled: bool) -> None:
        """Show the end; nothing is shown after it."""
        ...


def summary(progress: Progress) -> str:
    """Return the counts in one line."""
    parts = [f"{count} {state.value}" for state in PodState if (count := progress.counts[state])]
    return f"{progress.total} pods: {', '.join(parts) or 'none'}"


def nodes_text(count: int, autoscale: str) -> str:
    """Return the number of nodes, and between which numbers it moves by itself."""
    return f"{count} nodes, autoscaled {autoscale}" if autoscale else f"{count} nodes"


def metrics_line(url: str) -> str:
    """Return where the scheduler's metrics are, for people; its certificate is its own."""
    return f"scheduler metrics at {url}/metrics (curl -k)"


def page_line(link: str) -> str:
    """Return where the page is, for people."""
    return f"page at {link} (the link works once)"


def narrow_page_lines(link: str, width: int) -> tuple[str, ...]:
    """Return where the page is in lines of some columns: the link is in one line, or left out."""
    if len(page_line(link)) <= width:
        return (page_line(link),)
    if len(link) <= width:
        return "page, by a link that works once:", link
    return ("page: `moorage status` prints its link",)


class _Printer:
    """Prints to two streams until their reader has gone.

    Parameters
    ----------
    out, err
        Streams for lines, and for messages of the parts.
    detached
        Whether the sandbox goes on without a reader.
    """

    def __init__(self, out: TextIO, err: TextIO, *, detached: bool = False) -> None:
        self._out = out
        self._err = err
        self._detached = detached
        self._closed = False

    def message(self, text: str) -> None:
        """Print to standard error."""
        self._write_text(self._err, text)

    def closed(self) -> bool:
        """Whether the sandbox needs the reader of the pipe that is printed to, who is gone."""
        self._closed = self._closed or _reader_is_gone(self._out)
        return self._closed and not self._detached

    def _write_text(self, stream: TextIO, text: str) -> None:
        try:
            stream.write(f"{text}\n")
            stream.flush()
        except BrokenPipeError:
            self._closed = True
            # The rest of the stream is flushed at the process's end, and would fail again.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _reader_is_gone(stream: TextIO) -> bool:
    """Whether a stream is a pipe without a reader: to notice before the next line is printed."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


class LinesView(_Printer):
    """One line for each change.

    Parameters
    ----------
    out, err, detached
        As of `_Printer`.
    """

    def __init__(self, out: TextIO, err: TextIO, *, detached: bool = False) -> None:
        super().__init__(out, err, detached=detached)
        self._pending: deque[Change] = deque(maxlen=_PENDING_MAX)
        self._change_count = 0

    def started(self, what: Started) -> None:
        """Print the server's address, and the lines to copy."""
        scheduler = f"scheduler with seed {what.seed}" if what.scheduler else "no scheduler"
        nodes = nodes_text(what.nodes, what.autoscale)
        self._print(f"API server at {what.url}, {nodes}, {scheduler}")
        self._print("".join(f"\n    {line}" for line in what.copy_lines) + "\n")

    def ready(self, seconds: float) -> None:
        """Print the time until pods are scheduled."""
        self._print(f"ready in {seconds:.2f} s\n")

    def serving(self, url: str) -> None:
        """Print the address of the metrics."""
        self._print(f"{metrics_line(url)}\n")

    def page(self, link: str) -> None:
        """Print the login link of the page."""
        self._print(f"{page_line(link)}\n")

    def change(self, change: Change) -> None:
        """Keep a change for the next tick."""
        self._change_count += 1
        self._pending.append(change)

    def tick(self, progress: Progress) -> None:
        """Print the changes since the last tick; too many changes are counted instead."""
        del progress
        for change in [self._pending.popleft() for _ in range(min(_LINES_MAX, self._change_count))]:
            self._print(self._line(change))
        rest = self._change_count - min(_LINES_MAX, self._change_count)
        if rest:
            self._print(f"... and {rest} more changes")
        self._pending.clear()
        self._change_count = 0

    def ended(self, progress: Progress, *, settled: bool) -> None:
        """Print the remaining changes and the counts."""
        self.tick(progress)
        word = "settled" if settled else "stopped"
        self._print(f"{word}: {summary(progress)}; {progress.decisions} decisions")

    def _line(self, change: Change) -> str:
        text = f"{change.pod}  {change.state.value}"
        if change.node:
            text += (
                f" on {change.node}"
                if change.state is not PodState.BOUND
                else (f" to {change.node}")
            )
        return f"{text}: {change.message}" if change.message else text

    def _print(self, text: str) -> None:
        self._write_text(self._out, text)


class SteadyView(LinesView):
    """Prints the start and the messages: for a log, and for a terminal with other work on it."""

    def change(self, change: Change) -> None:
        """Say nothing."""

    def ended(self, progress: Progress, *, settled: bool) -> None:
        """Print that it has ended; what became of the pods was not shown before, either."""
        del progress
        self._print("settled" if settled else "stopped")


class QuietView(LinesView):
    """Prints the server's address and messages, nothing else."""

    def ready(self, seconds: float) -> None:
        """Say nothing."""

    def serving(self, url: str) -> None:
        """Say nothing."""

    def page(self, link: str) -> None:
        """Say nothing."""

    def change(self, change: Change) -> None:
        """Say nothing."""

    def ended(self, progress: Progress, *, settled: bool) -> None:
        """Say nothing."""


class JsonView(_Printer):
    """One JSON object for each change, nothing left out."""

    def started(self, what: Started) -> None:
        """Print the parts of the sandbox."""
        self._print({"type": "started", **msgspec.to_builtins(what)})

    def ready(self, seconds: float) -> None:
        """Print the time until pods are scheduled, to a hundredth of a second."""
        self._print({"type": "ready", "seconds": round(seconds, 2)})

    def serving(self, url: str) -> None:
        """Print where the scheduler's metrics and health checks are."""
        self._print({"type": "serving", "url": url})

    def page(self, link: str) -> None:
        """Print the login link of the page."""
        self._print({"type": "page", "url": link})

    def change(self, change: Change) -> None:
        """Print a change."""
        self._print({"type": "pod", **msgspec.to_builtins(change)})

    def tick(self, progress: Progress) -> None:
        """Nothing to do: changes are printed as they come."""

    def ended(self, progress: Progress, *, settled: bool) -> None:
        """Print the counts."""
        counts = {state.value: progress.counts[state] for state in PodState}
        self._print(
            {
                "type": "ended",
                "settled": settled,
                "pods": progress.total,
                "decisions": progress.decisions,
                **counts,
            }
        )

    def _print(self, obj: dict[str, object]) -> None:
        self._write_text(self._out, msgspec.json.encode(obj).decode())
