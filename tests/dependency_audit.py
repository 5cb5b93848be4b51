"""Asks for known vulnerabilities of every locked dependency: ``make audit``.

The program pip-audit asks PyPI. It passes over what it does not find there, and ends with success
when it has found nothing at all. So its report is judged here: a dependency that was not checked
is a failure, too. With ``--if-reached`` it is none where not one could be checked, as on a machine
that reaches a mirror only; that is said instead.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

LOCK = Path("requirements.lock")
PROGRAM = Path(".cache/audit/bin/pip-audit")
# A report with advisories ends with 1, and is still a report.
_ENDS = (0, 1)


class Advisory(msgspec.Struct, frozen=True):
    """A known vulnerability, and the versions without it."""

    id: str
    fix_versions: list[str] = []


class Dependency(msgspec.Struct, frozen=True):
    """What is known of one dependency; ``skip_reason`` where nothing is."""

    name: str
    version: str = ""
    vulns: list[Advisory] = []
    skip_reason: str = ""


class Report(msgspec.Struct, frozen=True):
    """What pip-audit prints with ``--format json``."""

    dependencies: list[Dependency]


def judge(report: Report, *, if_reached: bool) -> tuple[int, list[str]]:
    """Return the exit code and what to say.

    Parameters
    ----------
    report
        What pip-audit found.
    if_reached
        Whether it is no failure that nothing could be checked.
    """
    checked = [each for each in report.dependencies if not each.skip_reason]
    skipped = [each.name for each in report.dependencies if each.skip_reason]
    if not checked:
        lines = [f"NOTHING WAS CHECKED: none of {len(skipped)} dependencies was found at PyPI"]
        return (0 if if_reached else 1), lines
    lines = [f"not checked: {name}" for name in skipped]
    for each in checked:
        for advisory in each.vulns:
            fixed = ", ".join(advisory.fix_versions) or "no version"
            lines.append(f"{each.name} {each.version}: {advisory.id}, fixed in {fixed}")
    code = 1 if lines else 0
    return code, [*lines, f"{len(checked)} dependencies were checked"]


def main() -> int:
    """Run pip-audit and judge its report."""
    command = [str(PROGRAM), "-r", str(LOCK), "--disable-pip", "--no-deps", "-s", "pypi"]
    done = subprocess.run(
        [*command, "--progress-spinner", "off", "--format", "json"],
        capture_output=True,
        check=False,
        text=True,
    )
    if_reached = "--if-reached" in sys.argv[1:]
    try:
        report = msgspec.json.decode(done.stdout, type=Report)
    except msgspec.DecodeError:
        report = None
    if report is None or done.returncode not in _ENDS:
        sys.stderr.write(f"NOTHING WAS CHECKED: pip-audit failed:\n{done.stderr[-2000:]}\n")
        return 0 if if_reached else 1
    code, lines = judge(report, if_reached=if_reached)
    sys.stdout.writelines(f"audit: {line}\n" for line in lines)
    return code


if __name__ == "__main__":
    sys.exit(main())
