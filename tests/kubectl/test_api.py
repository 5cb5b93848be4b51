"""What kubectl does with custom resources, server-side apply, scale, quotas and metadata.

A real kubectl talks to a server in this process, over plain HTTP on loopback; the steps are in
order, and each says what the output must hold. The newest version does them all, older ones those
that depend most on the version: discovery, explain, and apply.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.crd import car, definition
from tests.kubectl.install import RELEASES

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "nginx:1", ports: [{containerPort: 80}]}]
"""
LIMITS = """
apiVersion: v1
kind: LimitRange
metadata: {name: sizes}
spec:
  limits: [{type: Container, defaultRequest: {cpu: 100m}, default: {cpu: 200m}}]
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few}
spec: {hard: {pods: "1", requests.cpu: "1"}}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: main, image: "nginx:1"}]}
"""

# What is typed, whether it succeeds, and what the output holds.
STEPS = (
    ("apply -f crd.json", True, ("cars.example.com created",)),
    (
        "wait --for=condition=Established crd/cars.example.com --timeout=9s",
        True,
        ("condition met",),
    ),
    ("api-resources --api-group=example.com", True, ("cars", "cr", "example.com/v1")),
    ("explain car.spec.color", True, ("FIELD: color <string>", "red", "The paint.")),
    ("explain podgroups.scheduling.x-k8s.io.spec.minMember", True, ("have to fit together",)),
    ("apply -f car.json", True, ("car.example.com/a created",)),
    ("apply -f car.json", True, ("car.example.com/a unchanged",)),
    ("get cr", True, ("NAME   COLOR\na      red",)),
    ("get all", True, ("car.example.com/a",)),
    ("apply -f wrong.json", False, ("should be greater than or equal to 3",)),
    ("apply -f misspelt.json", False, ('strict decoding error: unknown field "spec.colour"',)),
    (
        "apply -f odd.json",
        False,
        ('The Car "a" is invalid: spec: Invalid value: "object": only red cars are odd',),
    ),
    ("apply -f faulty.json", False, ("<input>:1:29: undefined field 'colour'",)),
    ("scale car a --replicas=3", True, ("car.example.com/a scaled",)),
    ('patch car a --type=merge -p {"spec":{"color":"blue"}}', True, ("patched",)),
    ("apply -f car.json", True, ("configured",)),
    ("apply --server-side --dry-run=server -f car.json", True, ("(server dry run)",)),
    ("apply --server-side -f car.json", True, ("serverside-applied",)),
    ("label car a size=big", True, ("labeled",)),
    ("annotate car a note=hello", True, ("annotated",)),
    ("delete car a", True, ('"a" deleted',)),
    ("apply -f web.yaml", True, ("deployment.apps/web created",)),
    ("scale deployment web --replicas=5", True, ("deployment.apps/web scaled",)),
    ("get deployment web -o jsonpath={.spec.replicas}", True, ("5",)),
    # Client-side apply had set the replicas, so kubectl's own apply on the server may, too.
    ("apply --server-side -f web.yaml", True, ("serverside-applied",)),
    ("get deployment web -o jsonpath={.spec.replicas}", True, ("2",)),
    ("scale deployment web --replicas=7", True, ("scaled",)),
    (
        "apply --server-side --field-manager=ci -f web.yaml",
        False,
        ("Apply failed with 1 conflict", 'conflict with "kubectl" with subresource "scale"'),
    ),
    ("apply --server-side --field-manager=ci --force-conflicts -f web.yaml", True, ("applied",)),
    ("get deployment web -o yaml --show-managed-fields", True, ("manager: ci", "f:replicas: {}")),
    ("diff -f web.yaml", True, ()),
    ("delete deployment web", True, ("deleted",)),
    ("apply -f limits.yaml", True, ("sizes created", "few created", "pod/a created")),
    ("get quota", True, ("pods: 1/1, requests.cpu: 100m/1",)),
    ("describe quota few", True, ("pods", "requests.cpu  100m  1")),
    ("describe limits sizes", True, ("Container   cpu",)),
    ("run b --image=nginx", False, ('pods "b" is forbidden: exceeded quota: few',)),
    ("delete pods --all --wait=false", True, ('pod "a" deleted',)),
    ("get quota few -o jsonpath={.status.used.pods}", True, ("0",)),
    ("delete crd cars.example.com", True, ("deleted",)),
    ("get cars", False, ("the server",)),
)


# Steps an older kubectl does.
OLDER = 13


class Everybody:
    """Takes everybody for the administrator."""

    def user(self, headers: object, certificate: object) -> User:
        return User("kubernetes-admin", ("system:masters",))


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    columns = [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}]
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    crd = definition(additionalPrinterColumns=columns, subresources={"status": {}, "scale": paths})
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["color"]["description"] = "The paint."
    rule = "self.wheels % 2 == 0 || self.color == 'red'"
    rules = [{"rule": rule, "message": "only red cars are odd"}]
    schema["properties"]["spec"]["x-kubernetes-validations"] = rules
    faulty = json.loads(json.dumps(crd).replace("self.color", "self.colour"))
    for name, obj in {
        "crd": crd,
        "faulty": faulty,
        "car": car(),
        "odd": car(color="blue", wheels=5),
        "wrong": car(wheels=1),
        "misspelt": car(colour="x"),
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(obj))
    (tmp_path / "web.yaml").write_text(DEPLOYMENT)
    (tmp_path / "limits.yaml").write_text(LIMITS)
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_kubectl_accepts_discovery_and_openapi(any_kubectl: Path, manifests: Path):
    newest = RELEASES[0].version in str(any_kubectl)
    api = ApiServer(served_kinds(), clock=SystemClock(), streams=Streams(1))
    bootstrap(api)
    server = HttpServer(api, Everybody(), None)  # type: ignore[arg-type]
    port = await server.start()
    try:
        for typed, right, held in STEPS if newest else STEPS[:OLDER]:
            code, text = await _run(any_kubectl, port, manifests, typed)
            assert (code == 0) is right, f"{typed}: {text}"
            for each in held:
                assert each in text, f"{typed}: {text}"
    finally:
        await server.stop()


async def _run(kubectl: Path, port: int, folder: Path, typed: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        str(kubectl),
        f"--server=http://127.0.0.1:{port}",
        *typed.split(),
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()
