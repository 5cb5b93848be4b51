"""Runs a shadow: loads the configuration, watches the server, shows the progress."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

import click
import msgspec

from moorage.api.codec import encode
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, Clock, SystemClock
from moorage.base.errors import UsageError
from moorage.base.process import Ending, run_loop, until_ended
from moorage.base.rng import Streams
from moorage.cli.cluster_choice import choose_cluster
from moorage.cli.render import show_note
from moorage.cli.rows.durations import duration
from moorage.client.http_transport import HttpTransport
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration, emulating, with_groups
from moorage.plugins.from_outside import with_plugins
from moorage.shadow.comparison import Comparison
from moorage.shadow.feed import Feed
from moorage.shadow.report import Report
from moorage.shadow.watching import Limits, Watch
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import ClusterObjects

_PROGRESS_SECONDS: Final = 1.0
_DEFAULT: Final = "the default profile"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The wishes of a person; the fields are the options of the command.

    Parameters
    ----------
    seconds, decisions
        When to end; None without that limit.
    """

    config: Path | None
    version: str
    oldest: str
    gates: str
    groups: bool
    plugins: Sequence[str]
    served: Sequence[str]
    seconds: float | None
    decisions: int | None
    to: Path | None
    follows_course: bool
    seed: int
    kubeconfig: str
    context: str


def run_shadow(wanted: Wanted) -> Report:
    """Compare until a limit is reached or a signal comes, and return the report.

    Raises
    ------
    UsageError
        The configuration, a plugin or a file cannot be used.
    MoorageError
        The server cannot be reached, or forbids to read.
    """
    loaded = emulating(
        load_config(wanted.config),
        version=wanted.version,
        oldest=wanted.oldest,
        gates=wanted.gates,
    )
    if wanted.groups:
        loaded = with_groups(loaded)
    known = with_plugins(serving(loaded, wanted.served), wanted.plugins)
    for note in known.notes:
        show_note(note)
    clock = SystemClock()
    inputs = ClusterInputs(
        objects=ClusterObjects(),
        registry=known.registry,
        config=known.config,
        seed=wanted.seed,
        now_ns=clock.now_ns(),
    )
    with ExitStack() as stack:
        lines = None if wanted.to is None else stack.enter_context(_opened(wanted.to))
        feed = Feed(
            inputs,
            clock,
            configuration=str(wanted.config or _DEFAULT),
            on_comparison=None if lines is None else _Lines(lines),
            follows_course=wanted.follows_course,
        )
        run_loop(_watched(wanted, feed, clock))
        return feed.report()


def serving(config: LoadedConfiguration, served: Sequence[str]) -> LoadedConfiguration:
    """Return a configuration whose profiles serve other names, as ``--as`` says.

    Parameters
    ----------
    served
        Each ``NAME`` or ``NAME=PROFILE``.

    Raises
    ------
    UsageError
        There is no such profile, or a value cannot be read.
    """
    for text in served:
        name, given, profile = text.partition("=")
        profiles = config.scheduler.profiles
        old = profile or profiles[0].scheduler_name
        if not name or (given and not profile):
            raise UsageError(f"--as {text}: write NAME or NAME=PROFILE")
        if old not in {each.scheduler_name for each in profiles}:
            names = ", ".join(each.scheduler_name for each in profiles)
            raise UsageError(f"--as {text}: there is no profile {old}; there are {names}")
        renamed = [
            msgspec.structs.replace(each, scheduler_name=name)
            if each.scheduler_name == old
            else each
            for each in profiles
            if each.scheduler_name == old or each.scheduler_name != name
        ]
        own = [
            msgspec.structs.replace(each, scheduler_name=name)
            if each.scheduler_name == old
            else each
            for each in config.own.profiles
            if each.scheduler_name == old or each.scheduler_name != name
        ]
        config = msgspec.structs.replace(
            config,
            scheduler=msgspec.structs.replace(config.scheduler, profiles=renamed),
            own=msgspec.structs.replace(config.own, profiles=own),
        )
    return config


async def _watched(wanted: Wanted, feed: Feed, clock: Clock) -> None:
    """Watch until a limit is reached or a signal comes."""
    ending = Ending()
    ending.listen()
    access = choose_cluster(wanted.kubeconfig, wanted.context, clock=clock).access
    transport = HttpTransport(access, user_agent="moorage-shadow")
    watch = Watch(transport, feed, clock=clock, streams=Streams())
    tasks = TaskOwner()

    async def work() -> None:
        await watch.start()
        show_note(f"watching {access.server}: comparing begins; Ctrl-C ends it with the report")
        if sys.stderr.isatty():
            tasks.spawn(_progress(feed, clock), name="progress")
        await watch.follow(Limits(seconds=wanted.seconds, decisions=wanted.decisions))

    try:
        await until_ended(work(), ending, name="shadow")
    finally:
        await tasks.cancel_all()
        await watch.close()
        await transport.close()


async def _progress(feed: Feed, clock: Clock) -> None:
    """Show the counts on one line of the terminal, until cancelled."""
    began_ns = clock.monotonic_ns()
    try:
        while True:
            passed = duration((clock.monotonic_ns() - began_ns) / NS_PER_SECOND)
            tally = feed.tally
            told = (
                f"{passed}: {tally.agree} agree, {tally.differ} differ, "
                f"{tally.not_comparable} not comparable"
            )
            click.echo(f"\r{told}\x1b[K", err=True, nl=False)
            await aio.sleep(_PROGRESS_SECONDS)
    finally:
        click.echo("\r\x1b[K", err=True, nl=False)


class _Lines:
    """Writes each comparison as a line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __call__(self, comparison: Comparison) -> None:
        self._file.write(encode(comparison) + b"\n")
        self._file.flush()


def _opened(file: Path) -> IO[bytes]:
    try:
        return file.open("wb")
    except OSError as error:
        raise UsageError(f"--to {file}: cannot write it: {error.strerror}") from error
