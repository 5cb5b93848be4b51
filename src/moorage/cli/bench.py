"""``moorage bench``: measure on this machine."""

from __future__ import annotations

import click


@click.group()
def bench() -> None:
    """Measure how fast moorage decides on this machine."""
