"""The report of an experiment as one HTML page: tables and pictures, nothing from elsewhere."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Final

from moorage.base.errors import UsageError
from moorage.base.version import __version__
from moorage_lab.traces.plots import panels, picture
from moorage_lab.traces.results import Results
from moorage_lab.traces.tables import Table
from moorage_sandbox.pictures.files import check_library

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
table { border-collapse: collapse; font-size: 13px; margin: 0.5rem 0 1.5rem }
th, td { text-align: left; padding: 0.15rem 0.9rem 0.15rem 0; border-bottom: 1px solid #e5e5e5;
  font-variant-numeric: tabular-nums }
svg { max-width: 100%; height: auto }
.wide { overflow-x: auto }
p { color: #555 }
"""


def check_page(file: Path) -> None:
    """Refuse a report that could not be written, before anything is run.

    Raises
    ------
    UsageError
        The suffix is not .html, or matplotlib is missing.
    """
    if file.suffix != ".html":
        raise UsageError(f"{file}: a report is an .html file")
    check_library()


def write_page(results: Results, file: Path) -> None:
    """Write the report.

    Raises
    ------
    UsageError
        matplotlib is missing, or the file cannot be written.
    """
    text = page(results)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error


def page(results: Results) -> str:
    """Return the report as HTML."""
    title = html.escape(results.name or "Simulation")
    parts = [f"<h1>{title}</h1>", f"<p>{_runs(results)}</p>"]
    parts += _part(
        "Figures", "Means over seeds; low and high bound the 95 % interval.", results.summary
    )
    if len(results.configurations) > 1:
        base = html.escape(results.configurations[0])
        text = f"From {base}, seed by seed; low and high bound the 95 % interval."
        parts += _part("Differences", text, results.comparison)
    parts.append("<h2>Over time</h2>")
    parts += [_svg(picture(each)) for each in panels(results)]
    parts += _part("Runs", "The digest is over every placement, in order.", _short_runs(results))
    if results.left_out:
        lines = "".join(f"<li>{html.escape(each)}</li>" for each in results.left_out)
        parts += ["<h2>Left out</h2>", f"<ul>{lines}</ul>"]
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _runs(results: Results) -> str:
    seeds = len({each.seed for each in results.of_runs})
    return html.escape(
        f"{len(results.of_runs)} runs: {len(results.configurations)} configurations, "
        f"{seeds} seeds; moorage {__version__}"
    )


def _short_runs(results: Results) -> Table:
    """Return the runs without their figures, which would make the page wide; files have them."""
    runs = results.runs
    names = ("configuration", "seed", "digest", "tookSeconds")
    return Table({name: runs.columns[name] for name in names})


def _part(title: str, text: str, table: Table) -> list[str]:
    scrolling = f'<div class="wide">{table.to_html()}</div>'
    return [f"<h2>{title}</h2>", f"<p>{text}</p>", scrolling]


def _svg(data: bytes) -> str:
    """Return a picture as it stands within a page: without the head of an XML file."""
    text = data.decode()
    return text[text.index("<svg") :]
