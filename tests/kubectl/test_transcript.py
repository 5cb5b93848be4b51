"""A real kubectl against a real ``moorage up``, compared with a golden transcript.

Ages, addresses, uids and times are replaced before comparing. After a wanted change write the
golden anew with ``MOORAGE_UPDATE_GOLDEN=1`` and read the difference.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.tests.sandbox.process import Up

GOLDEN = Path(__file__).parent / "transcript.txt"

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeSelector: {topology.kubernetes.io/zone: b}
  containers:
    - {name: main, image: "nginx:1", resources: {requests: {cpu: 100m, memory: 64Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: giant, labels: {app: giant}}
spec:
  containers:
    - {name: main, image: "nginx:1", resources: {requests: {cpu: "64"}}}
"""
WRONG = """
apiVersion: v1
kind: Pod
metadata: {name: wrong}
spec:
  containers:
    - {name: main, image: "nginx:1", resources: {requests: {cpu: lots}}}
"""
MISSPELT = """
apiVersion: v1
kind: Pod
metadata: {name: misspelt}
spec:
  contaners: []
  containers: [{name: main, image: "nginx:1"}]
"""

# What is typed, in order. Everything waits for what it needs, so the output is always the same.
STEPS = """
version
api-resources
get nodes
apply -f pods.yaml
wait --for=condition=Ready pod/web --timeout=20s
wait --for=condition=PodScheduled=False pod/giant --timeout=20s
get pods
get pods -o wide
get pods -A -l app=web -o name
get pods --field-selector status.phase=Pending
get pod web -o jsonpath={.spec.nodeName}
describe pod giant
get events --field-selector involvedObject.name=giant -o custom-columns=TYPE:.type,REASON:.reason
taint nodes node-01 example.com/maintenance=now:NoSchedule
cordon node-03
get nodes
describe node node-01
uncordon node-03
label pod web tier=front
annotate pod web note=seen
patch pod web -p {"metadata":{"labels":{"tier":"back"}}}
patch pod web --type=json -p [{"op":"add","path":"/metadata/labels/extra","value":"1"}]
patch pod web --type=merge -p {"metadata":{"labels":{"extra":null}}}
get pod web --show-labels
edit pod web
get pod web -o jsonpath={.spec.containers[0].image}
wait --for=condition=Ready pod/web --timeout=20s
apply -f pods.yaml
apply -f pods.yaml
apply -f wrong.yaml
apply -f misspelt.yaml
create -f pods.yaml
apply -f pods.yaml --server-side
get pod nosuch
delete -f pods.yaml
get pods
"""


class Kubectl:
    """Runs kubectl in a directory and keeps the transcript."""

    def __init__(self, program: Path, directory: Path, kubeconfig: Path) -> None:
        self.program = program
        self.directory = directory
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "KUBECONFIG": str(kubeconfig),
            "KUBE_EDITOR": "sed -i s/nginx:1/nginx:2/",
        }

    def run(self, *arguments: str) -> str:
        """Run to the end; return both outputs together."""
        done = subprocess.run(
            [str(self.program), *arguments],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout

    def watch(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that does not end."""
        return subprocess.Popen(
            [str(self.program), *arguments],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with Up(tmp_path, "--nodes", "3", "--empty", "--seed", "1") as up:
        (tmp_path / "pods.yaml").write_text(PODS)
        (tmp_path / "wrong.yaml").write_text(WRONG)
        (tmp_path / "misspelt.yaml").write_text(MISSPELT)
        yield up.started()


_REPLACED = (
    (r"https://127\.0\.0\.1:\d+", "<server>"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uid>"),
    (r"\b10\.\d+\.\d+\.\d+\b", "<ip>"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [-+]\d{4}", "<time>"),
    (r"(?<=[ (])(\d+[smh]){1,2}(?=[ )]|$)(?! tolerat)", "<age>"),
    (r"for <age>", "for 300s"),
    # What preemption tried is not this test's business.
    (r"(no new claims to deallocate|, preemption:).*", "<preemption>"),
    (r" +$", ""),
    (r"(?<=\S) {2,}", "  "),
)


def normal(text: str) -> str:
    """Replace what differs from run to run; widths of columns depend on it and go too."""
    for pattern, replacement in _REPLACED:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text.rstrip("\n")


def _session(kubectl: Kubectl) -> str:
    parts = []
    for step in STEPS.strip().splitlines():
        output = normal(kubectl.run(*step.split(" ")))
        parts.append(f"$ kubectl {step}\n{output}\n")
    return "\n".join(parts)


def _watched(kubectl: Kubectl) -> str:
    """Watch a pod from its creation to Running; lines that say the same again are left out.

    The watch may begin late, so what came before Running need not have been seen, only in order.
    """
    watch = kubectl.watch("get", "pods", "-w")
    assert watch.stdout is not None
    try:
        kubectl.run("apply", "-f", "pods.yaml")
        lines: list[str] = []
        for line in watch.stdout:
            seen = normal(line)
            if seen.startswith(("NAME", "web")) and seen not in lines:
                lines.append(seen)
            if "Running" in seen:
                break
    finally:
        watch.send_signal(signal.SIGINT)
        watch.wait(timeout=10)
        watch.stdout.close()
    early = [line.split()[2] for line in lines[1:-1]]
    assert early in (["Pending", "ContainerCreating"], ["ContainerCreating"], ["Pending"], [])
    return "$ kubectl get pods -w\n" + "\n".join((lines[0], lines[-1])) + "\n"


@pytest.mark.slow
@pytest.mark.kubectl
def test_the_recorded_kubectl_session_equals_the_golden_file(kubectl: Path, up: Up) -> None:
    typed = Kubectl(kubectl, up.directory, up.kubeconfig)
    text = _session(typed) + "\n" + _watched(typed)
    if "MOORAGE_UPDATE_GOLDEN" in os.environ:
        GOLDEN.write_text(text)
    assert text.splitlines() == GOLDEN.read_text().splitlines()


@pytest.mark.slow
@pytest.mark.kubectl
def test_every_pinned_kubectl_does_the_everyday_part(any_kubectl: Path, up: Up) -> None:
    typed = Kubectl(any_kubectl, up.directory, up.kubeconfig)
    assert typed.run("apply", "-f", "pods.yaml") == "pod/web created\npod/giant created\n"
    waited = typed.run("wait", "--for=condition=Ready", "pod/web", "--timeout=20s")
    assert waited == "pod/web condition met\n"
    assert typed.run("get", "pods", "-o", "name") == "pod/giant\npod/web\n"
    assert "0/3 nodes are available: 3 Insufficient cpu." in typed.run("describe", "pod", "giant")
    assert "created" not in typed.run("apply", "-f", "pods.yaml")
    assert 'pod "web" deleted' in typed.run("delete", "-f", "pods.yaml")
