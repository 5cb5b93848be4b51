"""What charts bring is installed by a real helm, and applied by a real kubectl.

The chart is ``shop``, beside this file: namespaced and cluster kinds, roles, a kind of its own,
hooks, volumes, and kinds that are only kept here. Helm comes in the package that kubectl comes in.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path

pytestmark = pytest.mark.slow

CHART = Path(__file__).parent / "shop"
Run = Callable[..., str]

# Applying these a second time changes nothing, but kubectl cannot know: it sends lists without a
# merge key, selectors of budgets and ``stringData`` whatever the cluster has.
ALWAYS_SENT = {
    "networkpolicy.networking.k8s.io/shop",
    "poddisruptionbudget.policy/shop",
    "secret/shop",
    "statefulset.apps/shop-db",
    "validatingwebhookconfiguration.admissionregistration.k8s.io/{space}-shop",
}
# Controllers write the status of these while the test looks on.
STATUS_GOES_ON = {
    "CronJob",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Job",
    "Pod",
    "PodDisruptionBudget",
    "StatefulSet",
}
WARNING = 'failed calling webhook "widgets.shop.example.com"'


@pytest.fixture
def program(environment: dict[str, str]) -> Run:
    """Run kubectl or helm, and return what it prints."""

    def run(name: str, *arguments: str) -> str:
        try:
            path = kubectl_path(RELEASES[0], program=name)
        except NoKubectlError as error:
            pytest.skip(str(error))
        done = subprocess.run(
            [str(path), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        # The one thing they may complain of, whoever prints it: helm prints it in quotes.
        lines = done.stderr.replace('\\"', '"').splitlines()
        complaints = [line for line in lines if WARNING not in line]
        assert not complaints, complaints
        return done.stdout

    return run


@pytest.mark.kubectl
def test_helm_installs_tests_upgrades_and_removes_a_chart(program: Run) -> None:
    def replicas() -> str:
        where = "jsonpath={.spec.replicas}/{.status.readyReplicas}"
        return program("kubectl", "get", "deployment", "shop", "-o", where)

    waiting = ("--wait", "--timeout", "40s")
    made = json.loads(program("helm", "install", "shop", str(CHART), *waiting, "-o", "json"))
    assert made["info"]["status"] == "deployed"
    # The hooks ran before and after it, and are gone as they asked to be.
    assert {each["name"]: each["last_run"]["phase"] for each in made["hooks"]} == {
        "shop-pre-install": "Succeeded",
        "shop-post-install": "Succeeded",
        "shop-test": "",
    }
    assert program("kubectl", "get", "jobs", "-o", "name") == ""
    assert "Phase:          Succeeded" in program("helm", "test", "shop", "--timeout", "40s")
    program("helm", "upgrade", "shop", str(CHART), "--set", "replicas=2", *waiting)
    assert replicas() == "2/2"
    program("helm", "rollback", "shop", "1", *waiting)
    assert replicas() == "1/1"
    history = json.loads(program("helm", "history", "shop", "-o", "json"))
    assert [each["status"] for each in history] == ["superseded", "superseded", "deployed"]
    program("helm", "uninstall", "shop", *waiting)
    left = program("kubectl", "get", "deployments,ingresses,cronjobs,widgets,roles", "-o", "name")
    assert left == ""


@pytest.mark.kubectl
def test_kubectl_applies_what_helm_renders_twice_and_deletes_it(
    program: Run, space: str, tmp_path: Path
) -> None:
    file = tmp_path / "rendered.yaml"
    file.write_text(program("helm", "template", "shop", str(CHART), "--namespace", space))
    definitions = str(CHART / "crds")
    program("kubectl", "apply", "--server-side", "--force-conflicts", "-f", definitions)
    program("kubectl", "wait", "--for=condition=Established", "-f", definitions)

    def apply(*more: str) -> dict[str, str]:
        said = program("kubectl", "apply", "-f", str(file), *more)
        return dict(line.rsplit(" ", 1) for line in said.splitlines())

    def versions() -> dict[str, Any]:
        found = json.loads(program("kubectl", "get", "-f", str(file), "-o", "json"))["items"]
        return {
            f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"]
            for each in found
            if each["kind"] not in STATUS_GOES_ON
        }

    first = apply()
    assert set(first.values()) == {"created"}
    assert len(first) == 22
    before = versions()
    sent = {each.format(space=space) for each in ALWAYS_SENT}
    assert apply() == {each: "configured" if each in sent else "unchanged" for each in first}
    assert versions() == before
    on_the_server = dict.fromkeys(first, "serverside-applied")
    assert apply("--server-side") == on_the_server
    before = versions()
    assert apply("--server-side") == on_the_server
    assert versions() == before
    assert program("kubectl", "delete", "-f", str(file)).count(" deleted") == len(first)
