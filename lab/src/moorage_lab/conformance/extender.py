"""Runs recorded cases of HTTP extenders (mode ``extender``): their calls, and effects of answers.

The scheduler's own client speaks to a `ScriptedExtender`, a transport that answers as recorded and
keeps the calls it receives. Format: lab/tests/conformance/data, FURTHER-FAMILIES.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import msgspec

from moorage.api.codec import decode_untyped, encode
from moorage.api.meta import ApiObject
from moorage.api.pod import Pod
from moorage.client.event_series import shorten
from moorage.client.extender import HttpExtender
from moorage.client.transport import Answer, Call, LineStream
from moorage.config.extenders import Extender
from moorage.engine.answers import Answers, Rows
from moorage.engine.decision import Decision, Outcome
from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.engine.extenders.replies import ExtenderReplies
from moorage.engine.search import Search
from moorage.engine.select_node import smallest_name
from moorage.framework.extender import in_order
from moorage.framework.preemption import EXPLAIN, NARROWING, PREEMPTION
from moorage.framework.profile import Profile
from moorage.framework.runner import AskPostFilter, PostFilterOutcome, run_unreserve
from moorage.framework.runner_binding import run_bind
from moorage.framework.status import Code
from moorage.kinds.pod.kind import POD
from moorage.service.attempts.extenders import settings_of
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.conformance.recordings import Json, Scenario
from moorage_lab.conformance.world import World

T = TypeVar("T")

_HOST = re.compile(r"://ext\d+\.example")
_RECORDED_HOST = "://extender.example"


def run_extenders(scenario: Scenario, world: World, extenders: Sequence[Extender]) -> Json:
    """Schedule and bind the pending pods one after another, in the order given.

    Parameters
    ----------
    scenario, world
        The case and its cluster.
    extenders
        The extenders of the case's configuration.
    """
    sent: list[Json] = []
    whole = _Whole(scenario)
    opened = []
    for index, (extender, script) in enumerate(zip(extenders, scenario.extender, strict=True)):
        transport = ScriptedExtender(extender, script, index=index, sent=sent)
        opened.append(HttpExtender(settings_of(extender), transport, whole=whole))
    cycles = {}
    for name, profile in world.profiles.items():
        profile.extenders = in_order(opened)
        profile.points["bind"] = ()  # so verbs that extenders do not handle give Skip
        cycles[name] = _RecordedCycle(profile, world.snapshot, smallest_name)
        cycles[name].sent = sent
    rows = []
    for info in world.pending:
        sent.clear()
        row = world.unscheduled(info)
        if row is None:
            row = _scheduled(world, cycles[info.pod.spec.scheduler_name], info)
            row = {key: _host_replaced(value) for key, value in row.items()}
            row["requests"] = _in_recorded_order(sent) or None
        rows.append(row)
    return {"pods": rows}


def comparable(expected: Json) -> Json:
    """Remove empty fields from request bodies: Go's types decide which of them are written."""
    return {**expected, "pods": [_pruned(row) for row in expected["pods"]]}


def _pruned(row: Json) -> Json:
    if not row.get("requests"):
        return row
    told = [{**one, "body": _without_empty(one["body"])} for one in row["requests"]]
    return {**row, "requests": told}


class ScriptedExtender:
    """A transport to an extender that answers as recorded.

    Parameters
    ----------
    extender
        The configuration of the extender.
    script
        The answers of the extender, by verb.
    index
        The position of the extender in the configuration.
    sent
        Every call is appended here as recorded.
    """

    def __init__(self, extender: Extender, script: Json, *, index: int, sent: list[Json]) -> None:
        self._script = script
        self._index = index
        self._sent = sent
        self._verbs = {
            extender.filter_verb: ("filter", _filter_answer),
            extender.prioritize_verb: ("prioritize", _prioritize_answer),
            extender.preempt_verb: ("preempt", _preempt_answer),
            extender.bind_verb: ("bind", _bind_answer),
        }

    async def request(self, call: Call) -> Answer:
        """Answer a call."""
        verb, answer = self._verbs[call.path.rpartition("/")[2]]
        assert call.body is not None, "every verb has a body"
        body, script = decode_untyped(call.whole_body), self._script.get(verb) or {}
        entry = {"extender": self._index, "verb": verb, "method": call.method, "path": call.path}
        entry |= {"contentType": call.content_type, "body": body}
        self._sent.append(entry)
        status = script.get("status")
        if status:
            entry["status"] = status
            return Answer(status, {}, b"")
        wire, entry["answer"] = answer(body, script)
        return Answer(200, {}, encode(wire))

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Refuse: extenders have no streams."""
        raise AssertionError(f"an extender was asked for a stream: {call.path}")

    async def close(self) -> None:
        """Do nothing."""


# -- what extenders answer: on the wire, and as recorded -------------------------------------------


def _filter_answer(body: Json, script: Json) -> tuple[Any, Any]:
    by_name = body["NodeNames"] is not None
    nodes = [] if by_name else body["Nodes"]["items"]
    asked = body["NodeNames"] if by_name else [node["metadata"]["name"] for node in nodes]
    failed = {name: text for name, text in script.get("reject", {}).items() if name in asked}
    beyond = {name: text for name, text in script.get("unresolvable", {}).items() if name in asked}
    names = [name for name in asked if name not in failed and name not in beyond]
    if by_name and script.get("unknown"):
        names.append(script["unknown"])
    answer: Json = {
        "error": script.get("error", ""),
        "failedNodes": failed or None,
        "failedAndUnresolvableNodes": beyond or None,
    }
    if by_name:
        answer["nodeNames"] = names
        return answer, answer
    items = [node for node in nodes if node["metadata"]["name"] in names]
    return {**answer, "nodes": {"items": items}}, {**answer, "nodes": names}


def _prioritize_answer(body: Json, script: Json) -> tuple[Any, Any]:
    names = body["NodeNames"]
    if names is None:
        names = [node["metadata"]["name"] for node in body["Nodes"]["items"]]
    scores = script.get("scores", {})
    answer = [{"Host": name, "Score": scores[name]} for name in names if name in scores]
    return answer, answer


def _preempt_answer(body: Json, script: Json) -> tuple[Any, Any]:
    full, by_node = body["NodeNameToVictims"], {}
    for name, victims in (full if full is not None else body["NodeNameToMetaVictims"]).items():
        if name in script.get("drop", ()):
            continue
        pods = victims["Pods"]
        uids = [{"UID": pod["UID"] if full is None else pod["metadata"]["uid"]} for pod in pods]
        violations = script.get("pdb", {}).get(name, victims["NumPDBViolations"])
        left = None if name in script.get("empty", ()) else uids
        by_node[name] = {"Pods": left, "NumPDBViolations": violations}
    answer = {"NodeNameToMetaVictims": by_node}
    return answer, answer


def _bind_answer(body: Json, script: Json) -> tuple[Any, Any]:
    del body
    answer = {"Error": script.get("error", "")}
    return answer, answer


# -- one pod ---------------------------------------------------------------------------------------


class _RecordedCycle(ExtendedCycle):
    """Keeps PostFilter's outcome, which a decision leaves out, and scores as kube-scheduler does.

    kube-scheduler v1.36 treats nodes that an extender returns as objects as new nodes, so its Score
    plugins see no pods on them. moorage keeps the pods (docs, deviations). This class does the same
    as kube-scheduler, so that everything else about such cases can be compared.
    """

    preemption: Json
    sent: Sequence[Json] = ()

    def choose(self, search: Search, rows: Rows, heard: ExtenderReplies) -> Decision:
        """Choose among the rows, scored as kube-scheduler would score them."""
        filters = _of(self.sent, "filter")
        if not any(call["body"]["Nodes"] and "answer" in call for call in filters):
            return super().choose(search, rows, heard)
        search = msgspec.structs.replace(search, answers=Answers(search.attempt))
        with self.snapshot.trial() as trial:
            for row in rows.tolist():
                for other in [*self.snapshot.pods(row)]:
                    trial.remove_pod(other.uid)
            return super().choose(search, rows, heard)

    def post_filter(self, search: Search, *, ask: AskPostFilter | None = None) -> PostFilterOutcome:
        """Run the PostFilter plugins, and keep the outcome in the format of the recordings."""
        state = search.attempt.state
        state.write(EXPLAIN, True)
        outcome = super().post_filter(search, ask=ask)
        narrowing, report = state.find(NARROWING), state.find(PREEMPTION)
        row: Json = {"code": outcome.status.code.text}
        result = outcome.result
        if result is not None and result.nominated_node is not None:
            row["nominatedNode"] = result.nominated_node
            if result.victims:
                row["victims"] = [victim.full_name for victim in result.victims]
                found = report.candidates if report is not None else ()
                if narrowing is not None and narrowing.answered:
                    found = narrowing.remaining
                by_node = {candidate.node_name: candidate.violations for candidate in found}
                row["numPDBViolations"] = by_node[result.nominated_node]
        self.preemption = row
        return outcome


def _scheduled(world: World, cycle: _RecordedCycle, info: PodInfo) -> Json:
    asking = cycle.asking(info)
    decision = cycle.decide(info) if asking is None else _driven(asking)
    row: Json = {"pod": info.key}
    if decision.outcome is Outcome.BIND:
        row |= {"outcome": "scheduled", "node": decision.node_name}
        return row | {"feasibleCount": decision.feasible} | _bound(world, cycle.profile, decision)
    if decision.outcome is Outcome.ERROR:
        return row | {"outcome": "error", "message": decision.message}
    assert decision.diagnosis is not None, "no recorded cluster is empty"
    row |= {"outcome": "unschedulable"}
    row |= {"message": decision.diagnosis.with_post_filter("").message}
    row |= {"event": shorten(decision.message), "preemption": cycle.preemption}
    row["unschedulablePlugins"] = sorted(decision.diagnosis.unschedulable_plugins)
    return row


def _bound(world: World, profile: Profile, decision: Decision) -> Json:
    """Count the pod on its node and let an extender bind it."""
    info = decision.pod
    world.assume(profile, decision)
    status = _driven(run_bind(profile, decision.state, info, decision.node_name))
    if status.code is Code.SKIP:
        return {"bind": "default"}
    if status.ok:
        return {"bind": "extender"}
    run_unreserve(profile, decision.state, info, decision.node_name)
    world.snapshot.table.remove_pod(info.uid)
    return {"bind": "error", "bindError": status.message}


def _driven(awaitable: Awaitable[T]) -> T:
    """Return the result of an awaitable that never waits."""
    try:
        next(awaitable.__await__())
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a scripted extender kept the scheduler waiting")


def _in_recorded_order(sent: Sequence[Json]) -> list[Json]:
    """Sort simultaneous calls by extender."""
    scores = iter(sorted(_of(sent, "prioritize"), key=lambda call: call["extender"]))
    return [next(scores) if call["verb"] == "prioritize" else call for call in sent]


def _of(sent: Sequence[Json], verb: str) -> list[Json]:
    return [call for call in sent if call["verb"] == verb]


# -- bodies ----------------------------------------------------------------------------------------


class _Whole:
    """Objects of a scenario in the API's form: with defaults and a resourceVersion."""

    def __init__(self, scenario: Scenario) -> None:
        objects = scenario.raw.get("objects", {})
        self._pods = {
            pod["metadata"]["uid"]: pod
            for pod in (*objects.get("pods", ()), *scenario.raw.get("pending", ()))
        }
        self._nodes = {node["metadata"]["name"]: node for node in objects.get("nodes", ())}

    def __call__(self, obj: ApiObject) -> bytes:
        """Return an object's JSON."""
        is_pod = isinstance(obj, Pod)
        raw = self._pods[obj.metadata.uid] if is_pod else self._nodes[obj.name]
        whole = copy.deepcopy(raw)
        whole["metadata"]["resourceVersion"] = "1"
        if is_pod:
            POD.defaults(whole)
        return encode(whole)


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        left = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in left.items() if each not in _EMPTY}
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    return value


_EMPTY: tuple[Any, ...] = (None, "", 0, False, {}, [])


def _host_replaced(value: Any) -> Any:
    if isinstance(value, str):
        return _HOST.sub(_RECORDED_HOST, value)
    if isinstance(value, dict):
        return {key: _host_replaced(each) for key, each in value.items()}
    return [_host_replaced(each) for each in value] if isinstance(value, list) else value
