"""Runs of an experiment on a Dask cluster: one of this computer, or one that is there already.

Place in the flow: `sweep` to here and back. The inputs are sent once. Each run is known by its
configuration and seed, so it does not matter which process does it, nor how often.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from moorage.base.errors import MoorageError, UsageError
from moorage.base.version import __version__
from moorage_lab.traces.inputs import Inputs
from moorage_lab.traces.memory import forget_clusters
from moorage_lab.traces.run import RunResult, pods_of, run
from moorage_lab.traces.variants import Variant

LOCAL: Final = "local"
_CONNECT_SECONDS: Final = 20  # a guess: a scheduler that is there answers in milliseconds
_LOST_MOST: Final = 3  # how often one run may be lost with its inputs before the experiment ends

PlannedRun = tuple[Variant, int]

_alone: Final = threading.Lock()  # a process of a cluster may have threads; runs have it in turn


class SharedInputs(msgspec.Struct, frozen=True):
    """The data that every process of the cluster gets, once.

    Parameters
    ----------
    inputs
        The inputs of the runs.
    files
        The text of plugin files, by their path here: other computers do not have them.
    """

    inputs: Inputs
    files: dict[str, bytes]


def dask() -> Any:
    """Return the library ``dask.distributed``.

    Raises
    ------
    UsageError
        It is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise UsageError("--dask needs dask.distributed: pip install 'moorage[sweep]'") from error
    return distributed


def on_dask(
    planned: Sequence[PlannedRun], inputs: Inputs, *, where: str, jobs: int | None
) -> Iterator[tuple[int, RunResult]]:
    """Yield the number of each run and its result, as soon as the run is done.

    Parameters
    ----------
    planned
        Configuration and seed of each run.
    inputs
        The inputs of all of them.
    where
        Address of a Dask scheduler, or `LOCAL`.
    jobs
        Processes of a cluster of this computer; None for one for each processor.

    Raises
    ------
    UsageError
        No scheduler answers there, or another version of moorage does.
    MoorageError
        A run fails, or ends the processes that try it.
    """
    with _client(where, jobs) as client:
        yield from _Runs(client, planned, _encode_shared(inputs, planned)).results()


@contextmanager
def _client(where: str, jobs: int | None) -> Iterator[Any]:
    library = dask()
    if where == LOCAL:
        with (
            library.LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            ) as cluster,
            library.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    try:
        client = library.Client(where, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {where}: {error}") from error
    with client:
        yield client


class _Runs:
    """Runs that are planned, and those that the cluster has been asked for."""

    def __init__(self, client: Any, planned: Sequence[PlannedRun], shared: bytes) -> None:
        self._client = client
        self._planned = planned
        self._shared = shared
        self._lost = [0] * len(planned)
        self._number_of: dict[Any, int] = {}

    def results(self) -> Iterator[tuple[int, RunResult]]:
        """Yield runs as they are done; those that were lost with their inputs are asked again."""
        unfinished = list(range(len(self._planned)))
        while unfinished:
            submitted = self._submit_runs(unfinished)
            unfinished = []
            for future in submitted:
                number = self._number_of.pop(future)
                if future.status in ("cancelled", "lost"):
                    self._note_lost(number)
                    unfinished.append(number)
                    continue
                yield number, self._result(future, number)
                future.release()

    def _submit_runs(self, numbers: Sequence[int]) -> Any:
        """Ask for runs, and return the iterator of those that are done."""
        try:
            shared = self._client.scatter(self._shared, broadcast=True, hash=False)
        except (OSError, CancelledError) as error:  # a TimeoutError is an OSError
            raise MoorageError(
                "the Dask cluster has no process that takes the inputs; start again: finished runs "
                "of an --out folder are not done twice"
            ) from error
        futures = []
        for number in numbers:
            variant, seed = self._planned[number]
            futures.append(self._client.submit(_run_there, shared, variant, seed, pure=False))
            self._number_of[futures[-1]] = number
        return dask().as_completed(futures, loop=self._client.loop)

    def _note_lost(self, number: int) -> None:
        self._lost[number] += 1
        if self._lost[number] > _LOST_MOST:
            raise MoorageError(f"{self._name(number)} was lost {_LOST_MOST + 1} times, with inputs")

    def _result(self, future: Any, number: int) -> RunResult:
        try:
            version, result = future.result()
        except MoorageError:
            raise
        except Exception as error:  # of the library, or of code of a plugin
            raise MoorageError(
                f"{self._name(number)} failed on the Dask cluster: {type(error).__name__}: {error}"
            ) from error
        if version != __version__:
            raise UsageError(
                f"the Dask cluster has moorage {version}, and this is {__version__}: "
                "results could differ; install the same version"
            )
        return msgspec.msgpack.decode(result, type=RunResult)

    def _name(self, number: int) -> str:
        variant, seed = self._planned[number]
        return f"configuration {variant.name}, seed {seed}"


def _encode_shared(inputs: Inputs, planned: Sequence[PlannedRun]) -> bytes:
    paths = {_path(each) for variant, _ in planned for each in variant.plugins}
    files = {path: Path(path).read_bytes() for path in sorted(paths) if path.endswith(".py")}
    return msgspec.msgpack.encode(SharedInputs(inputs, files))


def _run_there(shared: bytes, variant: Variant, seed: int) -> tuple[str, bytes]:
    """Do one run in a process of the cluster."""
    with _alone, TemporaryDirectory(prefix="moorage-plugins-") as folder:
        # In turn, too: two threads that decode a type for the first time at once crash the process.
        known = msgspec.msgpack.decode(shared, type=SharedInputs)
        plugins = [_there(each, known.files, Path(folder)) for each in variant.plugins]
        own = msgspec.structs.replace(variant, plugins=plugins)
        result = run(known.inputs, own, seed)
        forget_clusters(pods_of(result))
        return __version__, msgspec.msgpack.encode(result)


def _there(reference: str, files: dict[str, bytes], folder: Path) -> str:
    """Return a plugin's reference, to a copy of its file where it is in a file."""
    path, name = _path(reference), reference.rpartition(":")[2]
    if path not in files:
        return reference
    copy = folder / str(sorted(files).index(path)) / Path(path).name
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(files[path])
    return f"{copy}:{name}"


def _path(reference: str) -> str:
    return reference.rpartition(":")[0]
