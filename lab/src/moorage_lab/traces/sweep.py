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
from moorage_lab.traces.inputs import Inputs
from moorage_lab.traces.memory import forget_clusters
from moorage_lab.traces.on_dask import on_dask
from moorage_lab.traces.result_folder import ResultFolder
from moorage_lab.traces.run import RunResult, pods_of, run
from moorage_lab.traces.variants import Variant

OnShare = Callable[[int, float], None]
"""Gets the number of runs that are finished, and the share of the current run that is done."""

_there: list[Inputs] = []  # the inputs of a process that only does runs


class Sweep:
    """The runs of every configuration under every seed.

    Parameters
    ----------
    inputs, variants, seeds
        What is run.
    folder
        Finished runs; None to keep none.
    """

    def __init__(
        self,
        inputs: Inputs,
        variants: Sequence[Variant],
        seeds: Sequence[int],
        *,
        folder: ResultFolder | None = None,
    ) -> None:
        self._inputs = inputs
        self._planned = [(variant, seed) for variant in variants for seed in seeds]
        self._folder = folder
        self._finished: dict[int, RunResult] = {}
        for number, (variant, seed) in enumerate(self._planned):
            known = None if folder is None else folder.find(variant, seed)
            if known is not None:
                self._finished[number] = known
        self.known = len(self._finished)
        """Number of runs finished before."""

    def __len__(self) -> int:
        return len(self._planned)

    def results(
        self,
        *,
        jobs: int | None = None,
        dask: str = "",
        on_share: OnShare = lambda done, share: None,
    ) -> list[RunResult]:
        """Do the runs that are unfinished, and return all of them in order.

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
        unfinished = [
            number for number in range(len(self._planned)) if number not in self._finished
        ]
        if dask and unfinished:
            done = self._on_dask(unfinished, dask, jobs)
        elif jobs is not None and jobs > 1 and len(unfinished) > 1:
            done = self._beside(unfinished, jobs)
        else:
            done = self._here(unfinished, on_share)
        on_share(len(self._finished), 0.0)
        for number, result in done:
            self._finished[number] = result
            if self._folder is not None:
                self._folder.store(self._planned[number][0], result)
            on_share(len(self._finished), 0.0)
        return [self._finished[number] for number in range(len(self._planned))]

    def _here(
        self, unfinished: Sequence[int], on_share: OnShare
    ) -> Iterator[tuple[int, RunResult]]:
        for number in unfinished:
            variant, seed = self._planned[number]
            result = run(
                self._inputs,
                variant,
                seed,
                progress=lambda share: on_share(len(self._finished), share),
            )
            yield number, result
            forget_clusters(pods_of(result))

    def _on_dask(
        self, unfinished: Sequence[int], where: str, jobs: int | None
    ) -> Iterator[tuple[int, RunResult]]:
        planned = [self._planned[number] for number in unfinished]
        for at, result in on_dask(planned, self._inputs, where=where, jobs=jobs):
            yield unfinished[at], result

    def _beside(self, unfinished: Sequence[int], jobs: int) -> Iterator[tuple[int, RunResult]]:
        with _processes(min(jobs, len(unfinished)), self._inputs) as pool:
            waiting: dict[Future[bytes], int] = {
                pool.submit(_run_there, *self._planned[number]): number for number in unfinished
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
