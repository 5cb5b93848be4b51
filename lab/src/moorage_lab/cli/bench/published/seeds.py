"""The option ``--seeds`` of benchmarks that are repeated: ``42,45-51``."""

from __future__ import annotations

import click

_SEEDS_MAX = 10_000


def seed_list(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """Return the seeds that a text names, each once.

    Raises
    ------
    click.BadParameter
        It names none, or is no list of seeds.
    """
    del context, parameter
    seeds: list[int] = []
    for part in value.split(","):
        first, dash, last = part.partition("-")
        numbers = [first, last] if dash else [first]
        if not all(each.isascii() and each.isdigit() and len(each) <= 18 for each in numbers):
            raise click.BadParameter(f"{value!r} is no list of seeds such as 42,45-51")
        if int(last or first) - int(first) >= _SEEDS_MAX:
            raise click.BadParameter(f"{part!r} names more than {_SEEDS_MAX:,} seeds")
        seeds += range(int(first), int(last or first) + 1)
    if not seeds:
        raise click.BadParameter(f"{value!r} names no seed")
    return list(dict.fromkeys(seeds))
