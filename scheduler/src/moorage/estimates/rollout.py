"""Roll-outs: how a queue may go on from now, once for each set of drawn run times.

The rule of the queue is kube-scheduler's: whenever room comes free, waiting pods are tried by rank,
and each that fits starts. A large pod does not keep smaller ones back. Members of a group start
together or not at all. Backoff, scores and preemption are left out: where several nodes have room,
the first one is taken.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from moorage.base.rng import Random
from moorage.estimates.queue_model import Amounts, QueueModel, RunningPod, WaitingUnit

_TURNS_LEAST: Final = 500
_TURNS_A_POD: Final = 4
"""Moments of one roll-out, for each pod that runs or waits at the start: a guess. A unit that has
not started by then is one that others keep passing."""
_LOOK_TURNS: Final = 64
"""Moments between two looks at the clock."""
HORIZON_SECONDS: Final = 90 * 86_400.0
"""No roll-out looks further ahead."""


class CutShortError(Exception):
    """The time for roll-outs is over."""


class DrawnStart(msgspec.Struct, frozen=True):
    """The start of the unit in question in one roll-out.

    Parameters
    ----------
    seconds
        From now; infinite where it does not start.
    first_end
        Name of the pod whose end was the first on its nodes since another unit started there; ""
        where nothing had to end, or a pod that has not come yet.
    """

    seconds: float
    first_end: str = ""


class Preparation:
    """The tables that all roll-outs of a model share.

    Parameters
    ----------
    model
        The start.
    """

    def __init__(self, model: QueueModel) -> None:
        self.model = model
        self._within: dict[Amounts, tuple[int, ...]] = {}
        self._same: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.open_nodes = [_open_nodes(model, index) for index in range(len(model.shapes))]
        self.ending: list[tuple[RunningPod, float]] = []
        for pod in model.running:
            if pod.law is not None:
                self.ending.append((pod, pod.law.share_until(pod.elapsed)))
        self.kinds: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}
        for number, unit in enumerate(model.queue):
            self.kinds.setdefault((unit.rank, unit.shapes), []).append((unit.rank, number))

    def shapes_within(self, free: Amounts) -> tuple[int, ...]:
        """Return the indexes of the shapes that fit into free amounts, without regard to nodes."""
        shapes = self._within.get(free)
        if shapes is None:
            every = enumerate(self.model.shapes)
            shapes = tuple(index for index, each in every if _fits(each.requests, free))
            # Equal answers are one object, which a roll-out compares by identity.
            self._within[free] = shapes = self._same.setdefault(shapes, shapes)
        return shapes


def _open_nodes(model: QueueModel, shape: int) -> set[int]:
    wanted = model.shapes[shape]
    nodes = range(len(model.free)) if wanted.nodes is None else sorted(wanted.nodes)
    return {node for node in nodes if _fits(wanted.requests, model.free[node])}


def _fits(requests: Sequence[int], free: Sequence[int]) -> bool:
    return all(not amount or amount <= left for amount, left in zip(requests, free, strict=True))


def _with(free: Amounts, requests: Amounts) -> Amounts:
    return tuple(left + amount for left, amount in zip(free, requests, strict=True))


def _without(free: Amounts, requests: Amounts) -> Amounts:
    return tuple(left - amount for left, amount in zip(free, requests, strict=True))


def draw_start(
    preparation: Preparation,
    rng: Random,
    *,
    is_over: Callable[[], bool] = lambda: False,
) -> DrawnStart:
    """Return when the unit in question starts in one roll-out.

    Raises
    ------
    CutShortError
        The time is over.
    """
    return _RollOut(preparation, rng).play(is_over)


class _RollOut:
    """One roll-out in progress."""

    def __init__(self, preparation: Preparation, rng: Random) -> None:
        model = preparation.model
        self._preparation = preparation
        self._model = model
        self._rng = rng
        self._free = list(model.free)
        self._open = [set(nodes) for nodes in preparation.open_nodes]
        self._waiting = {kind: deque(units) for kind, units in preparation.kinds.items()}
        self._units: dict[int, WaitingUnit] = dict(enumerate(model.queue))
        draw = rng.random
        self._ends: list[tuple[float, int, RunningPod]] = []
        for number, (pod, share) in enumerate(preparation.ending):
            assert pod.law is not None, "pods without a law end in no roll-out"
            total = pod.law.run_seconds(draw(), elapsed=pod.elapsed, share=share)
            self._ends.append((total - pod.elapsed, number, pod))
        heapq.heapify(self._ends)
        self._number = len(self._ends)
        self._arrivals = self._draw_arrivals()
        self._first_ends: dict[int, str] = {}
        self._start: DrawnStart | None = None

    def play(self, is_over: Callable[[], bool]) -> DrawnStart:
        """Return the start of the target."""
        self._try_waiting(0.0)
        arrival = next(self._arrivals, None)
        known = len(self._model.running) + len(self._model.queue)
        for turn in range(_TURNS_LEAST + _TURNS_A_POD * known):
            if self._start is not None:
                return self._start
            if turn % _LOOK_TURNS == 0 and is_over():
                raise CutShortError
            if not self._ends:
                break  # pods that come only take room
            end = self._ends[0][0]
            if arrival is not None and arrival[0] < end:
                now, unit = arrival
                self._arrive(unit, now)
                arrival = next(self._arrivals, None)
                continue
            if end > HORIZON_SECONDS:
                break
            self._end_all(end)
        return DrawnStart(math.inf)

    def _draw_arrivals(self) -> Iterator[tuple[float, WaitingUnit]]:
        known, rate, now = self._model.arrivals, self._model.arrivals_a_second, 0.0
        while known and rate > 0 and now < HORIZON_SECONDS:
            now += self._rng.expovariate(rate)
            yield now, known[int(self._rng.random() * len(known))]

    def _end_all(self, now: float) -> None:
        """Let all pods end that end at a moment, and try those that wait."""
        while self._ends and self._ends[0][0] == now:
            _, _, pod = heapq.heappop(self._ends)
            self._first_ends.setdefault(pod.node, pod.name)
            self._set_free(pod.node, _with(self._free[pod.node], pod.requests))
        self._try_waiting(now)

    def _set_free(self, node: int, free: Amounts) -> None:
        fits = self._preparation.shapes_within
        before, after = fits(self._free[node]), fits(free)
        self._free[node] = free
        if before is after:
            return
        for index in before:
            self._open[index].discard(node)
        for index in after:
            allowed = self._model.shapes[index].nodes
            if allowed is None or node in allowed:
                self._open[index].add(node)

    def _try_waiting(self, now: float) -> None:
        """Start by rank what fits."""
        lacking = set[tuple[int, tuple[int, ...]]]()
        while self._start is None:
            ready = [
                (units[0], kind)
                for kind, units in self._waiting.items()
                if kind not in lacking and all(self._open[shape] for shape in kind[1])
            ]
            if not ready:
                return
            (_, number), kind = min(ready)
            nodes = self._places(kind[1])
            if nodes is None:
                lacking.add(kind)  # room only shrinks from here on
                continue
            self._waiting[kind].popleft()
            if not self._waiting[kind]:
                del self._waiting[kind]
            self._begin(number, nodes, now)

    def _places(self, shapes: tuple[int, ...]) -> list[int] | None:
        """Return a node for each member, None where not all have one."""
        if len(shapes) == 1:
            return [min(self._open[shapes[0]])]
        left: dict[int, Amounts] = {}
        places = []
        for index in shapes:
            requests = self._model.shapes[index].requests
            for node in sorted(self._open[index]):
                free = left.get(node, self._free[node])
                if _fits(requests, free):
                    left[node] = _without(free, requests)
                    places.append(node)
                    break
            else:
                return None
        return places

    def _begin(self, number: int, nodes: Sequence[int], now: float) -> None:
        unit = self._units.pop(number)
        if number == self._model.target:
            first = next((self._first_ends[node] for node in nodes if node in self._first_ends), "")
            self._start = DrawnStart(now, first)
            return
        for shape, law, node in zip(unit.shapes, unit.laws, nodes, strict=True):
            requests = self._model.shapes[shape].requests
            self._first_ends.pop(node, None)
            self._set_free(node, _without(self._free[node], requests))
            if law is not None:
                ends = now + law.run_seconds(self._rng.random())
                self._number += 1
                pod = RunningPod(node, requests, law, name=unit.name)
                heapq.heappush(self._ends, (ends, self._number, pod))

    def _arrive(self, unit: WaitingUnit, now: float) -> None:
        self._number += 1
        number = len(self._model.queue) + self._number
        self._units[number] = unit
        kind = (unit.rank, unit.shapes)
        self._waiting.setdefault(kind, deque()).append((unit.rank, number))
        if all(self._open[shape] for shape in unit.shapes):
            self._try_waiting(now)
