"""The chart as a real Helm renders it, and the plain manifests that are made of it.

By hand, after the chart has changed: ``python -m tests.deploy.chart``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "chart"
MANIFESTS = ROOT / "deploy" / "manifests"
ONLY = CHART / "values-only.yaml"
IMAGE = "image.tag=local"

PLAIN: dict[str, tuple[str, ...]] = {
    "second-scheduler.yaml": ("--namespace", "moorage", "--set", IMAGE),
    "only-scheduler.yaml": ("--namespace", "kube-system", "--values", str(ONLY), "--set", IMAGE),
}
"""The plain manifests: the arguments of Helm by file."""

_HEAD = """\
# Written by `python -m tests.deploy.chart` from deploy/chart. Do not edit.
# Give the Deployment an image that your nodes can pull: deploy/Containerfile builds it.
"""
_NAMESPACE = """\
---
apiVersion: v1
kind: Namespace
metadata:
  name: moorage
  labels: {pod-security.kubernetes.io/enforce: restricted}
"""

Objects = list[dict[str, Any]]


def helm(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Helm; skip the test where it cannot be had."""
    try:
        program = kubectl_path(RELEASES[0], program="helm")
    except NoKubectlError as error:
        pytest.skip(str(error))
    return subprocess.run(
        [str(program), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@cache
def rendered(*words: str) -> str:
    """Return what Helm installs: all that it renders but the tests."""
    done = helm("template", "moorage", str(CHART), "--skip-tests", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(text: str) -> Objects:
    """Return the objects of a text in YAML."""
    return [each for each in yaml.safe_load_all(text) if each]


def plain(name: str) -> str:
    """Return a plain manifest as it should be."""
    text = rendered(*PLAIN[name])
    text = re.sub(r"^# Source: .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ *app\.kubernetes\.io/managed-by: Helm\n", "", text, flags=re.MULTILINE)
    return _HEAD + (_NAMESPACE if name.startswith("second") else "") + text


def kept(name: str) -> str:
    """Return a plain manifest as it is."""
    return (MANIFESTS / name).read_text()


def main() -> None:
    """Write the plain manifests."""
    MANIFESTS.mkdir(exist_ok=True)
    for name in PLAIN:
        (MANIFESTS / name).write_text(plain(name))
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
