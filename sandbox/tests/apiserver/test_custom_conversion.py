"""Definitions of custom resources that a webhook converts.

Does not cover: what a definition of the strategy has to say (`test_custom_resources`).
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import MERGE, Cluster
from sandbox.tests.apiserver.webhooks import Programs, cluster_with

CONVERTED = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {"service": {"namespace": "s", "name": "w", "path": "/convert"}},
        "conversionReviewVersions": ["v1"],
    },
}
V2 = CARS.replace("/v1/", "/v2/")


async def test_a_definition_with_a_webhook_serves_its_one_version():
    """As JobSet and LeaderWorkerSet have it."""
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition(spec__conversion=CONVERTED))
    stored = await cluster.ok("GET", f"{DEFINITIONS}/cars.example.com")
    assert stored["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 443
    await cluster.ok("POST", CARS, car())
    assert len(await cluster.names(CARS)) == 1


def converted(request: dict[str, Any]) -> dict[str, Any]:
    """Rename ``color`` of v1 to ``paint`` in v2, and back."""
    wanted, objs = request["desiredAPIVersion"], copy.deepcopy(request["objects"])
    for obj in objs:
        assert obj["apiVersion"] != wanted
        obj["apiVersion"], spec = wanted, obj["spec"]
        before, after = ("paint", "color") if wanted.endswith("/v1") else ("color", "paint")
        spec[after] = spec.pop(before)
        labels = obj["metadata"].setdefault("labels", {})
        labels["made-as"] = wanted.rpartition("/")[2]
        obj["metadata"]["resourceVersion"] = "changed by the webhook, without effect"
    return {"convertedObjects": objs, "result": {"status": "Success"}}


def of_two_versions() -> dict[str, Any]:
    """A definition of v1, which is stored, and v2."""
    wanted = definition(
        spec__conversion={
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"url": "https://w.example.com/convert"},
                "conversionReviewVersions": ["v2", "v1", "v1beta1"],
            },
        }
    )
    first = wanted["spec"]["versions"][0]
    second = copy.deepcopy(first) | {"name": "v2", "storage": False}
    spec = second["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["paint"] = spec["properties"].pop("color")
    spec["required"] = ["paint"]
    wanted["spec"]["versions"].append(second)
    return wanted


async def converting(convert: Any = converted) -> tuple[Cluster, Programs]:
    """A cluster with the definition, and the program that converts."""
    programs = Programs(w=convert)
    cluster = cluster_with(programs)
    await cluster.ok("POST", DEFINITIONS, of_two_versions())
    return cluster, programs


def car2(name: str = "beetle", paint: str = "red") -> dict[str, Any]:
    """A car as v2 has it."""
    made = car(name=name)
    made["apiVersion"] = "example.com/v2"
    made["spec"] = {"paint": paint}
    return made


async def test_an_object_is_converted_when_it_is_read_in_another_version():
    cluster, programs = await converting()
    made = await cluster.ok("POST", CARS, car())
    name = made["metadata"]["name"]
    assert programs.requests == []
    found = await cluster.ok("GET", f"{V2}/{name}")
    assert (found["apiVersion"], found["spec"]["paint"]) == (
        "example.com/v2",
        made["spec"]["color"],
    )
    meta = made["metadata"] | {"labels": {"made-as": "v2"}}
    assert found["metadata"] == meta
    (asked,) = programs.asked("w")
    assert asked["desiredAPIVersion"] == "example.com/v2"
    assert asked["objects"] == [made]


async def test_an_object_of_another_version_is_converted_before_it_is_stored():
    cluster, _ = await converting()
    made = await cluster.ok("POST", V2, car2())
    assert (made["apiVersion"], made["spec"]["paint"]) == ("example.com/v2", "red")
    stored = await cluster.ok("GET", f"{CARS}/beetle")
    assert stored["spec"] == {"color": "red", "wheels": 4}
    assert stored["metadata"]["uid"] == made["metadata"]["uid"]


async def test_changes_and_deletions_in_another_version_are_converted():
    cluster, _ = await converting()
    await cluster.ok("POST", CARS, car(name="beetle"))
    change = {"spec": {"paint": "blue"}}
    changed = await cluster.ok("PATCH", f"{V2}/beetle", change, content_type=MERGE)
    assert changed["spec"]["paint"] == "blue"
    applied = car2(paint="red")
    query = {"fieldManager": "me", "force": "true"}
    apply = "application/apply-patch+yaml"
    found = await cluster.ok("PATCH", f"{V2}/beetle", applied, query=query, content_type=apply)
    assert found["spec"]["paint"] == "red"
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await cluster.ok("PATCH", f"{V2}/beetle", held, content_type=MERGE)
    ending = await cluster.ok("DELETE", f"{V2}/beetle")
    assert (ending["spec"]["paint"], "deletionTimestamp" in ending["metadata"]) == ("red", True)
    free = {"metadata": {"finalizers": None}}
    await cluster.ok("PATCH", f"{V2}/beetle", free, content_type=MERGE)
    assert await cluster.names(CARS) == []


async def test_a_list_is_converted_by_one_review():
    cluster, programs = await converting()
    for number in range(5):
        await cluster.ok("POST", CARS, car(name=f"car-{number}"))
    found = await cluster.ok("GET", V2)
    assert [each["spec"]["paint"] for each in found["items"]] == ["red"] * 5
    (asked,) = programs.asked("w")
    assert len(asked["objects"]) == 5
    await cluster.ok("DELETE", V2)
    assert await cluster.names(CARS) == []


async def test_large_objects_go_in_reviews_of_their_own():
    cluster, programs = await converting()
    for name in ("a", "b"):
        made = car(name=name)
        made["spec"]["extras"] = {"text": "x" * 600_000}
        await cluster.ok("POST", CARS, made)
    assert len((await cluster.ok("GET", V2))["items"]) == 2
    assert [len(each["objects"]) for each in programs.asked("w")] == [1, 1]


async def test_a_watch_sends_converted_objects():
    cluster, _ = await converting()
    await cluster.ok("POST", CARS, car(name="first"))
    reply = await cluster.reply("GET", V2, query={"watch": "true", "timeoutSeconds": "5"})
    assert not isinstance(reply.body, bytes)
    stream = reply.body

    async def next_event() -> tuple[str, str]:
        (line,) = (await anext(stream)).splitlines()
        event = json.loads(line)
        return event["type"], event["object"]["spec"]["paint"]

    events = [await next_event()]
    await cluster.ok("POST", V2, car2("second", "blue"))
    events.append(await next_event())
    await cluster.ok("DELETE", f"{CARS}/first")
    events.append(await next_event())
    assert events == [("ADDED", "red"), ("ADDED", "blue"), ("DELETED", "red")]


def _renamed(request: dict[str, Any]) -> dict[str, Any]:
    answer = converted(request)
    answer["convertedObjects"][0]["metadata"]["name"] = "b"
    return answer


@pytest.mark.parametrize(
    ("convert", "why"),
    [
        pytest.param(
            lambda request: {"result": {"status": "Failed", "message": "no such color"}},
            "no such color",
            id="the webhook refuses",
        ),
        pytest.param(
            lambda request: {"result": {"status": "Success"}},
            "expected 1 converted objects, got 0",
            id="an object is missing",
        ),
        pytest.param(
            lambda request: {
                "result": {"status": "Success"},
                "convertedObjects": request["objects"],
            },
            "invalid converted object at index 0: must have the same apiVersion: example.com/v2 != "
            "example.com/v1",
            id="nothing is converted",
        ),
        pytest.param(
            _renamed,
            "invalid converted object at index 0: must have the same metadata.name: beetle != b",
            id="another name",
        ),
        pytest.param(
            lambda request: converted(request) | {"uid": "other"},
            'got "other"',
            id="the answer to another review",
        ),
        pytest.param(lambda request: b"[1", "the answer is no ConversionReview", id="nonsense"),
    ],
)
async def test_an_answer_that_cannot_be_used_fails_the_call(convert, why):
    cluster, _ = await converting(convert)
    await cluster.ok("POST", CARS, car(name="beetle"))
    status, answer = await cluster.call("GET", f"{V2}/beetle")
    start = "conversion webhook for example.com/v1, Kind=Car failed: "
    assert (status, answer["message"].startswith(start)) == (500, True)
    assert why in answer["message"]
    # In the stored version nothing is converted, and a write of the other version stores nothing.
    assert (await cluster.call("GET", f"{CARS}/beetle"))[0] == 200
    assert (await cluster.call("POST", V2, car2("other")))[0] == 500
    assert await cluster.names(CARS) == ["beetle"]


async def test_objects_stored_in_a_former_version_are_converted_when_they_are_read():
    cluster, _ = await converting()
    await cluster.ok("POST", CARS, car(name="beetle"))
    moved = of_two_versions()
    for version in moved["spec"]["versions"]:
        version["storage"] = version["name"] == "v2"
    await cluster.ok(
        "PATCH", f"{DEFINITIONS}/cars.example.com", {"spec": moved["spec"]}, content_type=MERGE
    )
    found = await cluster.ok("GET", f"{V2}/beetle")
    assert found["spec"]["paint"] == "red"
    await cluster.ok("PUT", f"{V2}/beetle", found | {"spec": {"paint": "blue"}})
    assert (await cluster.ok("GET", f"{CARS}/beetle"))["spec"]["color"] == "blue"
