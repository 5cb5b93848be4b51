"""All runs of an experiment: in one process or several, kept, and gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.tests.traces.scenes import nodes, pods
from moorage.base.clock import ManualClock
from moorage_lab.traces import sweep as sweeping
from moorage_lab.traces.in_python import simulate
from moorage_lab.traces.progress import ProgressLine
from moorage_lab.traces.sweep import OnShare, Sweep

_SCENARIO = {
    "nodes": [nodes(3)],
    "pods": [pods("1", count=9, arrivals={"kind": "poisson", "every": "5s"})],
    "configurations": [{"name": "a"}, {"name": "b", "weights": {"ImageLocality": 3}}],
    "seeds": 2,
}


class Counting:
    """Counts the runs that are done, and stops after a number of them."""

    def __init__(self, most: int = 99) -> None:
        self.known = -1
        self.done: list[int] = []
        self._most = most

    def __call__(self, sweep: Sweep) -> OnShare:
        self.known = sweep.known
        return self._tell

    def _tell(self, done: int, share: float) -> None:
        if not share and done not in self.done:
            self.done.append(done)
        if done >= self._most:
            raise KeyboardInterrupt


def test_an_interrupted_experiment_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [each.digest for each in simulate(_SCENARIO).of_runs]
    with pytest.raises(KeyboardInterrupt):
        simulate(_SCENARIO, out=tmp_path, on_sweep=Counting(most=2))
    again = Counting()
    assert [
        each.digest for each in simulate(_SCENARIO, out=tmp_path, on_sweep=again).of_runs
    ] == whole
    assert (again.known, again.done) == (2, [2, 3, 4])

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a finished run is done again")

    monkeypatch.setattr(sweeping, "run", never)
    assert [each.digest for each in simulate(_SCENARIO, out=tmp_path).of_runs] == whole


def test_a_change_of_inputs_or_configuration_makes_other_runs(tmp_path: Path) -> None:
    simulate(_SCENARIO, out=tmp_path)
    for change in (
        {"nodes": [nodes(4)]},
        {"pods": [pods("2", count=9)]},
        {"seeds": [7, 8]},
        {"configurations": [{"name": "a", "weights": {"ImageLocality": 2}}]},
    ):
        counting = Counting()
        simulate({**_SCENARIO, **change}, out=tmp_path, on_sweep=counting)
        assert counting.known == 0, change


def test_a_change_of_a_plugins_text_makes_other_runs(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    text = "from moorage import plugin\n\n@plugin.score\ndef own(pod, node):\n    return {}\n"
    scenario = {
        **_SCENARIO,
        "configurations": [{"name": "own", "plugins": [f"{file}:own"]}],
    }
    known = []
    for value in (1, 1, 2):
        file.write_text(text.format(value))
        counting = Counting()
        simulate(scenario, out=tmp_path / "out", on_sweep=counting)
        known.append(counting.known)
    assert known == [0, 2, 0]


def test_a_damaged_file_of_a_run_is_done_again(tmp_path: Path) -> None:
    whole = simulate(_SCENARIO, out=tmp_path)
    for file in (tmp_path / "runs").iterdir():
        file.write_bytes(file.read_bytes()[:-9])
    counting = Counting()
    again = simulate(_SCENARIO, out=tmp_path, on_sweep=counting)
    assert counting.known == 0
    assert [each.digest for each in again.of_runs] == [each.digest for each in whole.of_runs]


@pytest.mark.slow
def test_processes_change_no_result() -> None:
    here, beside = simulate(_SCENARIO), simulate(_SCENARIO, jobs=2)
    assert [each.digest for each in beside.of_runs] == [each.digest for each in here.of_runs]
    assert [each.totals for each in beside.of_runs] == [each.totals for each in here.of_runs]
    assert list(beside.pods.rows) == list(here.pods.rows)
    assert list(beside.series.rows) == list(here.series.rows)


def test_progress_tells_what_is_done_and_how_long_it_takes() -> None:
    clock, lines = ManualClock(), list[str]()
    progress = ProgressLine(4, 1, clock=clock, write=lines.append, often=True)
    progress.show_share(1, 0.0)
    clock.advance(10)
    progress.show_share(1, 0.5)
    clock.advance(0.1)
    progress.show_share(1, 0.6)
    clock.advance(9.9)
    progress.show_share(2, 0.0)
    clock.advance(14400)
    progress.show_share(3, 0.0)
    progress.show_share(4, 0.0)
    assert lines == [
        "1 of 4 runs",
        "1 of 4 runs, 50 s left",
        "2 of 4 runs, 40 s left",
        "3 of 4 runs, 2.0 h left",
        "4 of 4 runs",
    ]
