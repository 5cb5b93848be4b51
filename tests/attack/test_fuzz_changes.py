"""Random changes of objects that exist: each is taken or refused, never answered by a 500.

`test_fuzz` draws any call, and most of its calls end at a path, a method or a name. Here the path,
the method and the object fit, so that what is changed gets as far as the checks of its kind, the
merge of a patch, the ownership of fields, and admission.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.rng import Random
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, definition
from sandbox.tests.apiserver.harness import JSON_PATCH, MERGE, NODES, PODS, STRATEGIC, Cluster
from sandbox.tests.apiserver.test_bad_input import RUNTIME_CLASS, RUNTIME_CLASSES
from tests.attack.fuzz import SEED, draws, mutated_value
from tests.attack.served_objects import OBJECTS
from tests.attack.test_fuzz import kept_from_clients

TOGETHER = 50
"""Runs on one server: what one leaves behind is there for the next."""
APPLY = "application/apply-patch+yaml"
PARTS_OF = {PODS: ["status", "resize", "ephemeralcontainers"], NODES: ["status"], CARS: ["status"]}
OPTIONS = {"gracePeriodSeconds": 0, "propagationPolicy": "Background", "dryRun": [],
           "preconditions": {}}  # fmt: skip


def _operations(obj: Any, rng: Random) -> list[dict[str, Any]]:
    """Return a JSON patch about places that are there."""
    found = []
    for _ in range(rng.randrange(1, 4)):
        place, value = "", obj
        while isinstance(value, dict | list) and value and rng.random() < 0.8:
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            key = rng.choice(keys)
            place += "/" + str(key).replace("~", "~0").replace("/", "~1")
            value = value[key]
        operation = rng.choice(["add", "replace", "remove", "copy", "move", "test"])
        found.append({"op": operation, "path": place, "from": "/metadata", "value": value})
    return found


def _drawn(path: str, name: str, live: Any, rng: Random) -> tuple[str, str, str, Any]:
    """Return the method, the path, the content type and the body of a call."""
    item = f"{path}/{name}"
    if rng.random() < 0.3:
        item += "/" + rng.choice(PARTS_OF.get(path, ["status"]))
    form = rng.choice([MERGE, STRATEGIC, JSON_PATCH, APPLY])
    match rng.randrange(6):
        case 0 | 1:
            return "PUT", item, "application/json", mutated_value(live, rng)
        case 2 | 3 | 4:
            if form == JSON_PATCH:
                patch: Any = _operations(live, rng)
            else:
                patch = {key: value for key, value in live.items() if key != "metadata"}
                patch["metadata"] = {"name": name, "labels": {"a": "b"}}
            return "PATCH", item, form, mutated_value(patch, rng)
        case _:
            return "DELETE", f"{path}/{name}", "application/json", mutated_value(OPTIONS, rng)


async def _cluster() -> Cluster:
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    await cluster.ok("POST", RUNTIME_CLASSES, RUNTIME_CLASS)
    return cluster


async def _send(cluster: Cluster, path: str, obj: Any, rng: Random) -> tuple[int, Any, Any]:
    """Change an object that exists, and return the status, the answer and what was sent."""
    name = obj["metadata"]["name"]
    if rng.random() < 0.3:  # a new object of the kind
        await cluster.reply("DELETE", f"{path}/{name}", query={"gracePeriodSeconds": "0"})
        call = ("POST", path, "application/json", mutated_value(obj, rng))
    else:
        await cluster.reply("POST", path, obj)
        status, live = await cluster.call("GET", f"{path}/{name}")
        if status != 200:
            return status, live, (path, name)
        call = _drawn(path, name, live, rng)
    method, place, form, body = call
    query = {"fieldManager": "m", "force": "true"} if form == APPLY else {}
    if rng.random() < 0.2:
        query["fieldValidation"] = rng.choice(["Strict", "Warn", "Ignore"])
    status, found = await cluster.call(method, place, body, query=query, content_type=form)
    return status, found, (method, place, query, form, body)


@pytest.mark.parametrize("part", range(4))
async def test_a_random_change_of_an_object_is_answered_without_an_internal_error(
    part: int, caplog: pytest.LogCaptureFixture
):
    for run, rng in draws(f"change {part}"):
        if run % TOGETHER == 0:  # what finalizers keep would be in the way for ever
            cluster = await _cluster()
        path, obj = rng.choice(OBJECTS)
        status, found, sent = await _send(cluster, path, obj, rng)
        fault = status >= 500 and not kept_from_clients(found)
        fault |= any(each.exc_info for each in caplog.records)
        assert not fault, f"seed {SEED}, part {part}, run {run}: {found}\n{sent!r}"


async def test_the_objects_that_are_changed_have_no_fault_themselves():
    cluster = await _cluster()
    for path, obj in OBJECTS:
        await cluster.ok("POST", path, obj)
