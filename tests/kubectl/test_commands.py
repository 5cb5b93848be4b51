"""What people type, with the newest and the oldest kubectl we care about, against one sandbox.

The commands and what they must print are in ``commands.txt``; whole outputs are compared in
test_transcript.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sandbox.tests.sandbox.process import Up
from tests.kubectl.install import RELEASES, NoKubectlError, Release, kubectl_path

COMMANDS = Path(__file__).parent / "commands.txt"
COUNT_MIN = 150

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: site, labels: {app: site}}
spec:
  replicas: 1
  selector: {matchLabels: {app: site}}
  template:
    metadata: {labels: {app: site}}
    spec: {containers: [{name: main, image: "nginx:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: site}
spec: {selector: {app: site}, ports: [{port: 80}]}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: hundred}
spec:
  completions: 100
  parallelism: 50
  template:
    metadata: {annotations: {moorage.dev/run-seconds: "1", moorage.dev/start-seconds: "0"}}
    spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
"""
SETS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: "nginx:1"}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: "nginx:1"}]}
"""
REVIEW = """
apiVersion: authorization.k8s.io/v1
kind: SelfSubjectAccessReview
spec: {resourceAttributes: {verb: list, resource: pods}}
---
apiVersion: authentication.k8s.io/v1
kind: TokenReview
spec: {token: nobodys}
"""
FILES = {
    "review.yaml": REVIEW,
    "web.yaml": WEB,
    "changed.yaml": WEB.replace("replicas: 1", "replicas: 2"),
    "wrong.yaml": WEB.replace("replicas: 1", "replicas: lots"),
    "job.yaml": JOB,
    "sets.yaml": SETS,
    "kustomization.yaml": "resources: [web.yaml]\n",
}


@dataclass
class Step:
    """One command: whether it must succeed, and what must be found in its output."""

    command: str
    succeeds: bool
    patterns: list[str] = field(default_factory=list)


def read_parts(text: str) -> dict[str, list[Step]]:
    parts: dict[str, list[Step]] = {}
    steps: list[Step] = []
    for line in text.partition("\n## ")[2].splitlines():
        if not parts or line.startswith("## "):
            steps = parts[line.removeprefix("## ")] = []
        elif line[:2] in ("$ ", "! "):
            steps.append(Step(line[2:], line[0] == "$"))
        elif line.startswith("~ "):
            steps[-1].patterns.append(line[2:])
        else:
            assert not line, f"no step: {line!r}"
    return parts


PARTS = read_parts(COMMANDS.read_text())


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    directory = tmp_path_factory.mktemp("commands")
    with Up(directory, "--nodes", "3", "--empty", "--seed", "1") as up:
        yield up.started()


def run(program: Path, directory: Path, arguments: Sequence[str]) -> tuple[int, str]:
    done = subprocess.run(
        [str(program), *arguments],
        cwd=directory,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "KUBECONFIG": str(directory / "kubeconfig"),
            "KUBE_EDITOR": "sed -i 's/image: nginx:.*/image: nginx:9/'",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
        check=False,
    )
    return done.returncode, done.stdout


def fault(step: Step, code: int, output: str) -> str:
    """Return what is wrong with how a step went, "" if nothing is."""
    missing = [each for each in step.patterns if not re.search(each, output, re.MULTILINE)]
    if (code == 0) == step.succeeds and not missing:
        return ""
    return f"$ kubectl {step.command}\nexit code {code}, not found: {missing}\n{output}"


def test_the_list_has_the_minimum_number_of_commands():
    assert sum(len(steps) for steps in PARTS.values()) >= COUNT_MIN


@pytest.mark.slow
@pytest.mark.kubectl
@pytest.mark.parametrize("release", [RELEASES[0], RELEASES[-1]], ids=lambda each: each.version)
@pytest.mark.parametrize("part", PARTS)
def test_every_listed_kubectl_command_succeeds(
    release: Release, part: str, sandbox: Up, tmp_path: Path
) -> None:
    try:
        program = kubectl_path(release)
    except NoKubectlError as error:
        pytest.skip(str(error))
    name = f"{part.replace(' ', '-')}-{release.version.replace('.', '-')}"
    (tmp_path / "kubeconfig").write_text(sandbox.kubeconfig.read_text())
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    prepare = (
        f"create namespace {name}",
        f"config set-context --current --namespace={name}",
    )
    for command in prepare:
        code, output = run(program, tmp_path, command.split())
        assert code == 0, output
    faults = []
    for step in PARTS[part]:
        words = shlex.split(step.command.replace("{name}", name))
        code, output = run(program, tmp_path, words)
        faults.append(fault(step, code, output))
    assert not any(faults), "\n".join(each for each in faults if each)
