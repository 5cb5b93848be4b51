"""kr8s, lightkube and kopf do what their own documentation begins with, against ``moorage up``.

One sandbox for all, a namespace for each; each is a program in a process of its own, as its users
start it, and what it prints is compared whole.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kubernetes
import pytest

HERE = Path(__file__).parent
SECONDS_MAX = 40
# Untyped, as its users see it.
kube: Any = kubernetes
KIND = ("kopf.dev", "v1")
PLURAL = "ephemeralvolumeclaims"


def run(program: str, *arguments: str, environment: dict[str, str]) -> list[list[Any]]:
    """Run a program and return the lines of JSON it prints."""
    done = subprocess.run(
        [sys.executable, str(HERE / program), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def until(found: Callable[[], Any], what: str) -> Any:
    """Wait until something is found, and return it."""
    end = time.monotonic() + SECONDS_MAX
    while not (answer := found()):
        assert time.monotonic() < end, f"no {what} within {SECONDS_MAX} s"
    return answer


@pytest.mark.slow
def test_kr8s(environment: dict[str, str]) -> None:
    assert run("hello_kr8s.py", environment=environment) == [
        ["user", "kubernetes-admin"],
        ["nodes", "node-01", "node-02", "node-03"],
        ["cordoned", True],
        ["cordoned", False],
        ["labelled", "my-pod"],
        ["watched", "ADDED", "my-pod", "Running"],
        ["exists", False],
        ["scaled", 3, True, 3],
    ]


@pytest.mark.slow
def test_lightkube(environment: dict[str, str], space: str) -> None:
    assert run("hello_lightkube.py", space, environment=environment) == [
        ["nodes", "node-01", "node-02", "node-03"],
        ["replaced", {"key1": "new value", "key2": "value2"}],
        ["patched", {"key1": "new value", "key2": "value2", "key3": "value3"}],
        ["without", {"key1": "new value", "key2": "value2"}],
        ["gone", 404, "NotFound"],
        ["applied", {"key1": "value1", "key2": "value2"}],
        ["applied", {"key2": "value2", "key3": "value3"}],
        ["ready", 2],
        ["pods", 2],
        ["generic", "ElasticQuota", {"cpu": "4"}],
    ]


@contextmanager
def operator(environment: dict[str, str], space: str, log: Path) -> Iterator[Callable[[], str]]:
    """Run kopf's operator; give what it has logged so far, and end it in good order."""
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", space]
    with (
        log.open("w") as output,
        subprocess.Popen(
            [*command, str(HERE / "ephemeral.py")],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as running,
    ):
        try:
            yield log.read_text
            running.terminate()
            assert running.wait(10) == 0
        finally:
            running.kill()


def define(api: Any) -> None:
    """Create what the operator needs: its kind, and a class whose claims are bound at once."""
    spec = {
        "scope": "Namespaced",
        "group": KIND[0],
        "names": {
            "kind": "EphemeralVolumeClaim",
            "plural": PLURAL,
            "singular": "ephemeralvolumeclaim",
            "shortNames": ["evcs", "evc"],
        },
        "versions": [{"name": KIND[1], "served": True, "storage": True, "schema": _SCHEMA}],
    }
    kube.client.ApiextensionsV1Api(api).create_custom_resource_definition(
        {"metadata": {"name": f"{PLURAL}.{KIND[0]}"}, "spec": spec}
    )
    kube.client.StorageV1Api(api).create_storage_class(
        {
            "metadata": {"name": "at-once"},
            "provisioner": "volumes.moorage.dev",
            "allowVolumeExpansion": True,
        }
    )


_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SCHEMA = {
    "openAPIV3Schema": {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}},
}


@pytest.mark.slow
def test_an_operator_of_kopf(
    api: Any, environment: dict[str, str], space: str, tmp_path: Path
) -> None:
    define(api)
    custom = kube.client.CustomObjectsApi(api)
    core = kube.client.CoreV1Api(api)
    mine: dict[str, Any] = {"metadata": {"name": "my-claim"}, "spec": {"size": "1G"}}
    mine |= {"apiVersion": "/".join(KIND), "kind": "EphemeralVolumeClaim"}
    where = (*KIND, space, PLURAL)

    def own() -> Any:
        found = custom.list_namespaced_custom_object(*where)["items"]
        return found[0] if found else None

    def handled(handler: str) -> Any:
        return own().get("status", {}).get(handler)

    def claim() -> Any:
        return core.read_namespaced_persistent_volume_claim("my-claim", space)

    with operator(environment, space, tmp_path / "log") as logged:
        custom.create_namespaced_custom_object(*where, mine)
        assert until(lambda: handled("create_fn"), "status") == {"pvc-name": "my-claim"}
        owner = claim().metadata.owner_references[0]
        assert (owner.kind, owner.uid) == ("EphemeralVolumeClaim", own()["metadata"]["uid"])
        assert own()["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
        until(lambda: claim().status.phase == "Bound", "volume")
        patch = {"spec": {"size": "2G"}, "metadata": {"labels": {"owner": "me"}}}
        custom.patch_namespaced_custom_object(*where, "my-claim", patch)
        assert until(lambda: handled("update_fn/spec.size"), "status") == {"size": "2G"}
        assert claim().spec.resources.requests == {"storage": "2G"}
        until(lambda: claim().metadata.labels == {"owner": "me"}, "label")
        about = "involvedObject.kind=EphemeralVolumeClaim,reason=Made"
        (event,) = until(
            lambda: core.list_namespaced_event(space, field_selector=about).items, "Event"
        )
        assert (event.message, event.type) == ("PVC child is created: my-claim", "Normal")
        custom.delete_namespaced_custom_object(*where, "my-claim")
        until(lambda: own() is None, "deletion")
        assert core.read_namespaced_config_map("my-claim-farewell", space)
        assert "ERROR" not in logged(), logged()
    # What it made goes with its owner.
    until(lambda: not core.list_namespaced_persistent_volume_claim(space).items, "deletion")
