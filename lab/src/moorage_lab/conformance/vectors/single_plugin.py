"""Runs a vector of upstream's table tests: one plugin, one pod, and one or two extension points.

The mode "plugin" of the conformance runner. Such a case is transcribed from a test, not from a run
of kube-scheduler. Only the points that the test looks at are answered, and only this plugin is
asked. Nodes that pass a Filter are absent from its answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np

from moorage.api.requests import pod_requests
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.args import default_args, read_args
from moorage.config.merge import POINTS, ProfileSpec
from moorage.engine.attempt import CycleError
from moorage.engine.evaluation import Evaluation, evaluate
from moorage.engine.groups.placements import shared_rows
from moorage.engine.inquiry import Inquiry, inquire
from moorage.framework.group import GroupProgress, PlacementGeneratePlugin
from moorage.framework.handle import Handle
from moorage.framework.points import EventsToRegister
from moorage.framework.preemption import PreemptionReport
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry
from moorage.framework.runner import run_placement_feasible, run_pre_enqueue
from moorage.framework.status import Code, ReasonTable, Status
from moorage.plugins.volumes.volume_binding import VOLUMES
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.conformance.devices import allocations_on
from moorage_lab.conformance.hints import change_of, could_concern
from moorage_lab.conformance.needs import gates_of
from moorage_lab.conformance.recordings import Json, Scenario, Vector
from moorage_lab.conformance.world import build_snapshot, count_groups


def run_plugin(scenario: Scenario, registry: Registry) -> Json:
    """Return what the plugin of a scenario answers at the scenario's points."""
    vector = scenario.vector
    assert vector is not None, "the reader refuses the mode without it"
    if "faults" in vector.points:
        return {"faults": _faults(vector)}
    profile = _profile(scenario, registry)
    info = PodInfo(scenario.pending[0])
    if "preEnqueue" in vector.points:
        gate = run_pre_enqueue(profile, info.pod)
        return {"preEnqueue": {} if gate.ok else {"status": _listed(gate)}}
    if "placementFeasible" in vector.points:
        return {"placementFeasible": _feasible(vector, profile, info)}
    if "placements" in vector.points:
        return {"placements": _placements(vector, profile, info)}
    if "hint" in vector.points:
        return {"hint": _hint(scenario, profile, info)}
    answer: Json = {}
    if _PREEMPTION.intersection(vector.points):
        found = evaluate(profile, profile.handle.snapshot, info)
        answer = {point: ask(found) for point, ask in _PREEMPTION_ANSWERS.items()}
    try:
        inquiry = inquire(profile, profile.handle.snapshot, info)
    except CycleError as error:
        expected, text = vector.error, error.status.message
        answer |= {"error": expected if expected and expected in text else text, "fails": True}
    else:
        answer |= {"fails": inquiry.pre_filter.status.rejected}
        wanted = [point for point in vector.points if point in _ANSWERS]
        answer |= {point: _ANSWERS[point](scenario, inquiry) for point in wanted}
    return {point: answer[point] for point in vector.points if point in answer}


def run_requests(scenario: Scenario) -> Json:
    """Return what the pod of a scenario requests in total, in nano units: mode "requests"."""
    vector = scenario.vector
    assert vector is not None, "the reader refuses the mode without it"
    amounts = pod_requests(
        scenario.pending[0],
        use_status="useStatus" in vector.options,
        pod_level="skipPodLevel" not in vector.options,
    )
    return {"requests": {name: str(nano) for name, nano in amounts.items()}}


def _faults(vector: Vector) -> list[str]:
    """Return the fields of the arguments that are wrong."""
    faults = list[str]()
    read_args(vector.plugin, vector.args, path="args", faults=faults)
    return sorted({fault.partition(":")[0].removeprefix("args.") for fault in faults})


def _profile(scenario: Scenario, registry: Registry) -> Profile:
    """Return a profile that has the plugin of the vector, and its filters, at all their points."""
    vector = scenario.vector
    assert vector is not None
    name, faults = vector.plugin, list[str]()
    args: Any = default_args(name)
    if vector.args is not None:
        args = read_args(name, vector.args, path="args", faults=faults)
    assert not faults, faults
    names = (*vector.filters, name)
    points = {
        point: plugins
        for point in POINTS
        if (plugins := tuple(each for each in names if registry.extends(each, point)))
    }
    snapshot = build_snapshot(scenario.objects)
    count_groups(snapshot, scenario)
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(0),
        gates=gates_of(scenario),
    )
    args_of = {each: default_args(each) for each in vector.filters} | {name: args}
    spec = ProfileSpec("default-scheduler", points, dict.fromkeys(names, 1), args_of)
    return Profile(spec, registry, handle)


def _feasible(vector: Vector, profile: Profile, info: PodInfo) -> list[str]:
    """Return the code of PlacementFeasible at each call."""
    key = profile.handle.snapshot.groups.key_of(info.pod)
    assert key is not None, "the pod of the vector has no group"
    calls = [GroupProgress(placed, remaining) for placed, remaining in vector.progress]
    return [run_placement_feasible(profile, key, each).code.text for each in calls]


def _placements(vector: Vector, profile: Profile, info: PodInfo) -> Json:
    """Return the nodes of each placement within the given nodes, or the status."""
    snapshot = profile.handle.snapshot
    key = snapshot.groups.key_of(info.pod)
    assert key is not None, "the pod of the vector has no group"
    [plugin] = cast("list[PlacementGeneratePlugin]", profile.points["placementGenerate"])
    placements, status = plugin.generate_placements(key, snapshot.groups.source.terms_of(key))
    if not status.ok:
        return {"status": [status.code.text]}
    parent = snapshot.rows(snapshot.table.rows_of(vector.feasible))
    nodes: Json = {}
    for each in placements:
        within = shared_rows(snapshot, parent, each.within)
        if within is not None and len(within):
            nodes[each.name] = sorted(snapshot.names[row] for row in within.row_numbers().tolist())
    return nodes


def _pre_filter(scenario: Scenario, inquiry: Inquiry) -> Json:
    """Return the status of PreFilter and the nodes to which it restricts the search."""
    outcome = inquiry.pre_filter
    statuses = [status for status in outcome.results.values() if status.code is not Code.SUCCESS]
    answer: Json = {"status": _listed(statuses[0])} if statuses else {}
    if outcome.restricted_by:
        [names] = outcome.restricted_by.values()
        answer["nodeNames"] = sorted(names)
    return answer


def _filter(scenario: Scenario, inquiry: Inquiry) -> Json:
    """Return the status of every node that the plugin rejects."""
    reasons = inquiry.attempt.profile.handle.reasons
    return {
        inquiry.snapshot.names[row]: _listed(
            Status(Code(code), reasons.reasons(answer.reason_n.item(row)))
        )
        for answer in inquiry.answers.values()
        for row, code in enumerate(answer.code_n.tolist())
        if code
    }


def _pre_filter_reasons(scenario: Scenario, inquiry: Inquiry) -> list[str]:
    """Return why PreFilter rejects the pod, for tests that read no code."""
    del scenario
    statuses = inquiry.pre_filter.results.values()
    return [reason for status in statuses if status.rejected for reason in status.reasons]


def _reasons(scenario: Scenario, inquiry: Inquiry) -> Json:
    """Return the reasons of every node that the plugin rejects, for tests that read no code."""
    return {name: status[1:] for name, status in _filter(scenario, inquiry).items()}


def _codes(scenario: Scenario, inquiry: Inquiry) -> Json:
    """Return the code of every node that the plugin rejects, for tests that read no reason."""
    return {name: status[0] for name, status in _filter(scenario, inquiry).items()}


def _allocation(scenario: Scenario, inquiry: Inquiry) -> Json:
    """Return what each claim of the pod gets on the nodes that pass; its order does not matter."""
    passing = sorted({node.name for node in scenario.objects.nodes} - {*_filter(scenario, inquiry)})
    rows = {name: allocations_on(inquiry.attempt.state, name) for name in passing}
    if inquiry.pre_filter.status.rejected:
        return {}
    return {name: [_devices(row) for row in told] for name, told in rows.items() if told}


def _volumes(scenario: Scenario, inquiry: Inquiry) -> Json:
    """Return the volumes to bind and the claims to provision on the nodes that pass, if any."""
    state = inquiry.attempt.state.find(VOLUMES)
    if state is None or state.volumes is None:
        return {}
    answer: Json = {}
    for name in {node.name for node in scenario.objects.nodes} - {*_filter(scenario, inquiry)}:
        row = inquiry.snapshot.row_of(name)
        assert row is not None, f"the snapshot lacks node {name}"
        bindings, provisions = state.volumes.on_row(row)
        if bindings or provisions:
            answer[name] = {
                "bind": {claim.metadata.name: volume.metadata.name for claim, volume in bindings},
                "provision": sorted(claim.metadata.name for claim in provisions),
            }
    return answer


def _devices(row: Json) -> Json:
    names = ("request", "driver", "pool", "device")
    results = sorted([each[name] for name in names] for each in row["results"])
    answer: Json = {key: row[key] for key in ("claim", "extendedResources") if key in row}
    answer["devices"] = results
    consumed = [
        [each["request"], each["device"], each["consumedCapacity"]]
        for each in row["results"]
        if each.get("consumedCapacity")
    ]
    if consumed:
        answer["consumed"] = sorted(consumed, key=lambda each: (each[0], each[1]))
    if any(each.get("adminAccess") for each in row["results"]):
        answer["adminAccess"] = True
    return answer | {key: row[key] for key in ("nodeSelector",) if key in row}


def _extended(scenario: Scenario, inquiry: Inquiry) -> Json:
    """Return how many devices the pod's extended resources get by request, on nodes that pass."""
    return {
        name: dict(Counter(device[0] for row in rows for device in row["devices"]))
        for name, rows in _allocation(scenario, inquiry).items()
    }


def _score(scenario: Scenario, inquiry: Inquiry) -> Json:
    """Return the normalised score of every node that the vector names as feasible."""
    vector, snapshot = scenario.vector, inquiry.snapshot
    assert vector is not None
    names = vector.feasible or [node.name for node in scenario.objects.nodes]
    rows = np.array(snapshot.table.rows_of(names), np.int64)
    table = inquiry.scores(rows)
    scores = {} if table is None else table.plugins
    if vector.plugin not in scores:
        return {}  # PreScore said Skip
    given = scores[vector.plugin].normalized_n.tolist()
    return dict(zip((snapshot.names[row] for row in rows.tolist()), given, strict=True))


def _hint(scenario: Scenario, profile: Profile, info: PodInfo) -> str:
    """Return Queue if a hint of the plugin that could concern the change says so."""
    [event] = scenario.events
    old, new = change_of(event)
    for plugin in profile.plugins.values():
        if not isinstance(plugin, EventsToRegister):
            continue
        for registration in plugin.events_to_register():
            if registration.hint is None or not could_concern(registration.event, event):
                continue
            if registration.hint(info.pod, old, new):
                return "Queue"
    return "Skip"


def _candidates(evaluation: Evaluation) -> Json:
    """Return the victims on every node where preemption helps, and the budgets that they break."""
    report = evaluation.preemption or PreemptionReport()
    return {
        each.node_name: {
            "victims": sorted(victim.pod.metadata.name for victim in each.victims),
            "violations": each.violations,
        }
        for each in report.candidates
    }


def _chosen(evaluation: Evaluation) -> list[str]:
    """Return the nodes among which any may be chosen, as they are equal by every rule."""
    return sorted((evaluation.preemption or PreemptionReport()).ties)


def _post_filter(evaluation: Evaluation) -> Json:
    """Return the node that PostFilter nominates, and its status without success."""
    outcome = evaluation.post_filter
    assert outcome is not None, "some node takes the pod"
    nominated = outcome.result.nominated_node if outcome.result is not None else None
    answer: Json = {"nominated": nominated} if nominated else {}
    return answer if outcome.status.ok else answer | {"status": _listed(outcome.status)}


def _listed(status: Status) -> list[str]:
    return [status.code.text, *status.reasons]


_ANSWERS: Final[Mapping[str, Callable[[Scenario, Inquiry], Any]]] = {
    "preFilter": _pre_filter,
    "filter": _filter,
    "codes": _codes,
    "allocation": _allocation,
    "extended": _extended,
    "preFilterReasons": _pre_filter_reasons,
    "reasons": _reasons,
    "score": _score,
    "volumes": _volumes,
}
_PREEMPTION_ANSWERS: Final[Mapping[str, Callable[[Evaluation], Any]]] = {
    "candidates": _candidates,
    "chosen": _chosen,
    "postFilter": _post_filter,
}
_PREEMPTION: Final = frozenset(_PREEMPTION_ANSWERS)
