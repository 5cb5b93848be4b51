"""Traces of jobs drawn from the model of Lublin and Feitelson, so that a policy can be checked.

Rules: U. Lublin and D. Feitelson, "The workload on parallel supercomputers: modeling the
characteristics of rigid jobs", JPDC 63 (2003), with the parameters of their program of 1999. Sizes
are two-stage uniform in the logarithm, run times hyper-gamma in the logarithm with a share that
falls with the size, and arrivals gamma in the logarithm, stretched by a daily cycle of 48 half
hours. The published traces follow it with the largest size of the machine, and the middle of sizes
2.5 below it in the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from moorage.base.rng import Random, Streams
from moorage_lab.traces.jobs.swf import Job

Kinds = Literal["one", "two"]
"""Jobs of one kind, or interactive jobs and batch jobs, each with parameters of its own."""

_HALF_HOURS: Final = 48
_HALF_HOUR_SECONDS: Final = 1800
_DAY_STARTS_AT: Final = 11
"""Half hours from midnight to where the model's day begins."""
_RUN_LOG_MAX: Final = 12
_ARRIVAL_LOG_MAX: Final = 13
_MIDDLE_BELOW_LARGEST: Final = 2.5


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one kind of jobs, by the names of the paper.

    Parameters
    ----------
    serial, power_of_two
        Shares of jobs with one processor, and with a power of two.
    low, first_stage
        Logarithm (base 2) of the smallest parallel job, and share of the lower of the two stages.
    short, long
        Gamma (shape, scale) of the logarithm of short and of long run times.
    short_slope, short_share
        The share of short run times: slope times processors, plus share.
    gap
        Gamma (shape, scale) of the logarithm of the time between arrivals in rush hours.
    gap_factor
        Factor of that shape for all hours.
    day
        Gamma (shape, scale) of the arrivals by half hour.
    """

    serial: float
    power_of_two: float
    low: float
    first_stage: float
    short: tuple[float, float]
    long: tuple[float, float]
    short_slope: float
    short_share: float
    gap: tuple[float, float]
    gap_factor: float
    day: tuple[float, float]


ONE_KIND: Final = Parameters(
    serial=0.244,
    power_of_two=0.576,
    low=0.8,
    first_stage=0.86,
    short=(4.2, 0.94),
    long=(312, 0.03),
    short_slope=-0.0054,
    short_share=0.78,
    gap=(10.2303, 0.4871),
    gap_factor=1.0225,
    day=(8.1737, 3.9631),
)
INTERACTIVE: Final = Parameters(
    serial=0.1541,
    power_of_two=0.625,
    low=1,
    first_stage=0.705,
    short=(3.8351, 0.6605),
    long=(7.073, 0.6856),
    short_slope=-0.0118,
    short_share=0.9156,
    gap=(6.5510, 0.6621),
    gap_factor=0.9797,
    day=(8.9186, 3.6680),
)
BATCH: Final = Parameters(
    serial=0.2927,
    power_of_two=0.6686,
    low=1.2,
    first_stage=0.875,
    short=(6.57, 0.823),
    long=(639.1, 0.0156),
    short_slope=-0.003,
    short_share=0.6986,
    gap=(6.0415, 0.8531),
    gap_factor=1.0519,
    day=(6.1271, 5.2740),
)


def lublin_jobs(kinds: Kinds, seed: int, *, jobs: int, processors: int) -> list[Job]:
    """Return jobs drawn from the model; those that run for no second are left out.

    Parameters
    ----------
    kinds
        One kind of jobs, or two.
    seed
        The same seed gives the same jobs.
    jobs
        Number of jobs to draw.
    processors
        Processors of the machine: the largest job.
    """
    rng = Streams(seed).stream("lublin")
    parameters = (ONE_KIND,) if kinds == "one" else (INTERACTIVE, BATCH)
    streams = [_JobStream(each, rng, processors) for each in parameters]
    drawn = []
    for number in range(1, jobs + 1):
        first = min(streams, key=lambda stream: stream.next_at)
        submit = int(first.next_at)
        first.draw_arrival()
        size = first.draw_size()
        run = first.draw_run(size)
        if run:
            drawn.append(Job(number, submit, run, size, run))
    return drawn


class _JobStream:
    """The jobs of one kind, drawn one after another.

    Time passes in points: a half hour has as many as its share of the day's arrivals, so a gap
    drawn for rush hours takes longer at night.
    """

    def __init__(self, parameters: Parameters, rng: Random, processors: int) -> None:
        self._parameters = parameters
        self._rng = rng
        self._largest = math.log2(processors)
        self._points_of = daily_cycle(parameters.day)
        self._half_hour = 0
        self._points = 0.0
        self._into_half_hour = 0.0
        self.next_at = 0.0
        self.draw_arrival()

    def draw_arrival(self) -> None:
        """Draw when the next job comes."""
        shape, scale = self._parameters.gap
        gap = self._gamma((shape * self._parameters.gap_factor, scale), _ARRIVAL_LOG_MAX)
        self._points += math.exp(gap) / _HALF_HOUR_SECONDS
        seconds = 0.0
        while self._points > self._points_of[self._half_hour]:
            self._points -= self._points_of[self._half_hour]
            self._half_hour = (self._half_hour + 1) % _HALF_HOURS
            seconds += _HALF_HOUR_SECONDS
        into = self._points / self._points_of[self._half_hour]
        self.next_at += seconds + _HALF_HOUR_SECONDS * (into - self._into_half_hour)
        self._into_half_hour = into

    def draw_size(self) -> int:
        """Draw the processors of a job."""
        parameters = self._parameters
        kind = self._rng.random()
        if kind <= parameters.serial:
            return 1
        middle = max(parameters.low, self._largest - _MIDDLE_BELOW_LARGEST)
        in_first = self._rng.random() <= parameters.first_stage
        low, high = (parameters.low, middle) if in_first else (middle, self._largest)
        size_log = low + (high - low) * self._rng.random()
        if kind <= parameters.serial + parameters.power_of_two:
            size_log = int(size_log + 0.5)
        return min(int(2**size_log + 0.5), int(2**self._largest))

    def draw_run(self, size: int) -> int:
        """Draw the run time of a job of this size, in whole seconds."""
        parameters = self._parameters
        share = min(1.0, max(0.0, parameters.short_slope * size + parameters.short_share))
        while True:
            short = self._rng.random() <= share
            shape, scale = parameters.short if short else parameters.long
            run_log = self._rng.gammavariate(shape, scale)
            if run_log <= _RUN_LOG_MAX:
                return int(math.exp(run_log))

    def _gamma(self, law: tuple[float, float], most: float) -> float:
        while True:
            drawn = self._rng.gammavariate(*law)
            if drawn <= most:
                return drawn


def daily_cycle(day: tuple[float, float]) -> list[float]:
    """Return the arrivals by half hour from midnight, as multiples of their mean.

    Parameters
    ----------
    day
        Gamma (shape, scale) over half hours, from where the model's day begins.
    """
    points = [0.0] * _HALF_HOURS
    for at in range(_DAY_STARTS_AT, _DAY_STARTS_AT + _HALF_HOURS):
        share = gamma_below(at + 0.5, *day) - gamma_below(at - 0.5, *day)
        points[(at - 1) % _HALF_HOURS] = share
    mean = sum(points) / _HALF_HOURS
    return [each / mean for each in points]


def gamma_below(value: float, shape: float, scale: float) -> float:
    """Return the probability that a gamma variate is below a value, by its power series."""
    scaled = value / scale
    if scaled <= 0:
        return 0.0
    return sum(_series(scaled, shape)) * math.exp(
        -scaled + shape * math.log(scaled) - math.lgamma(shape)
    )


def _series(scaled: float, shape: float) -> Iterator[float]:
    term = total = 1 / shape
    yield term
    while term > total * 1e-14:
        shape += 1
        term *= scaled / shape
        total += term
        yield term
