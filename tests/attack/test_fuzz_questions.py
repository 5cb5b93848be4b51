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
from tests.attack.fuzz import ODD_VALUES, RUNS, draws, mutated_value

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
_BOUND: Final = pod_manifest("p", cpu="1", labels={"app": "web"})
_OWNER: Final = replica_set("web", 3, "1")
_CHANGES: Final[list[Manifest]] = [
    {"change": "addNode", "manifest": node_manifest("n", cpu="8"), "zoneTurn": 1},
    {"change": "apply", "manifest": _BOUND, "namespace": "default"},
    {"change": "apply", "manifest": _OWNER},
    {"change": "scale", "kind": "ReplicaSet", "namespace": "default", "name": "web", "replicas": 9},
    {"change": "taint", "name": "node-01", "key": "k", "value": "v", "effect": "NoExecute"},
    {"change": "setPriority", "namespace": "default", "name": "giant", "value": 7},
    {"change": "delete", "kind": "Pod", "namespace": "default", "name": "giant"},
    {"change": "cordon", "name": "node-02"},
    {"change": "drain", "name": "node-01"},
    {"change": "removeNode", "name": "node-03"},
]
_SIZES: Final = [0, 1, -1, 10**5, 10**9, 10**15, 2**63, 10**30]


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
    return {"changes": changes, "objects": [_OWNER] * rng.randrange(2)}


def _capacity(rng: Random) -> Any:
    return {
        "like": rng.choice(["", "", "pod/giant", "replicaset/web", "node/node-01"]),
        "mix": [_BOUND, _OWNER][: rng.randrange(3)],
        "whole": rng.random() < 0.5,
        "namespace": "default",
        "most": rng.choice([1, 7, 200, *_SIZES]),
        "needs": rng.random() < 0.5,
        "shapes": [{"like": "big", "manifest": node_manifest("s", cpu="64")}] * rng.randrange(2),
        "objects": [_OWNER] * rng.randrange(2),
    }


def _answered(link: http.client.HTTPSConnection, run: int, rng: Random) -> tuple[str, int]:
    """Send a call, and return the path and the code of the answer."""
    method, path, body = _question(rng)
    link.request(method, path, body)
    answer = link.getresponse()
    text = answer.read()
    shown = f"run {run}: {method} {path[:200]} {body[:2000]!r}: {text[:500]!r}"
    assert answer.status in (200, 400, 404, 503), shown
    if answer.status == 503:
        assert json.loads(text)["reason"] == "LimitReached", shown
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
