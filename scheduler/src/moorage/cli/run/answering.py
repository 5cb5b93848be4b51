"""Composes the process that answers what-if and capacity next to a scheduler."""

from __future__ import annotations

import os
from typing import Final

from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry

CODE: Final = "from moorage.cli.run.answering import main; main()"
"""Python code that runs the process."""


def main() -> None:
    """Answer questions on the pipes of standard input and output until they end."""
    from moorage.what_if.answering.process import serve

    frames, replies = os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb")
    # A plugin that prints must not write between the replies.
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - a descriptor, not a path
        os.dup2(nothing.fileno(), 1)
    serve(frames, replies, _known)


def _known(
    config: LoadedConfiguration, plugins: tuple[str, ...]
) -> tuple[LoadedConfiguration, Registry]:
    from moorage.plugins.from_outside import with_plugins

    found = with_plugins(config, plugins)
    return found.config, found.registry
