"""Runs the command blocks of a page, as a reader would type them, and compares what they print.

Invisible marks above a block say what a reader would know:

- ``<!-- not run: REASON -->``: the block cannot be run here.
- ``<!-- file: NAME -->``: the block is the content of a file, which later commands read.
- ``<!-- append: NAME -->``: the same, at the end of the file.
- ``<!-- before: COMMAND -->``: runs first; what the text around the block takes for granted.
- ``<!-- with: WORD=VALUE -->``: a placeholder of the block, and what stands for it.

``moorage up`` goes to the background, and a later one takes its place. Other commands that go on
until Ctrl-C run until the page ends. Where a block shows output, each line of it has to be printed;
numbers may differ, and ``…`` or ``...`` stands for anything.

By hand, with a table of all blocks: ``python -m tests.pages.runner [PAGE...]``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# CI runs the pages beside another step; on a crowded machine the longest took more than 90 s.
COMMAND_SECONDS_MAX = 240
_BLOCK = re.compile(
    r"(?P<marks>(?:^<!--(?:(?!-->).)*-->\n)*)^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(
    r"<!-- (?P<key>not run|file|append|before|with): (?P<value>(?:(?!-->).)*?) -->", re.DOTALL
)
COMMANDS = ("console", "sh", "bash")
# Commands that go on until Ctrl-C.
_GOES_ON = re.compile(r"moorage (run|nodes|example-extender)\b|kubectl get .*(-w|--watch)\b")
_UP = re.compile(r"^(?:\S*/)?moorage up(?= |$)|^make up(?= |$)")


class Block(NamedTuple):
    """A block of a page: where it is, what it is, and what its marks say."""

    page: str
    line: int
    kind: str
    text: str
    marks: tuple[tuple[str, str], ...]

    def marked(self, key: str) -> list[str]:
        """Return the values of the marks of one key."""
        return [value for name, value in self.marks if name == key]

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """The commands, each with the lines of output shown below it."""
        found: list[tuple[str, list[str]]] = []
        goes_on = False
        for line in self.text.splitlines():
            if self.kind == "console" and not goes_on and not line.startswith("$ "):
                if found and line.strip():
                    found[-1][1].append(line)
                continue
            words = line.removeprefix("$ ")
            if goes_on:
                found[-1] = (f"{found[-1][0]}\n{words}", [])
            elif words.strip():
                found.append((words, []))
            goes_on = line.endswith("\\")
        return found


class CommandFailedError(AssertionError):
    """A command of a page ended with an error, or printed something else than the page shows."""


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page that are commands or files, in order."""
    text, found = page.read_text(), []
    for match in _BLOCK.finditer(text):
        marks = tuple((each["key"], each["value"]) for each in _MARK.finditer(match["marks"]))
        if match["kind"] in COMMANDS or any(key in ("file", "append") for key, _ in marks):
            line = text.count("\n", 0, match.start("kind")) + 1
            name = page.relative_to(ROOT).as_posix()
            found.append(Block(name, line, match["kind"], match["text"], marks))
    return found


class Reader:
    """Somebody who follows a page, in an empty folder beside a checkout.

    Parameters
    ----------
    folder
        The folder, empty.
    kubectl
        Path of a kubectl.
    """

    def __init__(self, folder: Path, kubectl: Path) -> None:
        self._folder = folder
        tools = folder / ".tools"
        tools.mkdir()
        (tools / "kubectl").symlink_to(kubectl)
        for name in ("deploy", "examples", "tests", "scheduler", "sandbox", "lab"):
            (folder / name).symlink_to(ROOT / name)
        (folder / ".venv").symlink_to(Path(sys.prefix))
        (folder / "home").mkdir()
        path = f"{tools}:{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"
        self._environ = {**os.environ, "PATH": path, "HOME": str(folder / "home")}
        self._environ.pop("KUBECONFIG", None)
        self._running: list[subprocess.Popen[bytes]] = []

    def follow(self, blocks: Sequence[Block]) -> Iterator[tuple[Block, str, float]]:
        """Run the blocks; yield each with what was done and the seconds it took.

        Raises
        ------
        CommandFailedError
            A command failed, or printed something else.
        """
        try:
            for block in blocks:
                began = time.monotonic()
                yield block, self._run_block(block), time.monotonic() - began
        finally:
            self._leave()

    def _run_block(self, block: Block) -> str:
        for reason in block.marked("not run"):
            return f"not run: {reason}"
        for command in block.marked("before"):
            self._run(command, [], block)
        for name in block.marked("file"):
            (self._folder / name).write_text(block.text)
            return f"file {name}"
        for name in block.marked("append"):
            with (self._folder / name).open("a") as file:
                file.write(block.text)
            return f"more of file {name}"
        for written, shown in block.commands:
            command = written
            for each in block.marked("with"):
                word, _, value = each.partition("=")
                command = command.replace(word, value)
            self._run(command, shown, block)
        return f"{len(block.commands)} run"

    def _run(self, command: str, shown: list[str], block: Block) -> None:
        exported = re.match(r"export (\w+)=(\S+)", command)
        if exported:
            value = exported[2]
            self._environ[exported[1]] = ".moorage/kubeconfig" if "…" in value else value
            return
        if _UP.match(command) and command.rstrip().endswith("&"):
            # As written: what comes next has to wait for the server by itself.
            self._down()
            self._start(command.rstrip("& "), block, waits=False)
            return
        if _UP.match(command) and "--exit-when-settled" not in command:
            command = self._in_background(command)
        elif _GOES_ON.search(command):
            self._start(command, block)
            return
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            check=False,
        )
        printed = done.stdout + done.stderr
        where = f"{block.page}:{block.line}: {command}"
        if done.returncode:
            raise CommandFailedError(f"{where}\nended with {done.returncode}:\n{printed}")
        for line in missing(shown, printed):
            raise CommandFailedError(f"{where}\ndoes not print\n{line}\nbut\n{printed}")

    def _in_background(self, command: str) -> str:
        """Return an ``up`` that returns when pods are scheduled, in place of the one before."""
        command = command.partition("  #")[0].rstrip("& ")
        options = _UP.sub("", command)
        if "--name" not in options:
            self._down()
            self._environ.setdefault("KUBECONFIG", ".moorage/kubeconfig")
        detached = "" if re.search(r"(^| )(-d|--detach)\b", options) else " -d"
        return f"moorage up{detached}{options}"

    def _start(self, command: str, block: Block, *, waits: bool = True) -> None:
        """Start a command that goes on, and wait for its first line."""
        command = command.partition("  #")[0]
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self._folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._running.append(process)
        if waits and process.stdout is not None and not process.stdout.readline():
            where = f"{block.page}:{block.line}: {command}"
            raise CommandFailedError(f"{where}\nended with {process.wait()} and printed nothing")

    def _leave(self) -> None:
        """End everything that the page started."""
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.communicate(timeout=COMMAND_SECONDS_MAX)
        self._down("--all")

    def _down(self, *options: str) -> None:
        subprocess.run(
            [str(Path(sys.prefix) / "bin" / "moorage"), "down", *options],
            cwd=self._folder,
            env=self._environ,
            capture_output=True,
            check=False,
        )


def missing(shown: Sequence[str], printed: str) -> list[str]:
    """Return the lines of the page that were not printed, compared loosely."""
    lines = [_loose(line) for line in printed.splitlines()]
    return [line for line in shown if not any(re.search(_pattern(line), each) for each in lines)]


def _loose(line: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\d+", "0", line)).strip()


def _pattern(line: str) -> str:
    parts = re.split(r"…|\.\.\.", _loose(line))
    return ".*".join(re.escape(part.strip()) for part in parts)


def pages() -> list[Path]:
    """Return every page that has blocks of commands; what is generated or dated is no page."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    left = ("decisions", "changelog.md")
    return [
        page
        for page in found
        if not any(part in left for part in page.parts)
        and any(block.kind in COMMANDS for block in blocks_of(page))
    ]


def tell(line: str) -> None:
    """Write a line of the table."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(names: Sequence[str]) -> int:
    """Run pages and print a table of their blocks; return how many pages failed."""
    from tests.kubectl.install import RELEASES, kubectl_path

    kubectl, failed = kubectl_path(RELEASES[0]), 0
    for page in [Path(name).resolve() for name in names] or pages():
        with tempfile.TemporaryDirectory() as folder:
            try:
                for block, done, seconds in Reader(Path(folder), kubectl).follow(blocks_of(page)):
                    tell(f"{block.page}:{block.line:<5} {seconds:6.1f} s  {done}")
            except CommandFailedError as error:
                failed += 1
                tell(f"FAILED {error}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
