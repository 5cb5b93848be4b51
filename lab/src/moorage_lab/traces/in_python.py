"""``moorage.simulate``: an experiment from a Python program, with the objects of the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from moorage_lab.traces.inputs import inputs_of
from moorage_lab.traces.result_folder import ResultFolder
from moorage_lab.traces.results import Results
from moorage_lab.traces.scenario import API_VERSION, KIND, Scenario, read_scenario, scenario_of
from moorage_lab.traces.sweep import OnShare, Sweep
from moorage_lab.traces.variants import variants_of

RUNS = "runs"
"""The folder of finished runs, in the folder of results."""


def simulate(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    *,
    jobs: int | None = None,
    dask: str = "",
    out: str | Path | None = None,
    on_sweep: Callable[[Sweep], OnShare] | None = None,
) -> Results:
    """Run every configuration of a scenario under every seed.

    Parameters
    ----------
    scenario
        A file, or what a file would say; ``apiVersion`` and ``kind`` may be left out. Files that a
        mapping names are looked for in the working directory.
    jobs
        Number of processes; results do not depend on it. None for this process alone, or with
        `dask` for one for each processor.
    dask
        ``local`` for a Dask cluster of this computer, or the address of a scheduler of Dask.
    out
        Folder where finished runs are kept: a run that was finished before is not done again.
    on_sweep
        Called before the first run; what it returns is told how far the runs are.

    Raises
    ------
    ConfigError
        The scenario, a configuration or the rows of a trace have faults; every fault is listed.
    UsageError
        A file cannot be read, a plugin cannot be loaded, or no scheduler of Dask answers.

    Examples
    --------
    >>> import moorage
    >>> found = moorage.simulate(
    ...     {
    ...         "nodes": [{"shape": "cpu=4,memory=16Gi", "count": 3}],
    ...         "pods": [{"template": {"spec": {"containers": []}}, "count": 6}],
    ...     }
    ... )
    >>> found.values("default", "placed")
    [6]
    """
    known = _scenario(scenario)
    reading = cache(partial(inputs_of, known))
    variants = variants_of(known, reading)
    inputs = reading()
    folder = None if out is None else ResultFolder(Path(out) / RUNS, inputs)
    sweep = Sweep(inputs, variants, known.seed_list, folder=folder)
    on_share = (lambda done, share: None) if on_sweep is None else on_sweep(sweep)
    runs = sweep.results(jobs=jobs, dask=dask, on_share=on_share)
    return Results(known.name, runs, left_out=inputs.left_out)


def _scenario(scenario: str | Path | Mapping[str, Any] | Scenario) -> Scenario:
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, Mapping):
        value = {"apiVersion": API_VERSION, "kind": KIND, **scenario}
        return scenario_of(value, folder=Path())
    return read_scenario(Path(scenario))
