"""Draws what a terminal shows while ``moorage up`` runs: ``python -m tests.screens.pictures``.

The program runs on a terminal of the given size, and the screen becomes an SVG of docs/images. So a
picture is what a user sees; addresses and times differ from one drawing to the next.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from sandbox.tests.sandbox.terminal import Terminal
from tests.screens.emulator import Screen

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
LOOKS_MAX = 150
LOOK_SECONDS = 0.2
EVENT_SECONDS = 3.0
SMALL, LARGE = (80, 24), (200, 60)

FULL = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 900
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "nginx:1", resources: {requests: {cpu: "1"}}}]
"""
GROUP = """
apiVersion: v1
kind: Pod
metadata:
  name: {group}-{number}
  labels:
    pod-group.scheduling.sigs.k8s.io/name: {group}
    pod-group.scheduling.sigs.k8s.io/min-available: "{size}"
spec: {{containers: [{{name: main, image: "train:1", resources: {{requests: {{cpu: "6"}}}}}}]}}
"""


def group(name: str, size: int) -> str:
    """Return the manifests of a group of pods, each of which takes most of a node."""
    return "---".join(GROUP.format(group=name, number=n, size=size) for n in range(size))


class Picture(NamedTuple):
    """A picture: its file, the terminal, the command, what is applied, and when it is drawn."""

    name: str
    size: tuple[int, int]
    options: tuple[str, ...]
    until: str
    manifests: str = ""


PICTURES = (
    Picture("up-5-nodes", SMALL, ("--nodes", "5"), r" 29 running"),
    Picture(
        "up-100-nodes-full",
        SMALL,
        ("--nodes", "100", "--empty"),
        r"[1-9]\d* unschedulable  \d bound  [1-9]\d\d running",
        FULL,
    ),
    Picture("up-600-nodes", LARGE, ("--nodes", "600"), r" 29 running"),
    Picture(
        "up-100-nodes-pending",
        LARGE,
        ("--nodes", "100", "--empty"),
        r"[1-9]\d* unschedulable  \d bound  [1-9]\d\d running",
        FULL,
    ),
    Picture(
        "up-5-nodes-groups",
        SMALL,
        ("--nodes", "5", "--empty", "--config", "examples/profiles/coscheduling.yaml"),
        r" 8 unschedulable  0 bound  4 running",
        f"{group('small', 4)}---{group('large', 8)}",
    ),
)


def drawn(picture: Picture, folder: Path) -> Screen:
    """Run the program until the picture is there, and return the screen."""
    (folder / "examples").symlink_to(ROOT / "examples")
    moorage = Path(sys.executable).with_name("moorage")
    command = [str(moorage), "up", "--seed", "1", *picture.options]
    with Terminal(folder, command, size=picture.size) as terminal:
        terminal.until("ready in")
        if picture.manifests:
            kubeconfig = str(folder / ".moorage" / "kubeconfig")
            subprocess.run(
                [moorage, "apply", "-f", "-", "--kubeconfig", kubeconfig],
                input=picture.manifests.encode(),
                check=True,
                capture_output=True,
            )
        for _ in range(LOOKS_MAX):
            screen = _screen(terminal.for_seconds(LOOK_SECONDS), picture)
            if re.search(picture.until, "\n".join(screen.text())):
                break
        else:
            raise AssertionError("\n".join(screen.text()))
        # Events come after the conditions that they tell of, and the decisions are counted by them.
        screen = _screen(terminal.for_seconds(EVENT_SECONDS), picture)
        terminal.interrupt()
        terminal.ended()
    return screen


def _screen(text: str, picture: Picture) -> Screen:
    columns, lines = picture.size
    screen = Screen(columns, lines)
    screen.write(text)
    return screen


def svg(screen: Screen, *, columns: int, title: str, unique_id: str = "screen") -> str:
    """Return a screen as a picture, whose styles have names that begin with an id."""
    console = Console(
        width=columns, record=True, file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    for line in screen.coloured():
        console.print(Text.from_ansi(line), no_wrap=True, crop=True)
    return console.export_svg(title=title, unique_id=unique_id)


def main(names: Sequence[str]) -> None:
    """Draw all pictures, or those that are named."""
    for picture in PICTURES:
        if not names or picture.name in names:
            with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
                screen = drawn(picture, Path(folder))
            columns, lines = picture.size
            title = f"moorage up {' '.join(picture.options)} ({columns}x{lines})"
            text = svg(screen, columns=columns, title=title)
            (IMAGES / f"{picture.name}.svg").write_text(f"{text.rstrip()}\n")
            sys.stdout.write(f"{picture.name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
