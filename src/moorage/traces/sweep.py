"""Every run of an experiment, in this process, in several, or on a Dask cluster.

Place in the flow: `inputs` and `variants` to here; results in order to `results`. The inputs are
sent to each process once. Which process does a run, and in which order, changes no result.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import msgspec

from moorage.base.errors import MoorageError
from moorage.traces.inputs import Inputs
from moorage.traces.kept import Kept
from moorage.traces.memory import forget_clusters
from moorage.traces.on_dask import on_dask
from moorage.traces.run import RunResult, pods_of, run
from moorage.traces.variants import Variant

OnShare = Callable[[int, float], None]
"""Gets the number of runs that are finished, and the share of the current run that is done."""

_there: list[Inputs] = []  # the inputs of a process that only does runs


class Sweep:
    """The runs of every configuration under every seed.

    Parameters
    ----------
    inputs, variants, seeds
        What is run.
    kept
        Finished runs; None to keep none.
    """

    def __init__(
        self,
        inputs: Inputs,
        variants: Sequence[Variant],
        seeds: Sequence[int],
        *,
        kept: Kept | None = None,
    ) -> None:
        self._inputs = inputs
        self._wanted = [(variant, seed) for variant in variants for seed in seeds]
        self._kept = kept
        self._found: dict[int, RunResult] = {}
        for number, (variant, seed) in enumerate(self._wanted):
            known = None if kept is None else kept.find(variant, seed)
            if known is not None:
                self._found[number] = known
        self.known = len(self._found)
        """Number of runs finished before."""

    def __len__(self) -> int:
        return len(self._wanted)

    def results(
        self,
        *,
        jobs: int | None = None,
        dask: str = "",
        on_share: OnShare = lambda done, share: None,
    ) -> list[RunResult]:
        """Do the runs that are left, and return all of them in order.

        Parameters
        ----------
        jobs
            Processes; None for this one alone, or with Dask for one for each processor.
        dask
            "" for no Dask; ``local``, or the address of a scheduler of Dask.
        on_share
            Told how far it is.

        Raises
        ------
        MoorageError
            A run fails, or a process ends before its run is done.
        UsageError
            No scheduler of Dask answers at the address.
        """
        left = [number for number in range(len(self._wanted)) if number not in self._found]
        if dask and left:
            done = self._on_dask(left, dask, jobs)
        elif jobs is not None and jobs > 1 and len(left) > 1:
            done = self._beside(left, jobs)
        else:
            done = self._here(left, on_share)
        on_share(len(self._found), 0.0)
        for number, result in done:
            self._found[number] = result
            if self._kept is not None:
                self._kept.keep(self._wanted[number][0], result)
            on_share(len(self._found), 0.0)
        return [self._found[number] for number in range(len(self._wanted))]

    def _here(self, left: Sequence[int], on_share: OnShare) -> Iterator[tuple[int, RunResult]]:
        for number in left:
            variant, seed = self._wanted[number]
            result = run(
                self._inputs,
                variant,
                seed,
                progress=lambda share: on_share(len(self._found), share),
            )
            yield number, result
            forget_clusters(pods_of(result))

    def _on_dask(
        self, left: Sequence[int], where: str, jobs: int | None
    ) -> Iterator[tuple[int, RunResult]]:
        wanted = [self._wanted[number] for number in left]
        for at, result in on_dask(wanted, self._inputs, where=where, jobs=jobs):
            yield left[at], result

    def _beside(self, left: Sequence[int], jobs: int) -> Iterator[tuple[int, RunResult]]:
        with _processes(min(jobs, len(left)), self._inputs) as pool:
            waiting: dict[Future[bytes], int] = {
                pool.submit(_run_there, *self._wanted[number]): number for number in left
            }
            try:
                while waiting:
                    finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for each in sorted(finished, key=waiting.__getitem__):
                        result = msgspec.msgpack.decode(each.result(), type=RunResult)
                        yield waiting.pop(each), result
            except BrokenProcessPool as error:
                raise MoorageError(
                    "a process ended before its run was done; start again: finished runs of an "
                    "--out folder are not done twice"
                ) from error


@contextmanager
def _processes(count: int, inputs: Inputs) -> Iterator[ProcessPoolExecutor]:
    """Have processes for runs; they are ended with the context, however it ends."""
    fresh = multiprocessing.get_context("spawn")
    sent = msgspec.msgpack.encode(inputs)
    pool = ProcessPoolExecutor(count, mp_context=fresh, initializer=_begin, initargs=(sent,))
    before = set(multiprocessing.active_children())
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    else:
        pool.shutdown()


def _begin(sent: bytes) -> None:
    """Take in the inputs, once in each process; Ctrl-C is a matter of the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _there.append(msgspec.msgpack.decode(sent, type=Inputs))


def _run_there(variant: Variant, seed: int) -> bytes:
    result = run(_there[-1], variant, seed)
    forget_clusters(pods_of(result))
    return msgspec.msgpack.encode(result)
