"""A series of worlds, one seed after another, and the report about it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import msgspec

from moorage.sim.company.coverage import Coverage, coverage_of
from moorage.sim.company.generator import draw_world
from moorage.sim.company.play import play
from moorage.sim.company.totals import Excess, excesses


class WorldReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A world that was played.

    Parameters
    ----------
    seed, features, setup
        The world.
    excesses
        Every total that is too large.
    """

    seed: int
    features: tuple[str, ...]
    setup: str
    excesses: list[Excess]


class SeriesReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a series.

    Parameters
    ----------
    worlds, exceptions
        Worlds that were played, and those of which a total is too large.
    by_rule
        Number of worlds that break each rule.
    worst
        The world that breaks each rule most.
    seeds
        Seeds of the worlds that break each rule.
    coverage
        Combinations of features.
    """

    worlds: int
    exceptions: int
    by_rule: dict[str, int]
    worst: dict[str, str]
    seeds: dict[str, list[int]]
    coverage: Coverage


def judged(seed: int) -> WorldReport:
    """Play the world of a seed and judge its totals."""
    world = draw_world(seed)
    found = excesses(play(world))
    return WorldReport(seed=seed, features=world.features, setup=world.setup, excesses=found)


def series(seeds: range, *, jobs: int) -> Iterator[WorldReport]:
    """Play worlds in so many processes, and yield each when it and those before have ended."""
    if jobs == 1:
        yield from map(judged, seeds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin) as pool:
        yield from pool.map(judged, seeds)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the series


def report_of(worlds: list[WorldReport]) -> SeriesReport:
    """Sum a series up."""
    seeds: dict[str, list[int]] = {}
    worst: dict[str, tuple[float, str]] = {}
    for world in worlds:
        for excess in world.excesses:
            if world.seed not in seeds.setdefault(excess.rule, []):
                seeds[excess.rule].append(world.seed)
            over = excess.amount - excess.allowed
            if over > worst.get(excess.rule, (0.0, ""))[0]:
                worst[excess.rule] = over, f"seed {world.seed}: {excess.text}"
    return SeriesReport(
        worlds=len(worlds),
        exceptions=sum(bool(world.excesses) for world in worlds),
        by_rule={rule: len(seeds[rule]) for rule in sorted(seeds)},
        worst={rule: worst[rule][1] for rule in sorted(worst)},
        seeds={rule: seeds[rule] for rule in sorted(seeds)},
        coverage=coverage_of(world.features for world in worlds),
    )
