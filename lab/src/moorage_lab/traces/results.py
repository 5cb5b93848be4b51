"""The results of a scenario: every run, tables over all of them, and comparisons."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from moorage.api.codec import encode
from moorage_lab.traces.run import RunResult
from moorage_lab.traces.statistics import difference, interval
from moorage_lab.traces.tables import Table

Form = Literal["csv", "json", "parquet"]
TABLES: Final = ("runs", "summary", "comparison", "pods", "series")


class Results:
    """The results of a scenario; the same object in Python and behind the command.

    Parameters
    ----------
    name
        Of the scenario.
    runs
        Every run: by configuration, then by seed.
    left_out
        A sentence for each bad row and object that was left out.
    """

    def __init__(
        self, name: str, runs: Sequence[RunResult], *, left_out: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.of_runs = tuple(runs)
        self.left_out = tuple(left_out)

    @property
    def configurations(self) -> list[str]:
        """The names of the configurations, in order."""
        return list(dict.fromkeys(each.configuration for each in self.of_runs))

    @property
    def metrics(self) -> list[str]:
        """The names of the figures of a run."""
        return list(dict.fromkeys(name for each in self.of_runs for name in each.totals))

    def values(self, configuration: str, metric: str) -> list[float]:
        """Return a figure of each run of a configuration, by seed."""
        return [
            each.totals.get(metric, 0.0)
            for each in self.of_runs
            if each.configuration == configuration
        ]

    @property
    def runs(self) -> Table:
        """A row a run: its digest and its figures."""
        columns: dict[str, list[Any]] = {
            "configuration": [each.configuration for each in self.of_runs],
            "seed": [each.seed for each in self.of_runs],
            "digest": [each.digest for each in self.of_runs],
            "tookSeconds": [each.took_seconds for each in self.of_runs],
        }
        for metric in self.metrics:
            columns[metric] = [float(each.totals.get(metric, 0.0)) for each in self.of_runs]
        return Table(columns)

    @property
    def summary(self) -> Table:
        """A row a configuration and figure: mean over seeds, with its 95 % interval."""
        rows = []
        for configuration in self.configurations:
            for metric in self.metrics:
                found = interval(self.values(configuration, metric))
                rows.append((configuration, metric, found.mean, found.low, found.high, found.count))
        names = ("configuration", "metric", "mean", "low", "high", "seeds")
        return Table({name: [row[n] for row in rows] for n, name in enumerate(names)})

    @property
    def comparison(self) -> Table:
        """A row a figure and configuration after the first: the difference from the first.

        Runs of one seed see the same pods, so their figures are subtracted seed by seed.
        """
        rows = []
        base, *others = self.configurations
        for configuration in others:
            for metric in self.metrics:
                values = self.values(configuration, metric)
                found = difference(values, self.values(base, metric))
                rows.append((configuration, base, metric, found.mean, found.low, found.high))
        names = ("configuration", "base", "metric", "difference", "low", "high")
        return Table({name: [row[n] for row in rows] for n, name in enumerate(names)})

    @property
    def pods(self) -> Table:
        """A row a pod and run; times in seconds after the begin."""
        return self._joined([each.pods for each in self.of_runs])

    @property
    def series(self) -> Table:
        """A row a point, metric, scope and resource of a run."""
        return self._joined([each.series for each in self.of_runs])

    def _joined(self, tables: Sequence[dict[str, list[Any]]]) -> Table:
        columns: dict[str, list[Any]] = {"configuration": [], "seed": []}
        for run, table in zip(self.of_runs, tables, strict=True):
            length = len(next(iter(table.values()), ()))
            columns["configuration"] += [run.configuration] * length
            columns["seed"] += [run.seed] * length
            for name, values in table.items():
                columns.setdefault(name, []).extend(values)
        return Table(columns)

    def write(self, folder: Path, form: Form = "csv") -> list[Path]:
        """Write every table into a folder, and the figures of all runs as ``results.json``.

        Raises
        ------
        UsageError
            pyarrow is not installed, for ``parquet``.
        """
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / f"{name}.{form}" for name in TABLES]
        for name, file in zip(TABLES, files, strict=True):
            table: Table = getattr(self, name)
            table.write(file)
        plain = folder / "results.json"
        plain.write_bytes(encode(self.plain()))
        return [*files, plain]

    def plain(self) -> dict[str, Any]:
        """Return the figures and digests as plain values, for programs."""
        return {
            "name": self.name,
            "runs": [
                {
                    "configuration": each.configuration,
                    "seed": each.seed,
                    "arguments": each.arguments,
                    "digest": each.digest,
                    "totals": each.totals,
                }
                for each in self.of_runs
            ],
            "summary": list(self.summary.rows),
            "comparison": list(self.comparison.rows),
            "leftOut": list(self.left_out),
        }

    def __repr__(self) -> str:
        return f"Results of {len(self.of_runs)} runs of {', '.join(self.configurations)}"

    def _repr_html_(self) -> str:
        return f"<h3>{html.escape(self.name or 'Simulation')}</h3>{self.summary.to_html()}"
