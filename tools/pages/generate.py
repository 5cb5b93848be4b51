"""Writes the generated pages: ``python -m tools.pages.generate``; ``--check`` only compares.

The command line is taken from click's own help, the plugins from ``tools.pages.plugin_pages``. A
page is written by a pure function from the program, so a stale page is a failing test
(``tests/test_docs.py``).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from tools.pages import event_tables, failure_paths, state_tables
from tools.pages.capabilities_page import capabilities_page
from tools.pages.chart_page import CHART, chart_page, definition_files
from tools.pages.deviations_table import deviations_page
from tools.pages.example_blocks import pages_with_examples
from tools.pages.feature_gates_page import feature_gates_page
from tools.pages.flags_page import flags_page
from tools.pages.kinds_page import kinds_page
from tools.pages.licences_page import licences_page
from tools.pages.metrics_page import metrics_page
from tools.pages.performance_page import performance_page
from tools.pages.plugin_pages import Costs, plugin_pages, read_costs
from tools.pages.plugin_points_page import plugin_points_page
from tools.pages.questions_page import questions_page
from tools.pages.reasons_page import reason_pages
from tools.pages.server_versions_page import server_versions_page
from tools.pages.worlds_page import worlds_page
from tools.watching.dashboards import dashboard_files
from tools.watching.rules_file import alerts_page, rules_file

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
PLUGINS = REFERENCE / "plugins"
COSTS = PLUGINS / "costs.json"
"""What ``moorage bench plugins -o json`` measured; left out of the pages while it is missing."""
CLI_MODULE = "moorage.cli.main"
COLUMNS = 88
WATCHING = CHART / "watching"
"""The rules of Prometheus and the dashboards of Grafana, which the chart brings along."""
DEFINITIONS = CHART / "definitions"
_CLI_HEADER = """# Command line

<!-- Written by `make docs` from the program's own help. Do not edit. -->
"""


def has_cli() -> bool:
    """Say whether this checkout has a command line to describe."""
    package, _, _ = CLI_MODULE.rpartition(".")
    return (
        importlib.util.find_spec(package) is not None
        and importlib.util.find_spec(CLI_MODULE) is not None
    )


def root_command() -> click.Group:
    """Return the click group that is the whole command line.

    Raises
    ------
    LookupError
        The module has no click group, or several and none called ``main``.
    """
    module = importlib.import_module(CLI_MODULE)
    groups = {name: v for name, v in sorted(vars(module).items()) if isinstance(v, click.Group)}
    if "main" in groups:
        return groups["main"]
    if len(groups) != 1:
        raise LookupError(f"{CLI_MODULE} should define one click group, found {sorted(groups)}")
    return next(iter(groups.values()))


def cli_page(root: click.Group) -> str:
    """Return the page for a command line: a section for each command, with its help."""
    sections = [_CLI_HEADER]
    for path, help_text in _commands(root, "moorage", None):
        sections.append(f"## {path}\n\n```text\n{help_text.rstrip()}\n```\n")
    return "\n".join(sections)


def pages() -> dict[Path, str]:
    """Return every generated page by the file it belongs in."""
    costs = read_costs(COSTS.read_bytes()) if COSTS.exists() else Costs()
    found = {PLUGINS / name: text for name, text in plugin_pages(costs).items()}
    found |= {REFERENCE / "reasons" / name: text for name, text in reason_pages().items()}
    found |= pages_with_examples(REFERENCE.parent)
    found[REFERENCE / "plugin-points.md"] = plugin_points_page()
    found[REFERENCE / "questions.md"] = questions_page()
    found[REFERENCE / "capabilities.md"] = capabilities_page()
    found[REFERENCE / "failure-paths.md"] = failure_paths.page()
    found[REFERENCE / "pod-states.md"] = state_tables.state_page()
    found[REFERENCE / "cluster-events.md"] = event_tables.event_page()
    found[REFERENCE.parent / "deviations.md"] = deviations_page()
    found[REFERENCE / "feature-gates.md"] = feature_gates_page()
    found[REFERENCE / "flags.md"] = flags_page()
    found[REFERENCE / "licences.md"] = licences_page()
    found[REFERENCE / "kinds.md"] = kinds_page()
    found[REFERENCE / "metrics.md"] = metrics_page()
    found[REFERENCE / "server-versions.md"] = server_versions_page()
    found[REFERENCE.parent / "performance.md"] = performance_page()
    found[REFERENCE.parent / "how-to" / "worlds.md"] = worlds_page()
    found[REFERENCE / "alerts.md"] = alerts_page()
    found[WATCHING / "rules.yaml"] = rules_file()
    found[CHART / "README.md"] = chart_page()
    found |= {DEFINITIONS / name: text for name, text in definition_files().items()}
    found |= {WATCHING / "dashboards" / name: text for name, text in dashboard_files().items()}
    return {REFERENCE / "cli.md": cli_page(root_command()), **found} if has_cli() else found


def stale(wanted: dict[Path, str]) -> list[str]:
    """Return the names of pages that are missing or differ from what they should be."""
    return [p.name for p, text in wanted.items() if not p.exists() or p.read_text() != text]


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` say which are stale and return 1."""
    wanted = pages()
    if arguments == ["--check"]:
        old = stale(wanted)
        for name in old:
            print(f"generated page {name} is stale: run make docs", file=sys.stderr)
        return 1 if old else 0
    if arguments:
        print("usage: python -m tools.pages.generate [--check]", file=sys.stderr)
        return 2
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


def _commands(
    command: click.Command, path: str, parent: click.Context | None
) -> Iterator[tuple[str, str]]:
    context = click.Context(
        command,
        info_name=path.rpartition(" ")[2],
        parent=parent,
        terminal_width=COLUMNS,
        max_content_width=COLUMNS,
        # A command that has run in this process remembers its help option; this is the same one.
        help_option_names=command.context_settings.get("help_option_names"),
    )
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _commands(child, f"{path} {name}", context)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
