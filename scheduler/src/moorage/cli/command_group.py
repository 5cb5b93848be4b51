"""A group of commands whose help shows the summary of each command whole."""

from __future__ import annotations

import click

# Characters; click shortens a summary to what fits into one line otherwise.
_SUMMARY_MAX = 400


class CommandGroup(click.Group):
    """A group of commands."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every command with its whole summary, in as many lines as it takes."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            assert command is not None, "a listed command is there"
            if not command.hidden:
                rows.append((name, command.get_short_help_str(limit=_SUMMARY_MAX)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
