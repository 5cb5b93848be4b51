"""The pictures of the page in the documents, of a cluster that has something to show.

``make test-page PAGE_IMAGES=docs/images`` writes them; otherwise they are taken and thrown away.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.tests.sandbox.process import Up
from tests.browser.acting import hold, pod, settle, typed
from tests.browser.conftest import logged_in

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

CONFIG = Path(__file__).resolve().parents[2] / "examples" / "profiles" / "coscheduling.yaml"
GENERAL = "cpu=8,memory=32Gi,count=30"
GPU = "cpu=32,memory=256Gi,gpu=8,taint=gpu=yes:NoSchedule,count=6"
# Namespace, name, replicas, requests; the ones that take whole nodes come first.
WORKLOADS = (
    ("search", "cache", 4, {"cpu": "500m", "memory": "31Gi"}),
    ("training", "notebook", 11, {"cpu": "8", "memory": "60Gi", "nvidia.com/gpu": "3"}),
    ("search", "index", 16, {"cpu": "3", "memory": "10Gi"}),
    ("shop", "web", 56, {"cpu": "1", "memory": "1Gi"}),
    ("payments", "ledger", 14, {"cpu": "2", "memory": "6Gi"}),
    ("batch", "crunch", 34, {"cpu": "1500m", "memory": "1Gi"}),
    ("shop", "cart", 30, {"cpu": "500m", "memory": "512Mi"}),
)
GROUP_OF = "scheduling.x-k8s.io/pod-group"


def deployment(namespace: str, name: str, replicas: int, requests: dict[str, str]) -> Any:
    spec: dict[str, Any] = {}
    bounds = {"requests": requests}
    if gpus := requests.get("nvidia.com/gpu"):
        bounds["limits"] = {"nvidia.com/gpu": gpus}
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    spec["containers"] = [{"name": "main", "image": "nginx", "resources": bounds}]
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def waiting() -> list[Any]:
    """Return pods that wait: held by a gate, without a node to select, and as a group."""
    held = json.loads(pod("report", schedulingGates=[{"name": "example.com/approval"}]))
    picky = [json.loads(pod(f"fast-{n}", nodeSelector={"disk": "nvme"})) for n in (1, 2)]
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
    name = {"name": "train", "namespace": "default"}
    members = [json.loads(pod(f"train-{n}", cpu="30")) for n in range(8)]
    for each in members:
        each["metadata"]["labels"] = {GROUP_OF: "train"}
    return [held, *picky, {**group, "metadata": name, "spec": {"minMember": 8}}, *members]


@pytest.fixture(scope="module")
def context(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser that looks at a cluster with several teams, which is rather full."""
    words = ("--config", str(CONFIG), "--shape", GENERAL, "--shape", GPU, "--seed", "7")
    with Up(tmp_path_factory.mktemp("pictures"), *words) as up, logged_in(chromium, up) as opened:
        names = sorted({namespace for namespace, *_ in WORKLOADS})
        teams = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in names]
        for items in (teams, *([deployment(*each)] for each in WORKLOADS), waiting()):
            manifest = {"apiVersion": "v1", "kind": "List", "items": items}
            typed(up, "apply", "-f", "-", stdin=json.dumps(manifest))
            typed(up, "wait", "--for=settled")
        yield opened


SHOTS = (
    ("page-cluster", "cluster?node=node-12", "light"),
    ("page-overview", "overview", "light"),
    ("page-queue", "queue", "light"),
    ("page-pod", "pod/default/giant", "light"),
    ("page-decisions", "decisions", "dark"),
)


@pytest.mark.parametrize(("name", "view", "scheme"), SHOTS)
def test_pictures_of_the_views_are_taken(
    context: Any, tmp_path: Path, name: str, view: str, scheme: str
) -> None:
    folder = os.environ.get("PAGE_IMAGES", "")
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{context.moorage_url}/{view}")
    settle(page)
    hold(page)
    path = (Path(folder) if folder else tmp_path) / f"{name}.png"
    page.screenshot(path=str(path))
    assert path.read_bytes().startswith(b"\x89PNG")
    page.close()
