"""How questions are served: answers true to the OpenAPI document, errors as Statuses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from moorage.base.clock import ManualClock
from moorage.base.errors import NotFoundError
from moorage.service.process.health import HealthServer, Listening
from moorage.service.questions.pages import OPENAPI_PATH, question_pages
from moorage.service.questions.question import Answer, Parameter, Question, QuestionParameters
from moorage.service.questions.queue import queue_question
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.questions.openapi_check import check, faults
from scheduler.tests.service.serving.guards import open_access
from tests.scenarios.gangs import Cluster, coscheduling, nodes, of_object, play


class Weight(msgspec.Struct, frozen=True, rename="camel"):
    """A weight.

    Parameters
    ----------
    in_grams
        How heavy it is, grams.
    """

    in_grams: int


class WeightAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """What a thing weighs."""

    kind: str = "Weight"
    weights: tuple[Weight, ...]


async def weigh(given: QuestionParameters) -> WeightAnswer:
    if given["thing"] == "ghost":
        raise NotFoundError(404, "NotFound", "no such thing: ghost")
    return WeightAnswer(time="now", scheduling=True, weights=(Weight(3),))


QUESTION = Question(
    path="/weight",
    summary="What does it weigh?",
    answer=WeightAnswer,
    ask=weigh,
    parameters=(Parameter(name="thing", description="What.", required=True),),
)
WEIGHT = "/moorage/v1/weight"


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        pytest.param({"thing": "brick"}, 200, [{"inGrams": 3}], id="an answer"),
        pytest.param({}, 400, "thing: the parameter is required", id="a parameter is missing"),
        pytest.param(
            {"thing": "a", "color": "b"},
            400,
            "color: there is no such parameter; there are: thing",
            id="an unknown parameter",
        ),
        pytest.param({"thing": "ghost"}, 404, "no such thing: ghost", id="an unknown object"),
    ],
)
async def test_answers_and_errors_are_as_the_document_describes(query, status, told) -> None:
    pages = question_pages([QUESTION])
    page = await pages[WEIGHT](query)
    document = json.loads((await pages[OPENAPI_PATH]({})).body)
    body = json.loads(page.body)
    assert page.status == status
    check(body, WEIGHT, document, status=str(status))
    assert body.get("weights", body.get("message")) == told


def test_the_document_describes_each_property_from_the_docstrings() -> None:
    async def main() -> Any:
        return json.loads((await question_pages([QUESTION])[OPENAPI_PATH]({})).body)

    document = run_virtual(main(), ManualClock())
    assert document["components"]["schemas"]["Weight"] == {
        "title": "Weight",
        "type": "object",
        "description": "A weight.",
        "properties": {"inGrams": {"type": "integer", "description": "How heavy it is, grams."}},
        "required": ["inGrams"],
    }


def _whole(schema: dict[str, Any]) -> bool:
    return all("description" in each for each in schema["properties"].values())


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        pytest.param({"weights": []}, "answer: time is missing", id="a property is missing"),
        pytest.param({"weights": [{"inGrams": "3"}]}, "is no integer", id="another type"),
        pytest.param({"colour": 1}, "colour is not described", id="an unknown property"),
    ],
)
async def test_the_check_of_answers_finds_faults(value, fault) -> None:
    document = json.loads((await question_pages([QUESTION])[OPENAPI_PATH]({})).body)
    schema = document["components"]["schemas"]["WeightAnswer"]
    assert any(fault in each for each in faults(value, schema, document, "answer"))


def test_the_answers_of_a_scheduler_are_as_the_document_describes() -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(
            pod_manifest("giant", cpu="64"),
            pod_manifest("gated", schedulingGates=[{"name": "quota"}]),
            of_object("lost", of="nowhere"),
        )
        queue = live.scheduler.core.queue
        await live.until(lambda: queue.counts().unschedulable > 0 and not queue.pending().active)
        pages = question_pages([queue_question(live.scheduler, live.clock)])
        document = json.loads((await pages[OPENAPI_PATH]({})).body)
        path = "/moorage/v1/queue"
        body = json.loads((await pages[path]({"limit": "10"})).body)
        check(body, path, document)
        assert {each["name"] for each in body["pods"]} == {"giant", "gated", "lost"}
        schemas = document["components"]["schemas"]
        undescribed = [name for name in schemas if name != "Status" and not _whole(schemas[name])]
        assert undescribed == []

    play(scenario, cluster=nodes(1), config=coscheduling())


@pytest.mark.parametrize("limit", ["0", "5001", "-1", "many", "1.5", "٣"])
def test_a_limit_out_of_bounds_is_refused(limit: str) -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=[node_manifest("n1")]) as cluster:
            pages = question_pages([queue_question(cluster.scheduler, clock)])
            page = await pages["/moorage/v1/queue"]({"limit": limit})
            assert page.status == 400
            assert json.loads(page.body)["message"] == (
                f"limit: {limit!r}: write a whole number from 1 to 5000"
            )

    run_virtual(main(), clock)


@pytest.fixture
async def served() -> AsyncIterator[str]:
    listening = Listening(address="127.0.0.1", free_port=True)
    queries = question_pages([QUESTION])
    running = HealthServer(listening, open_access(WEIGHT), checks={}, pages={}, queries=queries)
    await running.start()
    yield f"https://127.0.0.1:{running.port}"
    await running.close()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", f"{WEIGHT}?thing=brick", 200, id="an open question"),
        pytest.param("GET", OPENAPI_PATH, 403, id="a question that is not open"),
        pytest.param("POST", f"{WEIGHT}?thing=brick", 405, id="a write"),
    ],
)
async def test_questions_are_open_as_the_other_paths_of_the_port(
    served: str, method: str, path: str, status: int
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, served + path, ssl=False) as answer,
    ):
        assert answer.status == status
