"""Options that several commands share, so that their help and behaviour agree."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import click

from moorage.api.schedules.durations import parse_seconds
from moorage.base.errors import UsageError
from moorage.base.verbosity import V0
from moorage.cli.completing import complete_contexts, complete_namespaces, complete_shapes
from moorage.cli.render import Form
from moorage.config.emulation import DEFAULT_VERSION, EMULATED_TEXT, OLDEST_TEXT

F = TypeVar("F", bound=Callable[..., Any])

_FORMS: Final[tuple[Form, ...]] = ("text", "wide", "json", "yaml", "name")
_MEANINGS: Final = {
    "wide": "wide: text with more columns.",
    "name": "name: names alone, as KIND/NAME.",
}


class DurationType(click.ParamType[float]):
    """A duration with units; a number alone counts seconds. The command gets seconds.

    Parameters
    ----------
    least
        The shortest duration, in seconds.
    above
        Whether a duration has to be longer than `least`.
    whole
        Whether only whole seconds are possible; the command then gets an int.
    """

    name = "duration"

    def __init__(self, least: float = 0.0, *, above: bool = False, whole: bool = False) -> None:
        self._least = least
        self._above = above
        self._whole = whole

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds of what was typed; a default is one already."""
        try:
            seconds = parse_seconds(value) if isinstance(value, str) else float(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < self._least or (self._above and seconds == self._least):
            bound = "longer than" if self._above else "at least"
            self.fail(f"{value}: the duration has to be {bound} {self._least:g}s", param, ctx)
        if not self._whole:
            return seconds
        if seconds != int(seconds):
            self.fail(f"{value}: write whole seconds", param, ctx)
        return int(seconds)


def output_option(*more: Form, text: bool = True) -> Callable[[F], F]:
    """Add ``-o`` to a command that prints objects or a report.

    Parameters
    ----------
    more
        Forms that mean something for this command, next to ``text``, ``json`` and ``yaml``.
    text
        Whether there is a text for people. Without one, ``yaml`` is printed unless another
        form is asked for.

    Returns
    -------
    Callable
        The decorator. The command gets the form as ``output``, for `moorage.cli.render.show`.
    """
    forms = [form for form in _FORMS if form in {"json", "yaml", *more, *(["text"] * text)}]
    return click.option(
        "-o",
        "--output",
        type=click.Choice(forms),
        default="text" if text else "yaml",
        show_default=True,
        help=" ".join(["What to print.", *(_MEANINGS[f] for f in forms if f in _MEANINGS)]),
    )


def by_option(*without: str) -> Callable[[F], F]:
    """Add ``--by``, for `moorage.service.questions.folding.folds`.

    Parameters
    ----------
    without
        Values that mean nothing for this command.

    Returns
    -------
    Callable
        The decorator. The command gets the value as ``by``.
    """
    from moorage.service.questions.folding.folds import By  # most commands go without

    return click.option(
        "--by",
        type=click.Choice([each for each in get_args(By) if each not in without]),
        default="owner",
        show_default=True,
        help="What makes pods one row; owner: equal owner, group and reason. Text only.",
    )


def rows_option(rows: int) -> Callable[[F], F]:
    """Add ``--limit`` to a command with tables of rows.

    Parameters
    ----------
    rows
        Most rows of a table, unless the user says otherwise.

    Returns
    -------
    Callable
        The decorator. The command gets the number as ``limit``.
    """
    return click.option(
        "--limit",
        type=click.IntRange(min=1),
        default=rows,
        show_default=True,
        metavar="N",
        help="Most rows of each table. Text only; the other forms have all.",
    )


def kubeconfig_option(function: F) -> F:
    """Add ``--kubeconfig`` and ``--context``, for `moorage.cli.cluster_choice`."""
    return _kubeconfig_option(function, "$KUBECONFIG, then the sandbox of this folder, then")


def server_option(function: F) -> F:
    """Add ``--kubeconfig`` and ``--context`` to a command that runs a part of a cluster.

    Such a command goes on for long and writes, so that no sandbox of a folder is chosen for it.
    """
    return _kubeconfig_option(function, "$KUBECONFIG, then")


def _kubeconfig_option(function: F, first: str) -> F:
    function = click.option(
        "--context",
        default="",
        metavar="NAME",
        help="Context of the kubeconfig to use.",
        shell_complete=complete_contexts,
    )(function)
    return click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help=f"How to reach the API server. Default: {first} the service account of the pod we "
        "run in, then ~/.kube/config.",
    )(function)


def namespace_option(function: F) -> F:
    """Add ``-n``."""
    return click.option(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        help="Namespace. Default: that of the context, or default.",
        shell_complete=complete_namespaces,
    )(function)


def dump_option(function: F) -> F:
    """Add ``--from``."""
    return click.option(
        "--from",
        "dump",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        metavar="FILE",
        help="Objects from a file instead of a server: `moorage snapshot save`, or "
        "`kubectl get ... -A -o json`. - reads standard input.",
    )(function)


def seed_option(function: F) -> F:
    """Add ``--seed``."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=None,
        metavar="NUMBER",
        help="Seed of all random choices, to repeat a run. Default: a new one, which is printed.",
    )(function)


def repeated_seed_option(function: F) -> F:
    """Add ``--seed`` to a benchmark: runs are compared with each other, so they repeat."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=1,
        show_default=True,
        metavar="NUMBER",
        help="Seed of all random choices.",
    )(function)


def verbose_option(function: F) -> F:
    """Add ``-v``."""
    return click.option(
        "-v", "--verbose", count=True, help="Say more on standard error; twice for everything."
    )(function)


def config_option(meaning: str) -> Callable[[F], F]:
    """Add ``--config``.

    Parameters
    ----------
    meaning
        The help: what the command does with the configuration.

    Returns
    -------
    Callable
        The decorator. The command gets the path as ``config``; None where no file is named.
    """
    return click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        metavar="FILE",
        help=meaning,
    )


def emulation_options(function: F) -> F:
    """Add ``--emulated-version`` and ``--min-compatibility-version``, as kube-scheduler has them.

    The command gets both as text, "" where they are not given, for `moorage.config.own.emulating`.
    """
    function = click.option(
        "--min-compatibility-version",
        "oldest",
        default="",
        metavar="VERSION",
        help=f"{OLDEST_TEXT}. Default: the emulated one.",
    )(function)
    return click.option(
        "--emulated-version",
        "version",
        default="",
        metavar="VERSION",
        help=f"{EMULATED_TEXT}. Default: emulatedVersion of the configuration, or "
        f"{DEFAULT_VERSION}.",
    )(function)


def gates_option(function: F) -> F:
    """Add ``--feature-gates`` as the text ``gates``, for `moorage.config.own.emulating`."""
    return click.option(
        "--feature-gates",
        "gates",
        default="",
        metavar="GATES",
        help="As of `moorage run`, e.g. GenericWorkload=true.",
    )(function)


def plugin_option(function: F) -> F:
    """Add ``--plugin``."""
    return click.option(
        "--plugin",
        "plugins",
        multiple=True,
        metavar="WHERE:NAME",
        help="A plugin of yours: path/to/file.py:name or module:name; may be given several times. "
        "Enabled in every profile, unless the configuration names it: then that decides.",
    )(function)


def groups_option(function: F) -> F:
    """Add ``--groups``, for `moorage.config.own.with_groups`."""
    return click.option(
        "--groups",
        is_flag=True,
        help="Schedule pod groups of every form: the plugin Coscheduling in every profile, and the "
        "gates GenericWorkload and GangScheduling.",
    )(function)


def log_formatter(name: str, *, klog: bool = False) -> logging.Formatter:
    """Return the formatter of log lines: ``text`` or ``json``.

    Parameters
    ----------
    name
        ``text`` or ``json``.
    klog
        Whether lines of text have klog's header, for programs; people at a terminal need no time.

    Raises
    ------
    UsageError
        There is no such format.
    """
    if name == "json":
        from moorage.cli.json_log import JsonFormatter

        return JsonFormatter()
    if name != "text":
        raise UsageError(f"--logging-format {name}: write text or json")
    if klog:
        from moorage.cli.klog_text import KlogFormatter

        return KlogFormatter()
    return logging.Formatter("%(levelname)s %(name)s: %(message)s")


def start_logging(verbose: int, *, log_format: str = "text") -> None:
    """Log to standard error: warnings, with one ``-v`` also information, with two all messages.

    Raises
    ------
    UsageError
        There is no such format.
    """
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    log_from(level, log_format=log_format)


def log_from(level: int, *, log_format: str = "text", klog: bool = False) -> None:
    """Log to standard error, from a level of Python's logging on; see `log_formatter`.

    Raises
    ------
    UsageError
        There is no such format.
    """
    # The levels of klog lie around INFO; a line says one of Python's names.
    for each in range(logging.DEBUG + 1, V0 + 1):
        logging.addLevelName(each, "INFO")
    logging.addLevelName(logging.INFO, "INFO")  # last: the level that the name stands for
    handler = logging.StreamHandler()
    handler.setFormatter(log_formatter(log_format, klog=klog))
    if level > logging.DEBUG:  # with everything, every traceback
        from moorage.cli.failure_log import RepeatedFailures

        handler.addFilter(RepeatedFailures())
    logging.basicConfig(level=level, handlers=[handler])
    # asyncio and the HTTP library write many log lines that do not help here.
    for noisy in ("asyncio", "aiohttp", "urllib3"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))


def shape_option(function: F) -> F:
    """Add ``--shape``."""
    return click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="SHAPE",
        help="What nodes are like instead, e.g. cpu=96,memory=1Ti,gpu=8,"
        "label:pool=train,taint=gpu=yes:NoSchedule, or an instance type such as p4d.24xlarge "
        "(`moorage nodes shapes` lists them). Several shapes share the nodes evenly, or say "
        "count=N.",
        shell_complete=complete_shapes,
    )(function)
