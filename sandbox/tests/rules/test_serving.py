"""Rules on the wire: definitions that have them, and every call that writes an object under them.

The definition is made up, in the manner of projects that ship rules with theirs: a class with
parameters that are fixed once set, a choice of exactly one of several, bounds between fields.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from moorage.cel import runtime
from moorage_sandbox.rules import compiled
from sandbox.tests.apiserver.crd import DEFINITIONS
from sandbox.tests.apiserver.harness import JSON_PATCH, MERGE, Cluster
from sandbox.tests.rules.builders import COUNT, TEXT, listed, obj, rule, with_rules

POOLS = "/apis/fleet.example.com/v1/namespaces/default/pools"
APPLY = "application/apply-patch+yaml"

SPEC = obj(
    rule("self.min <= self.max", message="min must not be above max", fieldPath=".min"),
    rule(
        "has(self.zone) != has(self.region)",
        message="exactly one of zone and region must be set",
    ),
    rule("!has(oldSelf.className) || has(self.className)", message="className must stay"),
    className=with_rules(
        TEXT | {"maxLength": 20},
        rule("self == oldSelf", message="className is immutable", reason="FieldValueForbidden"),
    ),
    min=COUNT | {"default": 0},
    max=COUNT | {"default": 10},
    zone=TEXT,
    region=TEXT,
    size={"x-kubernetes-int-or-string": True},
    members=listed(
        "map",
        obj(
            rule(
                "self.weight >= oldSelf.weight",
                messageExpression="'weight of %s may not go below %d'.format([self.name, "
                "oldSelf.weight])",
            ),
            name=TEXT,
            weight=COUNT,
        ),
    ),
)
STATUS = obj(
    phase=with_rules(TEXT, rule("oldSelf != 'Done' || self == 'Done'", message="Done is final")),
    ready=COUNT,
)
ROOT = obj(
    rule(
        "!has(self.status) || !has(self.status.ready) || self.status.ready <= self.spec.max",
        message="more ready than wanted",
    ),
    rule("size(self.metadata.name) < 10", message="name must be short"),
    spec=SPEC,
    status=STATUS,
)


def definition(schema: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the definition of pools."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": copy.deepcopy(schema or ROOT)},
        "subresources": {"status": {}},
    }
    names = {"kind": "Pool", "plural": "pools", "singular": "pool"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "pools.fleet.example.com"},
        "spec": {
            "group": "fleet.example.com",
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def pool(name: str = "a", **spec: Any) -> dict[str, Any]:
    """Return a pool in a zone unless told otherwise."""
    if "region" not in spec:
        spec.setdefault("zone", "z")
    return {
        "apiVersion": "fleet.example.com/v1",
        "kind": "Pool",
        "metadata": {"name": name},
        "spec": spec,
    }


async def cluster_with_pool(**spec: Any) -> Cluster:
    """Return a cluster that serves pools and has one."""
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    await cluster.ok("POST", POOLS, pool(**spec))
    return cluster


def told(body: dict[str, Any]) -> list[str]:
    """Return the causes of a refusal."""
    return [f"{each['field']}: {each['message']}" for each in body["details"]["causes"]]


async def test_an_object_that_breaks_a_rule_is_refused_as_by_a_real_server():
    cluster = await cluster_with_pool()
    code, body = await cluster.call("POST", POOLS, pool("b", min=11))
    assert code == 422
    assert body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Pool.fleet.example.com "b" is invalid: spec.min: Invalid value: "object": '
        "min must not be above max",
        "reason": "Invalid",
        "details": {
            "name": "b",
            "group": "fleet.example.com",
            "kind": "Pool",
            "causes": [
                {
                    "reason": "FieldValueInvalid",
                    "message": 'Invalid value: "object": min must not be above max',
                    "field": "spec.min",
                }
            ],
        },
        "code": 422,
    }
    assert (await cluster.call("GET", f"{POOLS}/b"))[0] == 404


@pytest.mark.parametrize(
    ("sent", "causes"),
    [
        pytest.param(pool("b"), [], id="defaults are rules' values, too"),
        pytest.param(
            pool("b", min=3, max=2, region="r", zone="z"),
            [
                'spec.min: Invalid value: "object": min must not be above max',
                'spec: Invalid value: "object": exactly one of zone and region must be set',
            ],
            id="all broken rules are told",
        ),
        pytest.param(
            pool("a-very-long-name"),
            ['<nil>: Invalid value: "object": name must be short'],
            id="a rule of the whole object",
        ),
        pytest.param(
            pool("b", className="x" * 21, min=11),
            [
                "spec.className: Too long: may not be more than 20 bytes",
                "<nil>: Invalid value: null: some validation rules were not checked because the "
                "object was invalid; correct the existing errors to complete validation",
            ],
            id="rules wait until the schema is kept",
        ),
    ],
)
async def test_an_object_is_created(sent: dict[str, Any], causes: list[str]):
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    for query in ({"dryRun": "All"}, {}):
        code, body = await cluster.call("POST", POOLS, sent, query=query)
        assert (code, told(body) if code == 422 else []) == (422 if causes else 201, causes)


FIXED = ["spec.className: Forbidden: className is immutable"]
WRITES = [
    pytest.param("PUT", None, id="put"),
    pytest.param("PATCH", MERGE, id="merge patch"),
    pytest.param("PATCH", JSON_PATCH, id="JSON patch"),
    pytest.param("PATCH", APPLY, id="server-side apply"),
]


async def write(cluster: Cluster, method: str, content_type: str | None, **spec: Any) -> Any:
    """Change the pool ``a`` by one of the ways to do so."""
    body: Any = {"spec": spec}
    query = {}
    if method == "PUT":
        body = await cluster.ok("GET", f"{POOLS}/a")
        body["spec"] |= spec
    elif content_type == JSON_PATCH:
        body = [{"op": "add", "path": f"/spec/{key}", "value": spec[key]} for key in spec]
    elif content_type == APPLY:
        body = pool(**spec)
        query = {"fieldManager": "me", "force": "true"}
    headers = {} if content_type is None else {"content_type": content_type}
    return await cluster.call(method, f"{POOLS}/a", body, query=query, **headers)


@pytest.mark.parametrize(("method", "content_type"), WRITES)
async def test_every_way_to_change_an_object_is_held_to_the_rules(
    method: str, content_type: str | None
):
    cluster = await cluster_with_pool(className="gold")
    code, body = await write(cluster, method, content_type, className="silver")
    assert (code, told(body)) == (422, FIXED)
    code, _ = await write(cluster, method, content_type, className="gold", min=10)
    assert code == 200
    code, body = await write(cluster, method, content_type, className="gold", min=11)
    assert (code, told(body)) == (
        422,
        ['spec.min: Invalid value: "object": min must not be above max'],
    )


async def test_items_are_compared_by_their_key():
    members = [{"name": "a", "weight": 1}, {"name": "b", "weight": 5}]
    cluster = await cluster_with_pool(members=members)
    changed = [{"name": "c", "weight": 0}, {"name": "b", "weight": 4}, {"name": "a", "weight": 2}]
    code, body = await write(cluster, "PATCH", MERGE, members=changed)
    assert (code, told(body)) == (
        422,
        ['spec.members[1]: Invalid value: "object": weight of b may not go below 5'],
    )


async def test_a_status_is_held_to_the_rules():
    cluster = await cluster_with_pool(max=2)

    async def status(**fields: Any) -> Any:
        body = {"status": fields}
        return await cluster.call("PATCH", f"{POOLS}/a/status", body, content_type=MERGE)

    code, body = await status(ready=3)
    assert (code, told(body)) == (422, ['<nil>: Invalid value: "object": more ready than wanted'])
    assert (await status(ready=2, phase="Done"))[0] == 200
    code, body = await status(phase="Open")
    assert (code, told(body)) == (422, ['status.phase: Invalid value: "string": Done is final'])
    code, body = await write(cluster, "PATCH", MERGE, max=1)
    assert (code, told(body)) == (422, ['<nil>: Invalid value: "object": more ready than wanted'])


async def test_an_object_older_than_its_rules_may_change_in_other_fields():
    cluster = Cluster()
    before = copy.deepcopy(ROOT)
    del before["properties"]["spec"]["properties"]["className"]["x-kubernetes-validations"]
    del before["properties"]["spec"]["x-kubernetes-validations"]
    await cluster.ok("POST", DEFINITIONS, definition(before))
    await cluster.ok("POST", POOLS, pool(min=11))
    stored = await cluster.ok("GET", f"{DEFINITIONS}/pools.fleet.example.com")
    stored["spec"] = definition()["spec"]
    await cluster.ok("PUT", f"{DEFINITIONS}/pools.fleet.example.com", stored)
    labels = {"metadata": {"labels": {"a": "b"}}}
    await cluster.ok("PATCH", f"{POOLS}/a", labels, content_type=MERGE)
    code, body = await write(cluster, "PATCH", MERGE, className="gold")
    assert (code, told(body)) == (
        422,
        ['spec.min: Invalid value: "object": min must not be above max'],
    )
    assert (await write(cluster, "PATCH", MERGE, max=11))[0] == 200


async def test_a_definition_with_a_faulty_rule_is_refused_on_create_and_update():
    cluster = Cluster()
    faulty = definition(obj(spec=obj("self.nope > 1", a=COUNT)))
    where = (
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    )
    message = (
        'Invalid value: "self.nope > 1": compilation failed: '
        "ERROR: <input>:1:5: undefined field 'nope'\n | self.nope > 1\n | ....^"
    )
    code, body = await cluster.call("POST", DEFINITIONS, faulty)
    assert (code, told(body)) == (422, [f"{where}: {message}"])
    await cluster.ok("POST", DEFINITIONS, definition())
    stored = await cluster.ok("GET", f"{DEFINITIONS}/pools.fleet.example.com")
    stored["spec"] = faulty["spec"]
    code, body = await cluster.call("PUT", f"{DEFINITIONS}/pools.fleet.example.com", stored)
    assert (code, told(body)) == (422, [f"{where}: {message}"])


async def test_a_default_is_held_to_the_rules():
    cluster = Cluster()
    count = with_rules(COUNT, rule("self > 3", message="more"))
    sent = definition(obj(spec=obj(a=count | {"default": 3})))
    code, body = await cluster.call("POST", DEFINITIONS, sent)
    assert (code, told(body)) == (
        422,
        [
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].default: "
            'Invalid value: "integer": more'
        ],
    )
    await cluster.ok("POST", DEFINITIONS, definition(obj(spec=obj(a=count | {"default": 4}))))


async def test_rules_with_unsupported_functions_are_stored_with_a_warning():
    cluster = Cluster()
    schema = obj(spec=obj("self.a > 1", "self.all(k, v, true)", a=COUNT, u=TEXT))
    reply = await cluster.reply("POST", DEFINITIONS, definition(schema))
    assert reply.status == 201
    assert reply.headers == (
        (
            "Warning",
            '299 - "spec.versions[0].schema.openAPIV3Schema.properties[spec].'
            "x-kubernetes-validations[1].rule: stored and not evaluated: "
            "this server's CEL has no function all with these arguments\"",
        ),
    )
    code, body = await cluster.call("POST", POOLS, pool(a=1, u="no"))
    assert (code, told(body)) == (
        422,
        ['spec: Invalid value: "object": failed rule: self.a > 1'],
    )
    await cluster.ok("POST", POOLS, pool(a=2, u="no"))


@pytest.fixture
def no_runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take the CEL runtime away."""
    kept = (runtime.is_installed, runtime._runtime, compiled._compiled)
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    for each in kept:
        each.cache_clear()
    yield
    for each in kept:
        each.cache_clear()


@pytest.mark.usefixtures("no_runtime")
async def test_without_the_runtime_rules_are_kept_with_a_warning():
    schema = obj(spec=obj("self.a > 1", a=COUNT))
    cluster = Cluster()
    reply = await cluster.reply("POST", DEFINITIONS, definition(schema))
    assert reply.status == 201
    assert reply.headers == (
        (
            "Warning",
            '299 - "spec.versions[0].schema.openAPIV3Schema: x-kubernetes-validations of spec '
            'are stored and not evaluated: this server has no CEL"',
        ),
    )
    assert isinstance(reply.body, bytes)
    stored = json.loads(reply.body)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert stored == schema
    await cluster.ok("POST", POOLS, pool(a=1))


def test_the_runtime_is_not_imported_without_rules():
    program = (
        "import sys\n"
        "from sandbox.tests.apiserver.harness import Cluster\n"
        "Cluster()\n"
        "print('cel_expr_python' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"
