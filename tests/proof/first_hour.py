"""The first hour of a newcomer: a clean environment, an empty home, and ``first_hour.txt``.

By hand: ``make proof``, or ``python -m tests.proof.first_hour [PART...]`` for some parts (install
always runs). It prints every command with its output, and ends with 1 if a claim does not
hold; a part ends at the first one. What the lines of the text mean:

- ``## WORDS``: a part begins, in a folder of its own.
- ``$ COMMAND``: has to end with 0; ``! CODE COMMAND`` with another code.
- ``@ COLUMNSxLINES SECONDS COMMAND``: runs on a terminal of this size until its claims hold, and so
  many seconds more, then gets Ctrl-C; the screen before that counts as its output.
- ``~ PATTERN``: a regular expression that the output of the command has to match in one line, or
  over several lines with ``(?s)``.
- ``- PATTERN``: one that it must not match.
- ``> FILE``: begins a file, which ends with a line of ``<``.

Every output is also searched for tracebacks. A command may take a minute.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from sandbox.tests.sandbox.terminal import Terminal
from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path
from tests.screens.emulator import screen_of

ROOT = Path(__file__).resolve().parents[2]
TEXT = Path(__file__).with_name("first_hour.txt")
SECONDS_MAX = 60
PIP_SECONDS_MAX = 300
LINES_SHOWN_MAX = 60
PARTS_AT_ONCE = 2
_STEP = re.compile(
    r"(?P<kind>\$|!|@) (?:(?P<code>\d+) (?=\S)|(?P<size>\d+x\d+ [\d.]+) )?(?P<command>.*)"
)


class Claim(NamedTuple):
    """What an output has to match, or must not match."""

    pattern: str
    holds: bool


class Step(NamedTuple):
    """A command, or a file (then `command` is its name), and what is claimed of the output."""

    kind: str
    command: str
    code: int = 0
    size: str = ""
    text: str = ""
    claims: tuple[Claim, ...] = ()


class NotSoError(Exception):
    """A claim does not hold."""


def parts_of(text: str) -> dict[str, list[Step]]:
    """Return the steps of each part, by its words."""
    parts: dict[str, list[Step]] = {}
    steps: list[Step] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("## "):
            steps = parts[line.removeprefix("## ")] = []
        elif line.startswith("> "):
            body = "".join(f"{each}\n" for each in iter(lambda: next(lines), "<"))
            steps.append(Step(">", line[2:], text=body))
        elif line[:2] in ("~ ", "- "):
            claim = Claim(line[2:], line[0] == "~")
            steps[-1] = steps[-1]._replace(claims=(*steps[-1].claims, claim))
        elif found := _STEP.fullmatch(line):
            code, size = int(found["code"] or 0), found["size"] or ""
            steps.append(Step(found["kind"], found["command"], code, size))
        elif parts and line:
            raise ValueError(f"no step: {line}")
    return parts


class Newcomer:
    """Somebody with an empty home and a clean environment.

    Parameters
    ----------
    folder
        Gets the environment, and for each part a folder and a home.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        tools = folder / "tools"
        tools.mkdir()
        (tools / "kubectl").symlink_to(kubectl_path(RELEASES[0]))
        self.bin = folder / "venv" / "bin"
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self._environ = {
            **kept,
            "PATH": f"{self.bin}:{tools}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "MOORAGE": str(ROOT),
            "DIST": str(folder / "dist"),
        }

    def follow(self, words: str, steps: Sequence[Step], tell: Callable[[str], None]) -> None:
        """Do the steps of a part.

        Raises
        ------
        NotSoError
            A claim does not hold.
        """
        work = self._folder / words.partition(" ")[0]  # short: the path stands in lines to copy
        home = self._folder / f"home-of-{work.name}"
        work.mkdir()
        home.mkdir()
        environ = {
            **self._environ,
            "HOME": str(home),
            "KUBECONFIG": str(work / ".moorage" / "kubeconfig"),
        }
        try:
            for step in steps:
                self._do(step, work, environ, tell)
        finally:
            subprocess.run(
                [self.bin / "moorage", "down", "--all"],
                cwd=work,
                env=environ,
                capture_output=True,
                check=False,
            )

    def _do(
        self, step: Step, work: Path, environ: Mapping[str, str], tell: Callable[[str], None]
    ) -> None:
        if step.kind == ">":
            (work / step.command).write_text(step.text)
            tell(f"\n> {step.command}")
            return
        tell(f"\n$ {step.command}" + (f"    # on a terminal of {step.size} s" if step.size else ""))
        begin = time.monotonic()
        if step.kind == "@":
            code, output = _on_terminal(step, work, environ)
        else:
            code, output = _run(step.command, work, environ)
        seconds = time.monotonic() - begin
        lines = output.rstrip("\n").split("\n")
        left_out = len(lines) - LINES_SHOWN_MAX
        tell("\n".join(lines[:LINES_SHOWN_MAX]))
        if left_out > 0:
            tell(f"[{left_out} more lines]")
        tell(f"[{code} after {seconds:.1f} s]")
        _check(step, code, output)


def _run(command: str, work: Path, environ: Mapping[str, str]) -> tuple[int, str]:
    with subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=work,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        seconds = PIP_SECONDS_MAX if "pip install" in command else SECONDS_MAX
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise NotSoError(f"{command}: goes on after {seconds} s") from error
        return process.returncode, output


def _on_terminal(step: Step, work: Path, environ: Mapping[str, str]) -> tuple[int, str]:
    size, _, seconds = step.size.partition(" ")
    columns, lines = (int(each) for each in size.split("x"))
    command = ["bash", "-c", f"exec {step.command}"]
    with Terminal(work, command, size=(columns, lines), environ=environ) as terminal:
        end = time.monotonic() + SECONDS_MAX
        shown = ""
        while time.monotonic() < end and not _holds(step.claims, shown):
            shown = "\n".join(screen_of(terminal.for_seconds(0.2), columns=columns, lines=lines))
        terminal.for_seconds(float(seconds))
        shown = "\n".join(screen_of(terminal.text, columns=columns, lines=lines))
        terminal.interrupt()
        return terminal.ended(), shown


def _check(step: Step, code: int, output: str) -> None:
    if code != step.code:
        raise NotSoError(f"{step.command}: ended with {code}, not {step.code}")
    claims = (*step.claims, Claim(r"^Traceback \(most recent call last\)", holds=False))
    for claim in claims:
        if not _holds([claim], output):
            held = "is not printed" if claim.holds else "is printed"
            raise NotSoError(f"{step.command}: {claim.pattern!r} {held}")


def _holds(claims: Sequence[Claim], output: str) -> bool:
    return all(bool(re.search(each.pattern, output, re.MULTILINE)) is each.holds for each in claims)


def built(folder: Path) -> None:
    """Build the wheels of moorage and of its laboratory, and an empty environment."""
    hatchling = Path(sys.executable).with_name("hatchling")
    for project in (ROOT, ROOT / "lab"):
        subprocess.run(
            [hatchling, "build", "-t", "wheel", "-d", folder / "dist"],
            cwd=project,
            check=True,
            capture_output=True,
        )
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)


def reaches_index(newcomer: Newcomer, folder: Path) -> bool:
    """Whether pip finds a package index."""
    words = ["download", "-q", "--no-deps", "-d", str(folder / "probe"), "click"]
    return not subprocess.run(
        [newcomer.bin / "pip", *words], capture_output=True, check=False
    ).returncode


def tell(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def chosen(parts: Mapping[str, list[Step]], words: Sequence[str]) -> Iterator[str]:
    """Yield the parts that are asked for, the first one always; all of them without words."""
    for number, name in enumerate(parts):
        if not number or not words or any(name.startswith(word) for word in words):
            yield name


def follow_all(newcomer: Newcomer, parts: Mapping[str, list[Step]]) -> list[str]:
    """Follow the first part, then the others two at a time; return the claims that do not hold."""

    def follow(name: str) -> tuple[list[str], str]:
        lines = [f"\n==== {name}"]
        try:
            newcomer.follow(name, parts[name], lines.append)
        except NotSoError as error:
            return lines, str(error)
        return lines, ""

    first, *others = parts
    broken = []

    def report(lines: list[str], fault: str) -> None:
        tell("\n".join(lines))
        if fault:
            broken.append(fault)
            tell(f"\nNOT SO: {fault}")

    report(*follow(first))  # installs what the others use
    if not broken:
        with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
            for told in pool.map(follow, others):
                report(*told)
    return broken


def main(words: Sequence[str]) -> int:
    """Follow the text; return 0 if every claim holds."""
    every, began = parts_of(TEXT.read_text()), time.monotonic()
    parts = {name: every[name] for name in chosen(every, words)}
    folder = Path(tempfile.mkdtemp(prefix="hour-"))
    try:
        newcomer = Newcomer(folder)
        built(folder)
        if not reaches_index(newcomer, folder):
            tell("skipped: pip reaches no package index, so nothing can be installed")
            return 0
        broken = follow_all(newcomer, parts)
    except NoKubectlError as error:
        tell(f"skipped: {error}")
        return 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - began
    steps = sum(map(len, parts.values()))
    tell(f"\n{steps} steps in {seconds:.0f} s: {len(broken) or 'no'} claims do not hold")
    for fault in broken:
        tell(f"NOT SO: {fault}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
