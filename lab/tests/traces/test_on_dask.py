"""Runs on a Dask cluster: the same results, with a process lost half way, and with own plugins."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import psutil  # type: ignore[import-untyped]
import pytest

from lab.tests.traces.scenes import nodes, pods
from moorage.base.errors import MoorageError, UsageError
from moorage.base.version import __version__
from moorage_lab.traces import on_dask as on_dask_module
from moorage_lab.traces.in_python import simulate
from moorage_lab.traces.sweep import OnShare, Sweep
from moorage_lab.traces.variants import Variant

_SCENARIO = {
    "nodes": [nodes(3)],
    "pods": [pods("1", count=9, arrivals={"kind": "poisson", "every": "5s"})],
    "configurations": [{"name": "a"}, {"name": "b", "weights": {"ImageLocality": 3}}],
    "seeds": 4,
}


@pytest.fixture
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=2, processes=True, dashboard_address=None, silence_logs=60
    ) as made:
        yield made


class EndOne:
    """Ends one process of a cluster when half of the runs are done."""

    def __init__(self, pids: dict[str, int]) -> None:
        self.pids = pids
        self.ended: list[int] = []

    def __call__(self, sweep: Sweep) -> OnShare:
        def tell(done: int, share: float) -> None:
            if done >= len(sweep) // 2 and not self.ended:
                self.ended.append(sorted(self.pids.values())[0])
                process = psutil.Process(self.ended[0])
                process.send_signal(signal.SIGKILL)
                process.wait(60)

        return tell


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_process_that_is_ended_half_way_changes_no_result(cluster: Any) -> None:
    here = simulate(_SCENARIO)
    with cluster.get_client() as client:
        pids = client.run(os.getpid)
    ending = EndOne(pids)
    far = simulate(_SCENARIO, dask=cluster.scheduler_address, on_sweep=ending)
    assert len(ending.ended) == 1
    assert [each.digest for each in far.of_runs] == [each.digest for each in here.of_runs]
    assert [each.totals for each in far.of_runs] == [each.totals for each in here.of_runs]
    assert list(far.pods.rows) == list(here.pods.rows)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_cluster_of_this_machine_runs_plugins_of_files(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    file = tmp_path / "own.py"
    file.write_text(
        "from moorage import plugin\n\n"
        "@plugin.score\ndef own(pod, node):\n    return len(node.name)\n"
    )
    scenario = {
        **_SCENARIO,
        "configurations": [{"name": "own", "plugins": [f"{file}:own"]}],
    }
    here = simulate(scenario)
    far = simulate(scenario, dask="local", jobs=2)
    assert [each.digest for each in far.of_runs] == [each.digest for each in here.of_runs]


def test_threads_of_a_process_read_what_was_sent_in_turn(monkeypatch) -> None:
    """Threads that decode a type for the first time at once crash the process."""
    held: list[bool] = []

    def decode(sent: bytes, **_: Any) -> Any:
        held.append(on_dask_module._alone.locked())
        raise msgspec.DecodeError

    monkeypatch.setattr(
        on_dask_module, "msgspec", SimpleNamespace(msgpack=SimpleNamespace(decode=decode))
    )
    with pytest.raises(msgspec.DecodeError):
        on_dask_module._run_there(b"", Variant("a", "", []), 1)
    assert held == [True]


def test_a_plugin_file_is_copied_to_where_the_run_is(tmp_path: Path) -> None:
    files = {"/a/own.py": b"one", "/b/own.py": b"two"}
    found = [
        on_dask_module._there(each, files, tmp_path)
        for each in ("/a/own.py:x", "/b/own.py:y", "package.module:z")
    ]
    assert found == [f"{tmp_path}/0/own.py:x", f"{tmp_path}/1/own.py:y", "package.module:z"]
    assert [(tmp_path / each / "own.py").read_bytes() for each in "01"] == [b"one", b"two"]


def test_without_the_extra_the_command_that_cures_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"pip install 'moorage\[sweep\]'"):
        simulate(_SCENARIO, dask="local")


class Future:
    """A run as the library tells of it."""

    def __init__(self, status: str, answer: Any) -> None:
        self.status, self.answer = status, answer

    def result(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def release(self) -> None:
        return


class Client:
    """A cluster that answers from a list, and counts how often it gets the inputs."""

    loop = None

    def __init__(self, futures: list[Future]) -> None:
        self.futures = futures
        self.sent = 0

    def scatter(self, data: bytes, **_: Any) -> bytes:
        self.sent += 1
        return data

    def submit(self, *_: Any, **__: Any) -> Future:
        return self.futures.pop(0)


def runs(monkeypatch: pytest.MonkeyPatch, *futures: Future) -> tuple[Any, Client]:
    class Library:
        @staticmethod
        def as_completed(found: list[Future], loop: None) -> list[Future]:
            assert loop is None
            return found

    monkeypatch.setattr(on_dask_module, "dask", Library)
    client = Client(list(futures))
    variant = Variant("a", "", [])
    return on_dask_module._Runs(client, [(variant, 7)], b"inputs"), client


def done() -> Future:
    result = simulate({**_SCENARIO, "seeds": [7], "configurations": []}).of_runs[0]
    answer = msgspec.msgpack.encode(result)
    return Future("finished", (__version__, answer))


def test_a_run_that_was_lost_with_its_inputs_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = [Future("cancelled", None), Future("lost", None)]
    asked, client = runs(monkeypatch, *lost, done())
    assert [(number, result.seed) for number, result in asked.results()] == [(0, 7)]
    assert client.sent == 3


@pytest.mark.parametrize(
    ("futures", "expected"),
    [
        pytest.param(
            [Future("lost", None)] * 4,
            "configuration a, seed 7 was lost 4 times, with inputs",
            id="a run that is lost again and again",
        ),
        pytest.param(
            [Future("error", ValueError("no"))],
            "configuration a, seed 7 failed on the Dask cluster: ValueError: no",
            id="a run that fails",
        ),
        pytest.param(
            [Future("finished", ("0.0.1", b""))],
            "the Dask cluster has moorage 0.0.1, and this is "
            f"{__version__}: results could differ; install the same version",
            id="another version",
        ),
    ],
)
def test_what_ends_the_experiment(futures, expected, monkeypatch) -> None:
    asked, _ = runs(monkeypatch, *futures)
    with pytest.raises(MoorageError) as raised:
        list(asked.results())
    assert str(raised.value) == expected
