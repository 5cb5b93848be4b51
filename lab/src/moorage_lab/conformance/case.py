"""Runs one recorded case through moorage's own plugins and engine.

Third stop of the conformance runner: `run_case` returns an answer in the shape of the recordings,
or `Unsupported` with the missing features. Single pods go through the engine's evaluation. A
sequence goes through the real scheduling cycle, which reuses answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from moorage.base.errors import ConfigError, NotBuiltError
from moorage.client.event_series import shorten
from moorage.config.defaults import default_config
from moorage.config.load import config_from_values
from moorage.config.merge import ProfileSpec, expand_profiles
from moorage.config.plugin_args import DefaultPreemptionArgs
from moorage.config.validation import is_not_built
from moorage.engine.decision import Decision, Outcome
from moorage.engine.evaluation import CycleError, Evaluation, evaluate
from moorage.engine.sampling import ALL
from moorage.engine.scoring import ScoreTable
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.preemption import PreemptionReport
from moorage.framework.registry import Registry
from moorage.framework.status import Code, Status
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.conformance.devices import allocations_on
from moorage_lab.conformance.extender import run_extenders
from moorage_lab.conformance.groups import run_groups
from moorage_lab.conformance.hints import run_changes, run_hints
from moorage_lab.conformance.needs import gates_of, mode_needs
from moorage_lab.conformance.recordings import Json, Scenario
from moorage_lab.conformance.sampling import run_sampled
from moorage_lab.conformance.vectors.functions import (
    run_capacity,
    run_node_order,
    run_normalize,
)
from moorage_lab.conformance.vectors.group_cycle import run_group_cycle
from moorage_lab.conformance.vectors.group_members import run_members
from moorage_lab.conformance.vectors.group_preemption import run_group_preemption
from moorage_lab.conformance.vectors.queue_script import run_queue
from moorage_lab.conformance.vectors.single_plugin import run_plugin, run_requests
from moorage_lab.conformance.world import World, failed, plain, signed

# Not recorded: the harness did not run these points.
_POINTS_NOT_RECORDED = frozenset(
    {
        "queueSort",
        "permit",
        "preBind",
        "bind",
        "postBind",
        "placementGenerate",
        "placementScore",
        "podGroupPostFilter",
    }
)


_VECTOR_MODES: Final[Mapping[str, Callable[[Scenario, Registry], Json]]] = {
    "plugin": run_plugin,
    "capacity": lambda scenario, _registry: run_capacity(scenario),
    "change": lambda scenario, _registry: run_changes(scenario),
    "groupCycle": lambda scenario, _registry: run_group_cycle(scenario),
    "groupPreemption": run_group_preemption,
    "members": lambda scenario, _registry: run_members(scenario),
    "nodeOrder": lambda scenario, _registry: run_node_order(scenario),
    "normalize": lambda scenario, _registry: run_normalize(scenario),
    "queue": lambda scenario, _registry: run_queue(scenario),
    "requests": lambda scenario, _registry: run_requests(scenario),
}
"""Modes of vectors of upstream's tests, which have no profiles."""


class Unsupported(msgspec.Struct, frozen=True):
    """A case that cannot be run yet, and the features it needs."""

    needs: tuple[str, ...]


def run_case(scenario: Scenario, registry: Registry) -> Json | Unsupported:
    """Run a scenario in its mode.

    Parameters
    ----------
    scenario
        The cluster and its pending pods.
    registry
        The known plugins.

    Returns
    -------
    dict or Unsupported
        The answer, in the shape of ``expected`` of the recordings.

    Raises
    ------
    ConfigError
        The scenario's configuration is wrong, beyond naming features that are not built.
    """
    needs = mode_needs(scenario)
    if needs:
        return Unsupported(tuple(needs))
    if scenario.mode in _VECTOR_MODES:
        return _VECTOR_MODES[scenario.mode](scenario, registry)
    try:
        specs = _specs(scenario, registry)
    except ConfigError as error:
        if all(map(is_not_built, error.faults)):
            return Unsupported(("configuration not built",))
        raise
    try:
        world = World(scenario, specs, registry)
    except NotBuiltError:
        return Unsupported(("plugin arguments not built",))
    answer: Json = {} if scenario.config is None else {"profiles": _profiles(specs)}
    if scenario.mode == "extender":
        extenders = config_from_values(scenario.config).extenders
        return answer | run_extenders(scenario, world, extenders)
    if scenario.mode == "hint":
        return answer | run_hints(scenario, world, registry)
    if scenario.mode == "podgroup":
        return answer | run_groups(world)
    if scenario.mode == "sequence-sampled":
        return answer | {"sequence": run_sampled(scenario, world)}
    if scenario.mode == "sequence":
        order = sorted(world.pending, key=lambda info: -info.priority)  # stable: then as given
        rows = [_scheduled(world, info, compact=scenario.compact) for info in order]
        return answer | {"sequence": rows}
    return answer | {"pods": [_judged(world, info) for info in world.pending]}


def _specs(scenario: Scenario, registry: Registry) -> dict[str, ProfileSpec]:
    """Return the profiles as the harness ran them: preemption tries every node.

    Every node is scored, too, except in recordings of sampling: there unset means 0.
    """
    config = scenario.config
    loaded = default_config() if config is None else config_from_values(config)
    sampled = scenario.mode == "sequence-sampled"
    if sampled and loaded.percentage_of_nodes_to_score is None:
        loaded = msgspec.structs.replace(loaded, percentage_of_nodes_to_score=0)
    gates = gates_of(scenario)
    specs = (_trying_every_node(s) for s in expand_profiles(loaded, registry, gates=gates))
    if not sampled:
        specs = (msgspec.structs.replace(s, percentage_of_nodes_to_score=ALL) for s in specs)
    return {spec.scheduler_name: spec for spec in specs}


def _trying_every_node(spec: ProfileSpec) -> ProfileSpec:
    """Let preemption try every node, as the harness did."""
    args = dict(spec.plugin_args)
    if "DefaultPreemption" in args:
        args["DefaultPreemption"] = DefaultPreemptionArgs(min_candidate_nodes_percentage=100)
    return msgspec.structs.replace(spec, plugin_args=args)


def _profiles(specs: Mapping[str, ProfileSpec]) -> Json:
    """Return the plugins by profile and point as recordings list them."""
    return {name: _points(spec) for name, spec in specs.items()}


def _points(spec: ProfileSpec) -> Json:
    points: Json = {
        point: list(names)
        for point, names in spec.points.items()
        if names and point not in _POINTS_NOT_RECORDED
    }
    if "score" in points:
        points["score"] = [
            {"name": name, "weight": spec.score_weights[name]} for name in points["score"]
        ]
    return points


def _judged(world: World, info: PodInfo) -> Json:
    """Judge one pod against the unchanged cluster."""
    row = world.unscheduled(info)
    if row is not None:
        return row
    profile = world.profile(info.pod)
    assert profile is not None
    try:
        found = evaluate(profile, world.snapshot, info)
    except CycleError as error:
        return {"pod": info.key, "outcome": f"error: {error.status.message}"}
    return {"pod": info.key, **_evaluated(found, info)}


def _scheduled(world: World, info: PodInfo, *, compact: bool) -> Json:
    """Schedule one pod of a sequence and count it on its node."""
    row = world.unscheduled(info)
    if row is not None:
        return row
    profile = world.profile(info.pod)
    assert profile is not None
    decision = world.cycles[profile.name].decide(info)
    if decision.outcome is not Outcome.BIND:
        return failed(decision)
    whole = evaluate(profile, world.snapshot, info)
    assert whole.scores is not None
    result: Json = {
        "pod": info.key,
        "outcome": "scheduled",
        "node": decision.node_name,
        "total": int(whole.scores.total_n.max()),
        "feasibleCount": decision.feasible,
    }
    result |= {"winnersCount": len(whole.winners)} if compact else {"winners": list(whole.winners)}
    result |= _disagreement(decision, whole)
    told = allocations_on(decision.state, decision.node_name)
    if told:
        result["allocation"] = told
    world.assume(profile, decision)
    return result


def _disagreement(decision: Decision, whole: Evaluation) -> Json:
    """Return a field that no recording has if the cycle and the evaluation disagree.

    The cycle reuses answers, the evaluation asks every plugin: both must agree.
    """
    assert whole.scores is not None
    fresh = (whole.winners[0], len(whole.feasible), int(whole.scores.total_n.max()))
    total = fresh[2] if decision.total_score is None else decision.total_score
    reused = (decision.node_name, decision.feasible, total)
    if fresh == reused:
        return {}
    return {"reuse": f"the cycle says {reused}, asking every plugin afresh {fresh}"}


# -- an evaluation in the format of the recordings ---------------------------------------------


def _evaluated(evaluation: Evaluation, info: PodInfo) -> Json:
    outcome = evaluation.pre_filter
    assert outcome is not None, "gated pods were sorted out before"
    row: Json = {
        "outcome": "scheduled" if evaluation.feasible else "unschedulable",
        "preFilter": _pre_filter(evaluation),
        "feasible": list(evaluation.feasible),
    }
    given = {name: allocations_on(evaluation.state, name) for name in evaluation.feasible}
    if any(given.values()):
        row["allocations"] = {name: told for name, told in given.items() if told}
    if outcome.status.rejected:
        row["preFilterFailure"] = signed(outcome.status)
    else:
        row |= _filtered(evaluation)
    if evaluation.scores is not None:
        row |= _scored(evaluation, evaluation.scores)
    plugins = _unschedulable_plugins(evaluation, info)
    if plugins:
        row["unschedulablePlugins"] = plugins
    if evaluation.diagnosis is not None:
        row["message"] = evaluation.diagnosis.message
        row |= _preempted(evaluation, evaluation.diagnosis, info)
    return row


def _preempted(evaluation: Evaluation, diagnosis: Diagnosis, info: PodInfo) -> Json:
    """Return the outcome of PostFilter; not recorded for pods unknown to the informers."""
    after = evaluation.post_filter
    if info.pod.spec.node_name:
        return {}
    if after is None:
        return {"event": shorten(diagnosis.message)}
    report = evaluation.preemption or PreemptionReport()
    row: Json = {"code": after.status.code.text, "candidates": _candidates(report)}
    if after.message:
        row["message"] = after.message
    if after.result is not None and after.result.nominated_node is not None:
        row["nominatedNode"] = after.result.nominated_node
    row["potentialNodes"] = sorted(report.potential, key=str.encode)
    if report.rejected:
        row["rejected"] = {node: _status_json(status) for node, status in report.rejected.items()}
    if len(report.ties) > 1:
        row["ties"] = list(report.ties)
    note = shorten(diagnosis.with_post_filter(after.message).message)
    return {"event": note, "preemption": row}


def _candidates(report: PreemptionReport) -> list[Json]:
    return [
        {
            "node": candidate.node_name,
            "victims": [victim.key for victim in candidate.victims],
            "numPDBViolations": candidate.violations,
        }
        for candidate in sorted(report.candidates, key=lambda each: each.node_name.encode())
    ]


def _status_json(status: Status) -> Json:
    return signed(status) if status.plugin else plain(status)


def _pre_filter(evaluation: Evaluation) -> Json:
    outcome = evaluation.pre_filter
    assert outcome is not None
    skipped = sorted(name for name, s in outcome.results.items() if s.code is Code.SKIP)
    failed = {name: plain(s) for name, s in outcome.results.items() if s.code is not Code.SKIP}
    result: Json = {"skipped": skipped}
    if failed:
        result["status"] = failed
    if outcome.restricted_by:
        result["nodeNames"] = {
            name: sorted(names, key=str.encode) for name, names in outcome.restricted_by.items()
        }
    return result


def _filtered(evaluation: Evaluation) -> Json:
    # Filter still runs on a nominated node that PreFilter left out, but that is not recorded.
    searched = {node: s for node, s in evaluation.filter.items() if node not in evaluation.excluded}
    row: Json = {
        "filter": {node: signed(status) for node, status in searched.items()},
        "filterPlugins": {
            plugin: {node: plain(status) for node, status in nodes.items()}
            for plugin, nodes in evaluation.by_plugin.items()
        },
    }
    if evaluation.excluded:
        row["filterExcluded"] = list(evaluation.excluded)
    if evaluation.nominated_shortcut:
        row["nominatedNodeShortcut"] = True
    return row


def _scored(evaluation: Evaluation, table: ScoreTable) -> Json:
    return {
        "scoreSkipped": list(evaluation.score_skipped) or None,
        "scores": {
            name: {
                "weight": scores.weight,
                "raw": scores.raw_n.tolist(),
                "normalized": scores.normalized_n.tolist(),
            }
            for name, scores in table.plugins.items()
        },
        "totals": table.total_n.tolist(),
        "winners": list(evaluation.winners),
    }


def _unschedulable_plugins(evaluation: Evaluation, info: PodInfo) -> list[str]:
    if evaluation.diagnosis is not None:
        return sorted(evaluation.diagnosis.unschedulable_plugins)
    if info.pod.status.nominated_node_name in evaluation.feasible:
        return []  # only the nominated node was filtered
    outcome = evaluation.pre_filter
    restricting = frozenset() if outcome is None else outcome.plugins
    return sorted(restricting | {status.plugin for status in evaluation.filter.values()})
