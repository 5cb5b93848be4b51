"""What a command line takes is what its help shows: no hidden flag, no hidden command."""

from __future__ import annotations

from collections.abc import Iterator

import click

from moorage.cli.main import main
from moorage.cli.run.flags import FLAGS, Effect


def _hidden(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    if command.hidden:
        yield path
    yield from ((*path, each.opts[0]) for each in command.params if getattr(each, "hidden", False))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None, f"{name} is listed"
            yield from _hidden(member, *path, name)


def test_only_flags_of_kube_scheduler_that_have_no_effect_are_hidden() -> None:
    # They are accepted with a warning, or refused, and a page of the reference lists them.
    idle = [("run", f"--{flag.name}") for flag in FLAGS if flag.effect is not Effect.EFFECTIVE]
    assert list(_hidden(main)) == idle
