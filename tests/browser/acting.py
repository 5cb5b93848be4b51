"""What a test does beside the page: commands, objects, and views that stand still."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from sandbox.tests.sandbox.process import Up


def typed(up: Up, *words: str, stdin: str = "") -> str:
    """Type a command that finds the sandbox."""
    command = [sys.executable, "-m", "moorage.cli.main", *words]
    command += ["--kubeconfig", str(up.kubeconfig)]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def pod(name: str, *, cpu: str = "100m", **spec: Any) -> str:
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [container], **spec},
        }
    )


def settle(page: Any) -> None:
    """Wait until a view has all that it asks for."""
    page.wait_for_selector("h1")
    page.locator(".busy").first.wait_for(state="detached")


HOLD = """async (moving) => {
  const frame = window.requestAnimationFrame;
  window.requestAnimationFrame = () => 1;
  await new Promise((done) => frame(() => frame(done)));
  if (moving) document.querySelectorAll(".card").forEach((card) => card.classList.add("moved"));
  document.getAnimations().forEach((each) => { each.pause(); each.currentTime = 0; });
}"""


def hold(page: Any, *, moving: bool = False) -> None:
    """Keep a view as it is; the page draws with frames, so it changes no more.

    Movements stand at their start, where they change most; cards that stand still move, too, if
    that is wanted.
    """
    page.evaluate(HOLD, moving)
