"""Odd questions over HTTP to a running scheduler: each is answered or refused, none breaks it."""

from __future__ import annotations

import http.client
import json
import ssl
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import pytest

from moorage.base.rng import Random
from moorage.base.running_sandboxes import find
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from sandbox.tests.sandbox.process import Up
from scheduler.tests.what_if.cluster import replica_set
from scheduler.tests.what_if.test_hostile_manifests import OBJECTS
from tests.attack.fuzz import ODD_VALUES, RUNS, draws, mutated_bytes, mutated_value

_PREFIX: Final = "/moorage/v1"
_PARAMETERS: Final = {
    "queue": ("limit",),
    "cluster": ("since",),
    "decisions": ("since", "limit"),
    "plugins": (),
    "records": ("pod", "attempt"),
    "explain": ("pod", "node", "all"),
    "configuration": (),
    "openapi.json": (),
}
_PAGES: Final = (
    *("/healthz", "/livez", "/readyz", "/readyz/shutdown", "/metrics", "/metrics/slis", "/version"),
    *("/metrics/resources", "/configz", "/flagz", "/statusz", "/", _PREFIX, f"{_PREFIX}/queue/x"),
    *(f"{_PREFIX}/{name}" for name in (*_PARAMETERS, "what-if", "capacity")),
)
_METHODS: Final = ("GET", "GET", "GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")
_QUERY_VALUES: Final = (
    *("%zz", "%00", "%FF", "-1", "default%2Fgiant", "", "%F0%9F%98%80", "a;b", "1e5", "%D9%A3"),
    *("true", "9" * 400),
)
_HEADERS: Final[dict[str, tuple[str, ...]]] = {
    "Accept": ("text/html", "application/json;q=x", ",", ";;", "a" * 3000, "*/*;q=0"),
    "Accept-Encoding": ("gzip", "br", "*;q=0", "x"),
    "Authorization": ("Bearer x", "Basic eDp5", "Bearer", "x"),
    "Content-Encoding": ("gzip", "deflate", "x"),
    "Content-Type": ("text/plain", "application/json; charset=utf-16", "multipart/form-data", "x"),
    "If-None-Match": ("*", '"x"'),
}
_BODIES: Final = (
    *(b"", b"null", b"[]", b"5", b'"x"', b"{", b"[" * 20_000, b"{}" * 100, b'{"changes":null}'),
    *(b"\xff\xfe{\x00}\x00", b"\x00" * 100, b'{"changes":[],"changes":5}'),
)
_BOUND: Final = pod_manifest("p", cpu="1", labels={"app": "web"})
_LABELLED: Final = {"matchLabels": {"app": "web"}}
_TERM: Final = {"topologyKey": "kubernetes.io/hostname", "labelSelector": _LABELLED}
_CHOICE: Final = {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["1"]}]}
_RICH: Final = pod_manifest(
    "rich",
    cpu="1",
    labels={"app": "web", "scheduling.x-k8s.io/pod-group": "g"},
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_CHOICE]},
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "preference": _CHOICE}
            ],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 7, "podAffinityTerm": _TERM}
            ]
        },
    },
    topologySpreadConstraints=[
        {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2, **_TERM}
    ],
    tolerations=[{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
    schedulingGates=[{"name": "example.com/gate"}],
    resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}],
    volumes=[
        {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ],
    overhead={"cpu": "1m"},
)
_OTHERS: Final = [each for each in OBJECTS if each["kind"] not in {"Node", "Pod"}]
_OWNER: Final = replica_set("web", 3, "1")
_CHANGES: Final[list[Manifest]] = [
    {"change": "addNode", "manifest": node_manifest("n", cpu="8"), "zoneTurn": 1},
    {"change": "apply", "manifest": _BOUND, "namespace": "default"},
    {"change": "apply", "manifest": _OWNER},
    {"change": "apply", "manifest": _RICH},
    *({"change": "apply", "manifest": each} for each in _OTHERS),
    {"change": "scale", "kind": "ReplicaSet", "namespace": "default", "name": "web", "replicas": 9},
    {"change": "taint", "name": "node-01", "key": "k", "value": "v", "effect": "NoExecute"},
    {"change": "setPriority", "namespace": "default", "name": "giant", "value": 7},
    {"change": "delete", "kind": "Pod", "namespace": "default", "name": "giant"},
    {"change": "cordon", "name": "node-02"},
    {"change": "drain", "name": "node-01"},
    {"change": "removeNode", "name": "node-03"},
]
_SIZES: Final = [0, 1, -1, 10**5, 10**9, 10**15, 2**63, 10**30]


def _odd_call(rng: Random) -> tuple[str, str, bytes, dict[str, str]]:
    """Return method, path, body and headers of a call that no program of ours makes."""
    names = ("pod", "node", "limit", "since", "verbose", "exclude", "x")
    pairs = [f"{rng.choice(names)}={rng.choice(_QUERY_VALUES)}" for _ in range(rng.randrange(4))]
    path = rng.choice(_PAGES) + "?" * bool(pairs) + "&".join([*pairs, *pairs[:1]])
    headers = {name: rng.choice(values) for name, values in _HEADERS.items() if rng.random() < 0.15}
    body = rng.choice((*_BODIES, mutated_bytes(json.dumps(_what_if(rng)).encode(), rng)))
    return rng.choice(_METHODS), path, body, headers


def _question(rng: Random) -> tuple[str, str, bytes]:
    """Return method, path and body of a call."""
    if rng.random() < 0.4:
        name = rng.choice(sorted(_PARAMETERS))
        asked = {each: _value(each, rng) for each in _PARAMETERS[name] if rng.random() < 0.7}
        query = urlencode(asked, errors="replace")
        return "GET", f"{_PREFIX}/{name}?{query}", b""
    path, body = rng.choice([("what-if", _what_if), ("capacity", _capacity)])
    found = body(rng)
    for _ in range(rng.randrange(3)):
        found = mutated_value(found, rng)
    return "POST", f"{_PREFIX}/{path}", json.dumps(found).encode()


def _value(parameter: str, rng: Random) -> str:
    if rng.random() < 0.5:
        return str(rng.choice([*ODD_VALUES, *_SIZES, "9" * 5000]))
    plain = {"pod": "default/giant", "node": "node-01", "all": "true"}
    return plain.get(parameter, str(rng.randrange(9)))


def _what_if(rng: Random) -> Any:
    changes = [dict(rng.choice(_CHANGES)) for _ in range(rng.randrange(1, 4))]
    for each in changes:
        if "replicas" in each:
            each["replicas"] = rng.choice(_SIZES)
    return {"changes": changes, "objects": [_OWNER, *_OTHERS][: rng.randrange(4)]}


def _capacity(rng: Random) -> Any:
    return {
        "like": rng.choice(["", "", "pod/giant", "replicaset/web", "node/node-01"]),
        "mix": rng.choice([[], [_BOUND], [_BOUND, _OWNER], [_RICH], [rng.choice(_OTHERS)]]),
        "whole": rng.random() < 0.5,
        "namespace": "default",
        "most": rng.choice([1, 7, 200, *_SIZES]),
        "needs": rng.random() < 0.5,
        "shapes": [{"like": "big", "manifest": node_manifest("s", cpu="64")}] * rng.randrange(2),
        "objects": [_OWNER] * rng.randrange(2),
    }


def _answered(link: http.client.HTTPSConnection, run: int, rng: Random) -> tuple[str, int]:
    """Send a call, and return the path and the code of the answer."""
    odd = rng.random() < 0.2
    method, path, body, headers = _odd_call(rng) if odd else (*_question(rng), {})
    link.request(method, path, body, headers)
    answer = link.getresponse()
    text = answer.read()
    if odd:
        link.close()  # a server may leave the body of a call that it refuses unread, and hang up
    shown = f"run {run}: {method} {path[:200]} {headers} {body[:2000]!r}: {text[:500]!r}"
    odd_codes = (200, 400, 401, 404, 405, 406, 415)
    assert answer.status in (odd_codes if odd else (200, 400, 404, 503)), shown
    if answer.status == 503:
        assert json.loads(text)["reason"] == "LimitReached", shown
    assert b"Traceback" not in text, shown
    return path.partition("?")[0], answer.status


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("part", range(3))
def test_random_questions_are_answered_or_refused(part: int, tmp_path: Path) -> None:
    """A thousand calls in each part."""
    codes: Counter[tuple[str, int]] = Counter()
    with Up(tmp_path, "--nodes", "4") as up:
        up.started()
        # The address is recorded soon after the start; the test's timeout is the bound.
        while (record := find(up.kubeconfig)) is None or not record.health:
            pass
        url = urlsplit(record.health)
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        address = url.hostname or "", url.port
        with closing(http.client.HTTPSConnection(*address, context=tls, timeout=60)) as link:
            for run, rng in draws(f"questions/{part}", RUNS * 20 // 3):
                path, status = _answered(link, run, rng)
                codes[path, status] += 1
    for name in (*_PARAMETERS, "what-if", "capacity"):
        assert codes[f"{_PREFIX}/{name}", 200], f"{name} was never answered: {codes}"
