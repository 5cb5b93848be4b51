"""The entry point: the group of all commands, and how failures become exit codes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from moorage import __version__
from moorage.base.entry_points import entry_points, is_own_module, load
from moorage.base.errors import MoorageError, UsageError
from moorage.cli.command_group import CommandGroup
from moorage.cli.render import error_text, show_error

# The commands of this package. Only the requested one is imported: `up` and `run` start others.
_OWN: Mapping[str, str] = {
    "capacity": "moorage.cli.capacity.command:capacity",
    "completion": "moorage.cli.completion:completion",
    "config": "moorage.cli.config:config",
    "dashboard": "moorage.cli.page.command:dashboard",
    "explain": "moorage.cli.explain.command:explain",
    "group-controller": "moorage.cli.group_controller.command:group_controller",
    "mcp": "moorage.cli.mcp.command:mcp",
    "migrate": "moorage.cli.migrate.command:migrate",
    "queue": "moorage.cli.queue.command:queue",
    "reason": "moorage.cli.reason.command:reason",
    "report": "moorage.cli.report.command:report",
    "run": "moorage.cli.run.command:run",
    "shadow": "moorage.cli.shadow.command:shadow",
    "version": "moorage.cli.version:version",
    "what-if": "moorage.cli.what_if.command:what_if",
}
# The other commands are entry points of this group, so that this package names no other one.
_GROUP = "moorage.commands"
# Only for the message where a package is not installed.
_BROUGHT_BY: Mapping[str, str] = {
    **dict.fromkeys(("apply", "delete", "describe", "down", "example-extender"), "moorage-sandbox"),
    **dict.fromkeys(("get", "nodes", "plot", "plugin", "scale", "snapshot"), "moorage-sandbox"),
    **dict.fromkeys(("cordon", "drain", "events", "logs", "uncordon"), "moorage-sandbox"),
    **dict.fromkeys(("status", "time", "top", "up", "wait"), "moorage-sandbox"),
    **dict.fromkeys(("bench", "conformance", "fault-sim", "simulate"), "moorage-lab"),
}

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

_EPILOG = """
\b
First steps:
  moorage up                         a cluster on this machine, with 30 pods (-d: in the background)
  export KUBECONFIG=.moorage/kubeconfig
  moorage get pods -o wide           what runs where (kubectl works as well)
  moorage explain pod giant          why a pod waits, and what would help

\b
Exit codes:
  0    done; for up, run, nodes and --watch also: ended by Ctrl-C or SIGTERM; for up also: nobody
       reads the pipe that it prints to any more
  1    it failed, or the answer is no: the server refused, a part broke, decisions differ
  2    bad input: a flag, a file, a kubeconfig, a port that is taken
  130  interrupted before it was done, or ended by a second signal
"""


class Commands(CommandGroup):
    """A group that reports failures in one line and ends with the documented exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands of the installed packages."""
        del ctx
        return sorted([*_OWN, *entry_points(_GROUP)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if no command has this name.

        Raises
        ------
        UsageError
            The command is one of a package that is not installed.
        """
        target = _OWN.get(cmd_name) or entry_points(_GROUP).get(cmd_name)
        if target is None:
            if not ctx.resilient_parsing:  # a shell asks for completions
                _check_installed(cmd_name)
            return None
        command = load(target)
        assert isinstance(command, click.Command), "the tables name commands"
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; operating failures become a message and an exit code."""
        try:
            return super().invoke(ctx)
        except MoorageError as error:
            show_error(error_text(error))
            ctx.exit(EXIT_BAD_INPUT if isinstance(error, UsageError) else EXIT_FAILED)
        except click.ClickException as error:
            raise _report_usage(error) from error
        except ModuleNotFoundError as error:
            if error.name is None or is_own_module(error.name):
                raise
            told = f"{error.msg}: the installation lacks a dependency, `pip check` says which"
            show_error(told)
            ctx.exit(EXIT_FAILED)
        except KeyboardInterrupt:
            show_error("interrupted")
            ctx.exit(EXIT_INTERRUPTED)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the words before the command."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            raise _report_usage(error) from error


def _check_installed(command: str) -> None:
    """Refuse a command that an absent package would bring."""
    package = _BROUGHT_BY.get(command)
    if package is not None:
        folder = package.removeprefix("moorage-")
        raise UsageError(
            f"{command} comes with {package}, which is not installed: pip install {package}, "
            f"or in a checkout pip install ./{folder}"
        )


def _report_usage(error: click.ClickException) -> Exception:
    """Tell in one line what was typed wrong; return what ends the process with its code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error  # its message is the help
    show_error(_one_line(error))
    return click.exceptions.Exit(error.exit_code)


def _one_line(error: click.ClickException) -> str:
    """Return click's message in one line, with the command whose help says what is right."""
    text_of_error = " ".join(error.format_message().split()).removesuffix(".")
    text_of_error = text_of_error[:1].lower() + text_of_error[1:]
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return text_of_error
    see = f"see {context.command_path} --help"
    return (
        f"{text_of_error} S{see[1:]}" if text_of_error.endswith("?") else f"{text_of_error}; {see}"
    )


@click.group(cls=Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s", prog_name="moorage")
def main() -> None:
    """Schedule Kubernetes pods, and run a small cluster to try it in.

    `moorage up` starts a whole cluster on this machine. `moorage run` schedules the pods of any
    API server. The other commands look at a cluster and change it, much as kubectl does.
    """


if __name__ == "__main__":
    sys.exit(main())
