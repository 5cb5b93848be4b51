"""A group of commands: its help shows each summary whole, and its errors name the commands."""

from __future__ import annotations

import click

# Characters; click shortens a summary to what fits into one line otherwise.
_SUMMARY_MAX = 400


class CommandGroup(click.Group):
    """A group of commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word; the error about a wrong word names the right ones."""
        word = args[0]
        # A word that looks like an option is click's to refuse.
        if not (word.startswith("-") or ctx.resilient_parsing or self.get_command(ctx, word)):
            ctx.fail(f"No such command '{word}'. {self._advice(ctx, word)}")
        return super().resolve_command(ctx, args)

    def _advice(self, ctx: click.Context, word: str) -> str:
        """Return what to write instead of a wrong word."""
        commands = self.list_commands(ctx)
        from difflib import get_close_matches  # 13 ms, which only a mistyped command pays

        similar = get_close_matches(word.lower(), commands, n=1)
        if similar:
            return f"Did you mean {similar[0]}?"
        return f"Choose from: {', '.join(commands)}"

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
