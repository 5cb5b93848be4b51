"""Answers hold no name that their caller may not read: callers with several rights, every question.

The answers come from a cluster in virtual time, and are searched as text. Not covered: how the
caller is found (``scheduler/tests/service/serving``), the HTTP port.
"""

from __future__ import annotations

import json
import pickle
import typing
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, cast
from unittest.mock import Mock

import msgspec
import pytest

from moorage.base.clock import ManualClock, SystemClock
from moorage.cli.run.serving import answers_of, questions_of
from moorage.config.own import LoadedConfiguration
from moorage.dashboard.feed import Feed
from moorage.dashboard.source import Answered
from moorage.explain.answer import ObjectChange
from moorage.explain.workloads.question import explain_object_question
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.process.health import QueryPage
from moorage.service.questions.pages import body_pages
from moorage.service.questions.question import BodyQuestion, Question
from moorage.service.questions.redaction_steps import step_of
from moorage.service.serving.authorization import Authorizer, Decision
from moorage.service.serving.callers import Caller
from moorage.service.serving.rights import Rights
from moorage.what_if.answering.answers import capacity, what_if
from moorage.what_if.answering.body_names import names_in
from moorage.what_if.answering.messages import First, QuestionFrame, Reply, Update
from moorage.what_if.answering.mirror import Mirror
from moorage.what_if.answering.mirrored_state import MirroredState
from moorage.what_if.answering.question import tried_questions
from moorage.what_if.limits import Limits
from moorage.what_if.wire import (
    WHAT_IF,
    CapacityAnswer,
    CapacityBody,
    WhatIfAnswer,
    WhatIfBody,
)
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

PREFIX = "/moorage/v1"
NODES = ("host-alpha", "host-beta")
MINE = ("web-own", "big-own", "urgent-own", "second-own", "tight-own")
THEIRS = ("web-foreign", "other-foreign", "big-foreign", "small-foreign")
CLAIM = "disk-foreign"
OBJECTS: tuple[dict[str, Any], ...] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "theirs-ns"}},
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": "theirs-ns"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    },
)


def _pod(name: str, namespace: str, **fields: Any) -> dict[str, Any]:
    found = pod_manifest(name, **fields)
    found["metadata"]["namespace"] = namespace
    return found


class Roles:
    """Answers reviews from a list of what may be read: (resource, namespace), "" for all."""

    def __init__(self, *allowed: tuple[str, str]) -> None:
        self._allowed = set(allowed)

    async def decide_resource(self, caller: Caller, attributes: Mapping[str, str]) -> Decision:
        del caller
        resource = attributes["resource"]
        places = {("*", ""), (resource, ""), (resource, attributes.get("namespace", ""))}
        return Decision(bool(places & self._allowed))


def _rights(*allowed: tuple[str, str]) -> Rights:
    return Rights(cast("Authorizer", Roles(*allowed)), Caller("tester"))


class Beside:
    """Answers what-if and capacity in this process, from a mirror that begins anew each time."""

    def __init__(self, state: MirroredState) -> None:
        self._state = state

    async def ask(self, question: Callable[[], bytes]) -> bytes:
        first = msgspec.msgpack.decode(self._state.first(), type=First)
        mirror = Mirror(pickle.loads(first.config), in_tree_registry(), now_ns=first.now_ns)
        for frame in self._state.updates():
            mirror.take_changes(msgspec.msgpack.decode(frame, type=Update))
        asked = msgspec.msgpack.decode(question(), type=QuestionFrame)
        kind = WhatIfBody if asked.path == WHAT_IF else CapacityBody
        body: Any = msgspec.json.decode(asked.body, type=kind)

        def branch(work: Callable[[Any], bytes]) -> bytes:
            return work(
                mirror.begin_model(
                    asked.moment, body.objects, with_local_data=asked.with_local_data
                )
            )

        answer: Any
        if asked.only_names:
            answer = names_in(body)
        elif asked.path == WHAT_IF:
            course = what_if(body, branch, Limits(SystemClock()))
            answer = WhatIfAnswer(time="", scheduling=True, course=course, worse=course.worse)
        else:
            room = capacity(body, branch, Limits(SystemClock()))
            answer = CapacityAnswer(time="", scheduling=True, capacity=room)
        return msgspec.msgpack.encode(Reply(200, msgspec.json.encode(answer)))


class Asking:
    """Asks for the page of a user, as `moorage dashboard` does with the user's credentials."""

    def __init__(self, pages: Mapping[str, QueryPage], rights: Rights) -> None:
        self._pages = pages
        self._rights = rights

    async def ask(self, path: str, query: Mapping[str, str], body: bytes = b"") -> Answered:
        assert not body
        page = await self._pages[f"{PREFIX}{path}"](query, self._rights)
        return Answered(page.body, page.status)


PAGE = "what the page shows"
QUERIES: dict[str, tuple[str, dict[str, str]]] = {
    "the queue": ("/queue", {}),
    "what fills the nodes": ("/cluster", {}),
    "the last decisions": ("/decisions", {}),
    "the records of an own pod": ("/records", {"pod": "mine/urgent-own", "attempt": "1"}),
    "the records of a bound pod": ("/records", {"pod": "mine/web-own", "attempt": "1"}),
    "the records of a foreign pod": ("/records", {"pod": "theirs-ns/small-foreign"}),
    "why an own pod waits": ("/explain", {"pod": "mine/big-own", "all": "true"}),
    "what would help an own pod": ("/explain", {"pod": "mine/tight-own", "all": "true"}),
    "where an own pod is bound": ("/explain", {"pod": "mine/web-own", "all": "true"}),
    "why a foreign pod waits": ("/explain", {"pod": "theirs-ns/big-foreign"}),
    "why an own pod is not on a node": (
        "/explain",
        {"pod": "mine/big-own", "node": "host-alpha"},
    ),
    "the last hour": ("/history", {}),
    "the plugins": ("/plugins", {}),
}
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "an own pod more": (
        "/what-if",
        {
            "changes": [
                {
                    "change": "apply",
                    "namespace": "mine",
                    "manifest": {
                        "apiVersion": "v1",
                        **_pod("third-own", "mine", cpu="3", priorityClassName="high"),
                    },
                }
            ]
        },
    ),
    "a node drained": ("/what-if", {"changes": [{"change": "drain", "name": "host-alpha"}]}),
    "a foreign pod deleted": (
        "/what-if",
        {
            "changes": [
                {
                    "change": "delete",
                    "kind": "Pod",
                    "namespace": "theirs-ns",
                    "name": "small-foreign",
                }
            ]
        },
    ),
    "room for own pods": ("/capacity", {"like": "pod/web-own", "namespace": "mine"}),
    "room for foreign pods": ("/capacity", {"like": "pod/small-foreign", "namespace": "theirs-ns"}),
    "nodes for the pods that wait": ("/capacity", {"needs": True}),
    "own pods by state": ("/explain-object", {"namespace": "mine"}),
    "foreign pods by state": ("/explain-object", {"namespace": "theirs-ns"}),
    "all pods by state": ("/explain-object", {"allNamespaces": True}),
    "what a node rejects": ("/explain-object", {"type": "node", "name": "host-alpha"}),
    "a namespace": ("/explain-object", {"type": "ns", "name": "theirs-ns"}),
}
CALLERS: dict[str, tuple[tuple[str, str], ...]] = {
    "pods of one namespace": (("pods", "mine"),),
    "pods of one namespace, and nodes": (("pods", "mine"), ("nodes", "")),
    "nodes alone": (("nodes", ""),),
    "nothing": (),
    "pods of all namespaces": (("pods", ""),),
    "pods and claims of all namespaces, and nodes": (
        ("pods", ""),
        ("nodes", ""),
        ("persistentvolumeclaims", ""),
        ("resourceclaims", ""),
    ),
}


def _secrets(allowed: tuple[tuple[str, str], ...]) -> list[str]:
    """Return the names that a caller may not read."""
    found: list[str] = []
    if ("nodes", "") not in allowed:
        found += NODES
    if ("pods", "") not in allowed:
        found += [*THEIRS, "theirs-ns"]
        if ("pods", "mine") not in allowed:
            found += MINE
    if ("persistentvolumeclaims", "") not in allowed:
        found.append(CLAIM)
    return found


@cache
def answers() -> dict[tuple[str, str], tuple[int, str]]:
    """Return every answer, with its status, by caller and question."""
    clock = ManualClock()

    async def main() -> dict[tuple[str, str], tuple[int, str]]:
        nodes = [node_manifest(name, cpu="4") for name in NODES]
        async with VirtualCluster(clock, nodes=nodes) as cluster:
            await cluster.create_objects(*OBJECTS)
            await cluster.create_objects(
                _pod("web-own", "mine", cpu="1", priorityClassName="high"),
                _pod("second-own", "mine", cpu="1", priorityClassName="high"),
                _pod("web-foreign", "theirs-ns", cpu="3"),
                _pod("other-foreign", "theirs-ns", cpu="3"),
            )
            await cluster.until(lambda: bool(cluster.node_of("other-foreign", "theirs-ns")))
            await cluster.create_objects(
                _pod("big-own", "mine", cpu="9"),
                _pod("big-foreign", "theirs-ns", cpu="9"),
                _pod("urgent-own", "mine", cpu="2", priorityClassName="high"),
            )
            await cluster.until(lambda: bool(cluster.node_of("urgent-own", "mine")))
            await cluster.create_objects(_pod("small-foreign", "theirs-ns", cpu="1"))
            await cluster.until(lambda: bool(cluster.node_of("small-foreign", "theirs-ns")))
            await cluster.create_objects(_pod("tight-own", "mine", cpu="3"))
            await cluster.until(lambda: cluster.condition_of("tight-own", "mine")[0] == "False")
            return await _all(cluster, clock)

    return run_virtual(main(), clock)


async def _all(cluster: VirtualCluster, clock: ManualClock) -> dict[tuple[str, str], Any]:
    scheduler = cluster.scheduler
    state = MirroredState(scheduler, clock, config=LoadedConfiguration, plugins=())
    tried = tried_questions(scheduler, clock, state, Beside(state))
    tried.append(explain_object_question(scheduler, clock))
    pages = answers_of(scheduler, clock, tried)
    bodies = body_pages(tried, core=scheduler.core)
    found: dict[tuple[str, str], Any] = {}
    for caller, allowed in {**CALLERS, "everything": (("*", ""),)}.items():
        rights = _rights(*allowed)
        asked: dict[str, Awaitable[Any]] = {
            name: pages[f"{PREFIX}{path}"](query, rights) for name, (path, query) in QUERIES.items()
        }
        for name, (path, body) in BODIES.items():
            asked[name] = bodies[f"{PREFIX}{path}"](msgspec.json.encode(body), rights)
        for name, answer in asked.items():
            page = await answer
            found[caller, name] = page.status, page.body.decode()
        shown = await Feed(Asking(pages, rights), clock).whole()
        found[caller, PAGE] = 200, shown.decode()
    return found


@pytest.mark.parametrize("question", [*QUERIES, *BODIES, PAGE])
@pytest.mark.parametrize("caller", list(CALLERS))
def test_no_answer_names_what_its_caller_may_not_read(caller: str, question: str) -> None:
    status, text = answers()[caller, question]
    assert status in (200, 403)
    asked = json.dumps(QUERIES.get(question) or BODIES.get(question))
    secrets = [name for name in _secrets(CALLERS[caller]) if name not in asked]
    assert [name for name in secrets if name in text] == [], text


@pytest.mark.parametrize(
    ("caller", "question", "shown"),
    [
        pytest.param(
            "pods of one namespace",
            "the queue",
            ['"name":"big-own"', '"hidden":["1 pod of another namespace"]', '"unschedulable":3'],
            id="own pods wait in the queue, and foreign ones are counted",
        ),
        pytest.param(
            "pods of one namespace, and nodes",
            "what fills the nodes",
            [
                '"name":"urgent-own"',
                '"others":{"pods":1,"requests":{"cpu":3000}}',
                '"hidden":["2 pods of other namespaces"]',
            ],
            id="a node has the sum of foreign pods",
        ),
        pytest.param(
            "pods of one namespace",
            "the last decisions",
            ['"node":"(hidden)"', '"hidden":["5 decisions about pods of other namespaces"]'],
            id="own decisions, with nodes that are hidden",
        ),
        pytest.param(
            "pods of one namespace, and nodes",
            "the records of an own pod",
            ['"victims":["1 pod of another namespace"]', '"nodes":["host-alpha","host-beta"]'],
            id="a foreign victim of an own pod",
        ),
        pytest.param(
            "pods of one namespace",
            "own pods by state",
            ['"stage":"pending"', '"example":"mine/big-own"'],
            id="own pods by state and cause",
        ),
        pytest.param(
            "pods of one namespace",
            "where an own pod is bound",
            ["bound to (hidden) because of its score"],
            id="a hidden node in a sentence",
        ),
        pytest.param(
            "pods of one namespace, and nodes",
            "what would help an own pod",
            [
                '"hidden":["1 suggestion about a pod of another namespace"]',
                '"text":"priorityClassName high (priority 1000): it would evict (hidden) from ',
                '"evicted":["1 pod of another namespace"]',
            ],
            id="suggestions to evict a foreign pod",
        ),
        pytest.param(
            "pods of one namespace, and nodes",
            PAGE,
            ['"name":"big-own"', '"name":"urgent-own"', '"host-alpha":{"allocatable"'],
            id="the page of a user with few rights",
        ),
        pytest.param(
            "pods of one namespace",
            "an own pod more",
            [
                '"hidden":["2 pods of other namespaces"]',
                '"worse":["1 pod lost: no owner makes another",',
            ],
            id="a change that evicts a foreign pod still says that it gets worse",
        ),
        pytest.param(
            "everything",
            "the records of an own pod",
            ['"victims":["theirs-ns/web-foreign"]', '"nominatedNode":"host-alpha"'],
            id="somebody who may read everything",
        ),
    ],
)
def test_the_rest_of_an_answer_is_there(caller: str, question: str, shown: list[str]) -> None:
    status, text = answers()[caller, question]
    assert status == 200
    assert [part for part in shown if part not in text] == [], text


def test_a_question_about_a_foreign_pod_is_refused_as_the_api_server_refuses() -> None:
    refused = {
        question: answers()["pods of one namespace", question]
        for question in (
            "the records of a foreign pod",
            "why a foreign pod waits",
            "a foreign pod deleted",
            "room for foreign pods",
            "a node drained",
        )
    }
    assert {status for status, _ in refused.values()} == {403}
    assert json.loads(refused["why a foreign pod waits"][1])["message"] == (
        'pods "big-foreign" is forbidden: User "tester" cannot get resource "pods" '
        'in API group "" in the namespace "theirs-ns"'
    )


def test_somebody_with_every_right_gets_the_answer_of_the_page_of_the_scheduler() -> None:
    rest = [text for (caller, _), (_, text) in answers().items() if caller == "everything"]
    assert [text for text in rest if "hidden" in text or "(hidden)" in text] == []


# Fields with plain text that names no pod, node, claim or namespace but the record's own.
PLAIN = {
    "Answer": {"api_version", "kind", "time"},
    "QueuedPod": {"name", "uid", "scheduler_name", "since", "first_queued", "until", "plugins"}
    | {"group", "step", "reason", "owner"},
    "Fold": {"owner", "group", "reason", "names", "queues", "oldest", "requests"},
    "QueuedGroup": {"name", "source", "reason"},
    "WakingEvents": {"plugin", "events"},
    "FilledNode": {"allocatable", "domains", "taints"},
    "FillingPod": {"name", "uid", "owner", "group", "requests", "devices"},
    "OtherPods": {"requests", "devices"},
    "ClusterAnswer": {"version"},
    "Moment": {"fills"},
    "DecisionLine": {"name", "uid", "scheduler_name", "time", "outcome", "end", "reason"}
    | {"owner", "group"},
    "ShownAttempt": {"name", "uid", "scheduler_name", "time", "outcome", "end", "ended"}
    | {"waited_for", "victims_chosen_by", "pre_filter_plugins", "filter_results", "broken_by"}
    | {"reason"},
    "ShownStep": {"name", "code", "plugin"},
    "ShownCause": {"time"},
    "ShownRejection": {"plugin", "code"},
    "ShownScore": {"plugin"},
    "ShownExtender": {"extender"},
    "ShownExtenderRejection": {"code"},
    "Explanation": {"name", "uid", "source", "reason"},
    "Cause": {"plugins", "code"},
    "NodeAnswer": {"rejections", "scores"},
    "Suggestion": {"kind"},
    "ObjectChange": {"namespace"},
    "WhatIfAnswer": {"worse"},
    "Start": {"owner", "group"},
    "StartEstimate": {"earliest", "latest"},
    "Move": {"owner", "group"},
    "Waiting": {"owner", "group"},
    "Loss": {"owner", "group", "unknown_owner"},
    "End": {"owner", "group"},
    "NotEvicted": {"owner", "group"},
    "Use": {"used", "allocatable"},
    "Need": {"allocatable", "limit", "differs"},
    "Room": {"limit"},
    "Capacity": {"limit"},
    # The object is in the question, and its caller must be allowed to read it.
    "ObjectExplanation": {"type_", "namespace", "name", "source"},
    "PodCount": {"plugins"},
    "ObjectSuggestion": {"kind"},
    "AmountUse": {"resource", "used", "most"},
    "RunningProfile": {"scheduler_name", "points", "weights", "extenders"},
    "RunningPlugin": {"name"},
    "PointCost": {"point"},
    "ConfigurationAnswer": {"cluster", "documents", "feature_gates", "plugins"},
}
NOBODY = Mock()  # only a question that is asked needs a scheduler
SERVED: tuple[Question | BodyQuestion, ...] = (
    *questions_of(NOBODY, NOBODY, NOBODY),
    *tried_questions(NOBODY, NOBODY, NOBODY, NOBODY),
    explain_object_question(NOBODY, NOBODY),
)


def test_the_change_of_a_node_is_not_taken_for_a_pod_that_is_hidden() -> None:
    hiding = Mock(sees_pod=lambda *_: False, redacted_text=lambda text: text)
    change = ObjectChange(api_version="v1", kind="Node", name=NODES[0], patch={"spec": {}})
    step = step_of(ObjectChange)
    assert step is not None
    assert step(change, hiding) == change


def test_every_question_is_asked_by_callers_with_few_rights() -> None:
    # The configuration is no part of the cluster here; test_configuration asks for it.
    served = {each.path for each in SERVED} - {"/configuration"}
    assert served == {path for path, _ in (*QUERIES.values(), *BODIES.values())}


def _plain_texts(type_: Any, found: dict[str, set[str]]) -> bool:
    """Note the fields of plain text below a type; return whether it has text itself."""
    arguments = typing.get_args(type_)
    if typing.get_origin(type_) in (typing.Annotated, typing.Literal):
        return False
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        if type_.__name__ not in found:
            fields = found[type_.__name__] = set()
            for name, hint in typing.get_type_hints(type_, include_extras=True).items():
                if name in type_.__struct_fields__ and _plain_texts(hint, found):
                    fields.add(name)
        return False
    below = [_plain_texts(each, found) for each in arguments]
    return type_ in (str, Any) or any(below)


@pytest.mark.parametrize("answer", [pytest.param(each.answer, id=each.path) for each in SERVED])
def test_every_text_of_an_answer_says_what_it_names(answer: Any) -> None:
    """A text needs a type of `moorage.api.mentions`; one that names nothing, a row in PLAIN."""
    found: dict[str, set[str]] = {}
    _plain_texts(answer, found)
    assert {
        name: sorted(fields - PLAIN["Answer"] - {"hidden"} - PLAIN.get(name, set()))
        for name, fields in found.items()
        if fields - PLAIN["Answer"] - {"hidden"} - PLAIN.get(name, set())
    } == {}
