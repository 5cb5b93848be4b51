"""A fuzzer of sizes: calls drawn from a seed that send or read as much as the server allows.

Drawn are the kind, the list or map that is made long, its length, the verb, the type of the patch,
the form of body and answer, selectors, and how many objects a call reads or deletes. Each call
brings what it needs, so it can be made alone, by its number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from moorage.base.rng import Random, Streams
from moorage.kinds import all_kinds
from moorage.kinds.facts import Field, is_built_in, kind_definition
from moorage.kinds.facts import definition as definition_named
from moorage.kinds.served import ServedKind
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from sandbox.tests.apiserver.crd import DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import JSON_PATCH, MERGE, STRATEGIC, pod

JSON = "application/json"
YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
FORMS = (JSON, YAML, PROTOBUF, TABLE, METADATA)
BODY_MAX = 3_000_000
COUNTS = (100, 1_000, 5_000, 20_000)
NAMESPACE = "sizes"
DEPTH_MAX = 5


class Sent(NamedTuple):
    """One call as it is sent."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON


class SizedCall(NamedTuple):
    """One call, what it is in words, and the calls that bring what it needs."""

    words: str
    call: Sent
    before: tuple[Sent, ...] = ()


def encoded(value: Any) -> bytes:
    """Return JSON without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()


def collection(api_version: str, plural: str, namespaced: bool = True) -> str:
    """Return the path of all objects of a resource in the namespace of the fuzzer."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/{NAMESPACE}/{plural}" if namespaced else f"{root}/{plural}"


def sized_call(seed: int, number: int) -> SizedCall:
    """Return one call of a seed by its number."""
    rng = Streams(seed).stream(f"sizes/{number}")
    return rng.choice(_DRAWS)(rng)


# What can be made long, of objects that are accepted: (kind, path of the list or map, one element).
_Element = Callable[[int], Any]
_VALID: list[tuple[str, str, str, Any, _Element]] = [
    ("v1", "configmaps", "data", {}, lambda n: (f"k{n}", "v")),
    ("v1", "configmaps", "data", {}, lambda n: (f"k{n}", "v" * 100)),
    ("v1", "configmaps", "metadata.annotations", {}, lambda n: (f"a{n}", "v")),
    ("v1", "configmaps", "metadata.labels", {}, lambda n: (f"l{n}", "v")),
    ("v1", "configmaps", "metadata.finalizers", [], lambda n: f"example.com/f{n}"),
    (
        "v1",
        "configmaps",
        "metadata.ownerReferences",
        [],
        lambda n: {"apiVersion": "v1", "kind": "Pod", "name": f"o{n}", "uid": f"u{n}"},
    ),
    ("v1", "secrets", "data", {}, lambda n: (f"k{n}", "YQ==")),
    ("v1", "secrets", "stringData", {}, lambda n: (f"k{n}", "a")),
    ("v1", "pods", "spec.containers.0.env", [], lambda n: {"name": f"E{n}", "value": "v"}),
    ("v1", "pods", "spec.containers.0.args", [], lambda n: f"a{n}"),
    ("v1", "pods", "spec.containers.0.ports", [], lambda n: {"containerPort": n % 60_000 + 1}),
    ("v1", "pods", "spec.tolerations", [], lambda n: {"key": f"k{n}", "operator": "Exists"}),
    ("v1", "pods", "spec.nodeSelector", {}, lambda n: (f"k{n}", "v")),
    ("v1", "pods", "spec.schedulingGates", [], lambda n: {"name": f"g{n}"}),
    ("v1", "pods", "spec.imagePullSecrets", [], lambda n: {"name": f"s{n}"}),
    ("v1", "pods", "spec.volumes", [], lambda n: {"name": f"v{n}", "emptyDir": {}}),
    ("v1", "pods", "spec.hostAliases", [], lambda n: {"ip": "10.0.0.1", "hostnames": [f"h{n}"]}),
    (
        "v1",
        "pods",
        "spec.topologySpreadConstraints",
        [],
        lambda n: {"maxSkew": 1, "topologyKey": f"k{n}", "whenUnsatisfiable": "DoNotSchedule"},
    ),
    (
        "v1",
        "pods",
        "spec.containers",
        [],
        lambda n: {"name": f"c{n}", "image": "i", "resources": {"requests": {"cpu": "1m"}}},
    ),
    ("v1", "nodes", "spec.taints", [], lambda n: {"key": f"k{n}", "effect": "NoSchedule"}),
    ("v1", "nodes", "status.images", [], lambda n: {"names": [f"i{n}"], "sizeBytes": n}),
    ("v1", "nodes", "status.capacity", {}, lambda n: (f"example.com/r{n}", "1")),
    ("v1", "services", "spec.ports", [], lambda n: {"name": f"p{n}", "port": n % 60_000 + 1}),
    ("v1", "services", "spec.selector", {}, lambda n: (f"k{n}", "v")),
    (
        "v1",
        "endpoints",
        "subsets",
        [],
        lambda n: {"addresses": [{"ip": f"10.1.{n // 250 % 250}.{n % 250}"}]},
    ),
    ("v1", "resourcequotas", "spec.hard", {}, lambda n: (f"count/r{n}.example.com", "1")),
    ("v1", "limitranges", "spec.limits", [], lambda n: {"type": "Container", "max": {"cpu": n}}),
    (
        "apps/v1",
        "deployments",
        "spec.template.spec.containers.0.env",
        [],
        lambda n: {"name": f"E{n}", "value": "v"},
    ),
    ("apps/v1", "deployments", "spec.selector.matchLabels", {}, lambda n: (f"k{n}", "v")),
    (
        "discovery.k8s.io/v1",
        "endpointslices",
        "endpoints",
        [],
        lambda n: {"addresses": [f"10.1.{n // 250 % 250}.{n % 250}"]},
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "roles",
        "rules",
        [],
        lambda n: {"apiGroups": [f"g{n}"], "resources": ["r"], "verbs": ["get"]},
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "rolebindings",
        "subjects",
        [],
        lambda n: {"kind": "User", "name": f"u{n}", "apiGroup": "rbac.authorization.k8s.io"},
    ),
    (
        "networking.k8s.io/v1",
        "networkpolicies",
        "spec.ingress",
        [],
        lambda n: {"from": [{"ipBlock": {"cidr": f"10.{n % 250}.0.0/16"}}]},
    ),
    ("networking.k8s.io/v1", "ingresses", "spec.rules", [], lambda n: {"host": f"h{n}.example"}),
    ("example.com/v1", "cars", "spec.tags", [], lambda n: f"t{n}"),
    ("example.com/v1", "cars", "spec.extras", {}, lambda n: (f"k{n}", n)),
    ("example.com/v1", "cars", "metadata.annotations", {}, lambda n: (f"a{n}", "v")),
]
_KINDS: dict[tuple[str, str], ServedKind] = {
    (each.resource.api_version, each.resource.plural): each for each in all_kinds()
}
_LABEL: dict[str, Any] = {"matchLabels": {"a": "b"}}
_TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
_BASES: dict[str, Callable[[], dict[str, Any]]] = {
    "pods": lambda: {"spec": pod()["spec"]},
    "deployments": lambda: {"spec": {"selector": _LABEL, "template": _TEMPLATE}},
    "replicasets": lambda: {"spec": {"selector": _LABEL, "template": _TEMPLATE}},
    "daemonsets": lambda: {"spec": {"selector": _LABEL, "template": _TEMPLATE}},
    "statefulsets": lambda: {"spec": {"selector": _LABEL, "template": _TEMPLATE}},
    "jobs": lambda: {"spec": {"template": {"spec": pod()["spec"] | {"restartPolicy": "Never"}}}},
    "services": lambda: {"spec": {"ports": [{"port": 1}]}},
    "endpointslices": lambda: {"addressType": "IPv4"},
    "cars": lambda: {"spec": car(color="red")["spec"]},
    "networkpolicies": lambda: {"spec": {"podSelector": {}}},
    "rolebindings": lambda: {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
    },
}


def _base(plural: str, name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(_BASES.get(plural, dict)()))
    return made | {"metadata": {"name": name, "labels": {"a": "b"}}}


def _put(obj: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Put a value at a path of an object, in place; merge maps."""
    *parents, last = path.split(".")
    holder: Any = obj
    for key in parents:
        if isinstance(holder, list):
            if not holder:
                holder.append({})
            holder = holder[0]
        else:
            holder = holder.setdefault(key, {})
    if isinstance(holder, list):
        holder = holder[0]
    if isinstance(value, dict) and isinstance(holder.get(last), dict):
        holder[last] |= value
    else:
        holder[last] = value
    return obj


def _long(empty: Any, element: _Element, count: int) -> Any:
    elements = [element(n) for n in range(count)]
    return dict(elements) if isinstance(empty, dict) else elements


def _namespaced(api_version: str, plural: str) -> bool:
    known = _KINDS.get((api_version, plural))
    return known.resource.namespaced if known else True


def _count(rng: Random, unit: Any) -> int:
    most = BODY_MAX // (len(encoded(unit)) + 1)
    return min(rng.choice(COUNTS) * rng.choice((1, 1, 3)), most)


def _long_valid(rng: Random) -> SizedCall:
    """A write of an object with one long list or map, which most often is accepted."""
    api_version, plural, path, empty, element = rng.choice(_VALID)
    count = _count(rng, element(10_000))
    obj = _put(_base(plural, "a"), path, _long(empty, element, count))
    words = f"{plural} {path} x {count}"
    return _write(
        rng, words, collection(api_version, plural, _namespaced(api_version, plural)), obj
    )


def _long_any(rng: Random) -> SizedCall:
    """A write of any kind with any one list or map long, which most often is refused."""
    kind = _KINDS[rng.choice(sorted(_KINDS))]
    while not is_built_in(kind.resource):
        kind = _KINDS[rng.choice(sorted(_KINDS))]
    resource = kind.resource
    path, element = _any_list(rng, kind)
    count = _count(rng, element(10_000))
    value = _long({} if isinstance(element(0), tuple) else [], element, count)
    obj = _put_new(_base(resource.plural, "a"), path, value)
    words = f"{resource.plural} {'.'.join(path)} x {count}"
    where = collection(resource.api_version, resource.plural, resource.namespaced)
    return _write(rng, words, where, obj)


def _put_new(obj: dict[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """Put a value at a path; a name in brackets is a list of one."""
    holder = obj
    for key in path[:-1]:
        name = key.removesuffix("[]")
        inside: Any = holder.get(name)
        if key.endswith("[]"):
            if not isinstance(inside, list) or not inside:
                inside = holder[name] = [{}]
            holder = inside[0]
        else:
            if not isinstance(inside, dict):
                inside = holder[name] = {}
            holder = inside
    holder[path[-1]] = value
    return obj


def _any_list(rng: Random, kind: ServedKind) -> tuple[list[str], _Element]:
    """Walk from a kind to a list or map inside it; return the path and what makes an element."""
    while True:
        fields = kind_definition(kind.resource).fields
        path: list[str] = []
        for _ in range(DEPTH_MAX):
            names = sorted(name for name, each in fields.items() if _goes_on(each))
            if not names:
                break
            name = rng.choice(names)
            field = fields[name]
            if field.shape in ("list", "map") and (
                field.element.shape == "scalar" or rng.random() < 0.6
            ):
                return [*path, name], _elements(field)
            if field.shape == "map":
                break
            path.append(name + ("[]" if field.shape == "list" else ""))
            fields = definition_named((field.element if field.list else field).name).fields


def _goes_on(field: Field) -> bool:
    if field.shape == "object":
        return True
    return field.shape in ("list", "map") and field.element.shape in ("scalar", "object")


def _elements(field: Field) -> _Element:
    def element(n: int) -> Any:
        value = _value(field.element, n, 2)
        return (f"k{n}", value) if field.shape == "map" else value

    return element


def _value(field: Field, n: int, depth: int) -> Any:
    """Return a small value of a type, different for each number."""
    if field.shape == "list":
        return [_value(field.element, n, depth - 1)] if depth else []
    if field.shape == "map":
        return {f"k{n}": _value(field.element, n, depth - 1)} if depth else {}
    if field.shape == "scalar":
        scalars: dict[str, Any] = {
            "string": f"a{n}",
            "bytes": "YQ==",
            "boolean": True,
            "Time": "2026-01-01T00:00:00Z",
            "MicroTime": "2026-01-01T00:00:00.000000Z",
            "Quantity": "1",
            "FieldsV1": {},
        }
        return scalars.get(field.name, n % 60_000)
    if not depth:
        return {}
    fields = definition_named(field.name).fields
    plain = [name for name, each in sorted(fields.items()) if each.shape == "scalar"][:3]
    return {name: _value(fields[name], n, depth - 1) for name in plain}


def _write(rng: Random, words: str, where: str, obj: dict[str, Any]) -> SizedCall:
    """Send a large object as a create, a replace, or a patch of one of the types."""
    body, name = encoded(obj), obj["metadata"]["name"]
    what = rng.choice(("POST", "POST", "PUT", "merge", "strategic", "apply", "json", "delete"))
    dry = rng.choice(("", "", "dryRun=All"))
    after = f"?{dry}" if dry else ""
    accept = rng.choice((JSON, JSON, *FORMS))
    first = Sent("POST", where, encoded(_base(where.rpartition("/")[2], name)))
    large = Sent("POST", where, body)
    said = f"{what} {words} {dry} as {accept[:40]}"
    if what == "POST":
        form = rng.choice((JSON, JSON, YAML))
        return SizedCall(said, Sent("POST", where + after, body, form, accept))
    if what == "PUT":
        call = Sent("PUT", f"{where}/{name}{after}", body, JSON, accept)
        return SizedCall(said, call, (rng.choice((first, large)),))
    if what == "delete":
        policy = rng.choice(("", "?propagationPolicy=Foreground", "?propagationPolicy=Orphan"))
        return SizedCall(
            said + policy, Sent("DELETE", f"{where}/{name}{policy}", accept=accept), (large,)
        )
    if what == "json":
        copied = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]
        copied += [{"op": "test", "path": "/metadata/name", "value": name}] * rng.choice((1, 5_000))
        call = Sent("PATCH", f"{where}/{name}{after}", encoded(copied), JSON_PATCH, accept)
        return SizedCall(said, call, (large,))
    if what == "apply":
        api = where.split("/namespaces", maxsplit=1)[0].removeprefix("/apis/").removeprefix("/api/")
        query = "?fieldManager=m&force=true" + (f"&{dry}" if dry else "")
        config = encoded(obj)
        call = Sent("PATCH", f"{where}/{name}{query}", config, APPLY, accept)
        return SizedCall(f"{said} {api}", call, rng.choice(((), (large,), (call,))))
    form = MERGE if what == "merge" else STRATEGIC
    other = _smaller(rng, obj)
    call = Sent("PATCH", f"{where}/{name}{after}", encoded(other), form, accept)
    return SizedCall(said, call, (rng.choice((first, large)),))


def _smaller(rng: Random, obj: dict[str, Any]) -> dict[str, Any]:
    """Return a patch of an object: the whole, or one label."""
    return rng.choice((obj, {"metadata": {"labels": {"x": "y"}}}))


def _read(rng: Random) -> SizedCall:
    """A list, a watch or a get of many or large objects, in any form, perhaps with selectors."""
    plural, api_version, many = rng.choice(
        (
            ("pods", "v1", "default"),
            ("configmaps", "v1", "default"),
            ("cars", "example.com/v1", "default"),
            ("cars", "example.com/v2", "default"),
            ("events", "v1", "default"),
            ("events", "events.k8s.io/v1", "default"),
            ("secrets", "v1", "large"),
            ("configmaps", "v1", "large"),
            ("cars", "example.com/v1", "large"),
            ("cars", "example.com/v2", "large"),
            ("pods", "v1", "large"),
            ("horizontalpodautoscalers", "autoscaling/v1", "default"),
            ("nodes", "v1", ""),
        )
    )
    path = collection(api_version, plural).replace(NAMESPACE, many)
    if not many or rng.random() < 0.3:
        path = collection(api_version, plural, namespaced=False)
    query = rng.choice(("", "", "limit=100", "limit=5000", "watch=1&timeoutSeconds=1"))
    if query.startswith("watch") and rng.random() < 0.5:
        query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
    terms = rng.choice((0, 0, 0, 3, 60, 600))
    if terms and rng.random() < 0.7:
        shapes = ("!z{n}", "z{n}!=v", "a in (b,c{n})", "z{n} notin (x,y)")
        query += "&labelSelector=" + ",".join(rng.choice(shapes).format(n=n) for n in range(terms))
    elif terms:
        query += "&fieldSelector=" + ",".join(f"metadata.name!=z{n}" for n in range(terms))
    accept = rng.choice(FORMS)
    if accept == TABLE and rng.random() < 0.3:
        query += "&includeObject=Object"
    said = f"GET {path}?{query[:70]} ({terms} terms) as {accept[:40]}"
    return SizedCall(
        said, Sent("GET", f"{path}?{query.lstrip('&').replace(' ', '%20')}", accept=accept)
    )


def _delete_many(rng: Random) -> SizedCall:
    """A collection, or a namespace, that goes."""
    api_version, plural, *_ = rng.choice([each for each in _VALID if each[1] != "nodes"])
    count, where = rng.choice((300, 3_000)), collection(api_version, plural)
    before = [Sent("POST", where, encoded(_base(plural, f"d{n}"))) for n in range(count)]
    query = rng.choice(
        ("", "?gracePeriodSeconds=0", "?propagationPolicy=Foreground", "?dryRun=All")
    )
    accept = rng.choice(FORMS)
    if rng.random() < 0.2:
        return SizedCall(
            f"DELETE the namespace of {count} {plural}",
            Sent("DELETE", f"/api/v1/namespaces/{NAMESPACE}", accept=JSON),
            tuple(before),
        )
    return SizedCall(
        f"DELETE {count} {plural} {query} as {accept[:40]}",
        Sent("DELETE", where + query, accept=accept),
        tuple(before),
    )


def _rules(rng: Random) -> SizedCall:
    """A policy, a definition, or an object that many rules judge."""
    count = rng.choice((10, 60, 1_000, 5_000))
    expressions = (
        "object.metadata.name != 'a{n}'",
        "has(object.metadata.labels) && object.metadata.labels.all(k, k != 'a{n}')",
        "object.spec.containers.all(c, c.name.matches('^[a-z]{{1,{n}}}$'))",
        "true",
    )
    wanted = rng.choice(expressions)
    made = [{"expression": wanted.format(n=n + 1)} for n in range(count)]
    what = rng.choice(("validations", "variables", "matchConditions", "auditAnnotations", "crd"))
    if what == "crd":
        return _definition(rng, count)
    parts: dict[str, Any] = {"validations": [{"expression": "true"}]}
    if what == "validations":
        parts["validations"] = made
    elif what == "auditAnnotations":
        parts[what] = [{"key": f"k{n}", "valueExpression": "'a'"} for n in range(count)]
    else:
        parts[what] = [{"name": f"v{n}", **each} for n, each in enumerate(made)]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    resources = rng.choice((["pods"], ["pods", "services", "nodes", "secrets", "events"]))
    spec = {"matchConstraints": {"resourceRules": [rule | {"resources": resources}]}, **parts}
    where = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    obj = {"metadata": {"name": "p"}, "spec": spec}
    dry = rng.choice(("", "?dryRun=All"))
    words = f"POST a policy with {count} {what} {wanted[:30]} {dry}"
    return SizedCall(words, Sent("POST", where + dry, encoded(obj)[:BODY_MAX]))


def _definition(rng: Random, count: int) -> SizedCall:
    """A definition of a custom resource with many properties, columns, versions or rules."""
    obj = definition()
    name = "trees.example.com"
    obj["metadata"]["name"] = name
    obj["spec"]["names"] = {"plural": "trees", "singular": "tree", "kind": "Tree"}
    version = obj["spec"]["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    what = rng.choice(("properties", "columns", "rules", "enum", "deep", "required", "versions"))
    spec.pop("x-kubernetes-validations", None)
    if what == "properties":
        spec["properties"] |= {f"p{n}": {"type": "string", "pattern": "^a+$"} for n in range(count)}
    elif what == "columns":
        version["additionalPrinterColumns"] = [
            {"name": f"c{n}", "type": "string", "jsonPath": f".spec.p{n}"} for n in range(count)
        ]
    elif what == "rules":
        spec["x-kubernetes-validations"] = [{"rule": f"self.color != 'a{n}'"} for n in range(count)]
    elif what == "enum":
        spec["properties"]["e"] = {"type": "string", "enum": [f"e{n}" for n in range(count)]}
    elif what == "required":
        spec["required"] = [f"p{n}" for n in range(count)]
    elif what == "deep":
        inner: Any = {"type": "string"}
        for _ in range(min(count, 60)):
            inner = {"type": "object", "properties": {"a": inner}}
        spec["properties"]["d"] = inner
    else:
        small = version | {"storage": False}
        obj["spec"]["versions"] = [version] + [
            small | {"name": f"v{n + 10}"} for n in range(min(count, 60))
        ]
    words = f"POST a definition with {count} {what}"
    return SizedCall(words, Sent("POST", DEFINITIONS, encoded(obj)[:BODY_MAX]))


_DRAWS: list[Callable[[Random], SizedCall]] = [
    _long_valid,
    _long_valid,
    _long_any,
    _read,
    _read,
    _delete_many,
    _rules,
]


def prepared() -> Iterator[Sent]:
    """Yield the calls that make the cluster in which all calls are made."""
    second = definition()
    versions = second["spec"]["versions"]
    versions.append(versions[0] | {"name": "v2", "storage": False})
    yield Sent("POST", DEFINITIONS, encoded(second))
    for name in (NAMESPACE, "large"):
        yield Sent("POST", "/api/v1/namespaces", encoded({"metadata": {"name": name}}))
    for api_version, plural, count in (
        ("v1", "nodes", 1_000),
        ("v1", "configmaps", 3_000),
        ("v1", "pods", 3_000),
        ("example.com/v1", "cars", 2_000),
        ("autoscaling/v1", "horizontalpodautoscalers", 1_000),
    ):
        where = collection(api_version, plural, plural != "nodes").replace(NAMESPACE, "default")
        for n in range(count):
            obj = _base(plural, f"{plural[0]}{n}")
            if plural == "horizontalpodautoscalers":
                target = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}
                obj["spec"] = {"maxReplicas": 3, "scaleTargetRef": target}
            yield Sent("POST", where, encoded(obj))
    for n in range(3_000):
        about = {"kind": "Pod", "namespace": "default", "name": f"p{n}"}
        event = {"metadata": {"name": f"e{n}"}, "involvedObject": about, "reason": "R"}
        yield Sent("POST", "/api/v1/namespaces/default/events", encoded(event))
    for api_version, plural, path, empty, element in _VALID:
        if plural in ("configmaps", "secrets", "cars", "pods"):
            count = min(15_000, 1_000_000 // len(encoded(element(10_000))))
            for n in range(2):
                obj = _put(
                    _base(plural, f"{path.replace('.', '-').lower()}{n}"),
                    path,
                    _long(empty, element, count),
                )
                yield Sent(
                    "POST",
                    collection(api_version, plural).replace(NAMESPACE, "large"),
                    encoded(obj),
                )
