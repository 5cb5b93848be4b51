"""A series of worlds, one seed after another, and the report about it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec

from moorage_lab.fault_sim.company.coverage import Coverage, coverage_of
from moorage_lab.fault_sim.company.features import FEATURES, WIDE_FEATURES
from moorage_lab.fault_sim.company.generator import draw_world
from moorage_lab.fault_sim.company.play import play
from moorage_lab.fault_sim.company.totals import Total, totals


class WorldReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A world that was played.

    Parameters
    ----------
    seed, features, setup
        The world.
    totals
        The totals that were judged.
    """

    seed: int
    features: tuple[str, ...]
    setup: str
    totals: list[Total]

    @property
    def excesses(self) -> list[Total]:
        """Every total that is too large."""
        return [total for total in self.totals if total.excess > 0]


class SeriesReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a series.

    Parameters
    ----------
    first_seed
        Seed of the first world; the others count up.
    worlds, exceptions
        Worlds that were played, and those of which a total is too large.
    by_rule
        Number of worlds that break each rule.
    worst
        The world that breaks each rule most, or comes closest to it.
    seeds
        Seeds of the worlds that break each rule.
    coverage
        Combinations of features.
    """

    first_seed: int
    worlds: int
    exceptions: int
    by_rule: dict[str, int]
    worst: dict[str, str]
    seeds: dict[str, list[int]]
    coverage: Coverage


def judged(seed: int, *, wide: bool = False) -> WorldReport:
    """Play the world of a seed and judge its totals."""
    world = draw_world(seed, wide=wide)
    judged_totals = totals(play(world))
    return WorldReport(seed=seed, features=world.features, setup=world.setup, totals=judged_totals)


def series(seeds: range, *, jobs: int, wide: bool = False) -> Iterator[WorldReport]:
    """Play worlds in so many processes, and yield each when it and those before have ended."""
    judge = partial(judged, wide=wide)
    if jobs == 1:
        yield from map(judge, seeds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin) as pool:
        yield from pool.map(judge, seeds)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the series


def _rank(total: Total) -> tuple[float, float]:
    return total.excess, total.amount


def report_of(worlds: list[WorldReport], *, wide: bool = False) -> SeriesReport:
    """Sum a series up."""
    seeds: dict[str, list[int]] = {}
    worst: dict[str, tuple[tuple[float, float], str]] = {}
    for world in worlds:
        for total in world.totals:
            if total.excess > 0 and world.seed not in seeds.setdefault(total.rule, []):
                seeds[total.rule].append(world.seed)
            if total.rule not in worst or _rank(total) > worst[total.rule][0]:
                worst[total.rule] = _rank(total), f"seed {world.seed}: {total.text}"
    return SeriesReport(
        first_seed=worlds[0].seed,
        worlds=len(worlds),
        exceptions=sum(bool(world.excesses) for world in worlds),
        by_rule={rule: len(seeds[rule]) for rule in sorted(seeds)},
        worst={rule: worst[rule][1] for rule in sorted(worst)},
        seeds={rule: seeds[rule] for rule in sorted(seeds)},
        coverage=coverage_of(
            (world.features for world in worlds), WIDE_FEATURES if wide else FEATURES
        ),
    )
