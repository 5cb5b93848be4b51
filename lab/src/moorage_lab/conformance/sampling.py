"""Runs recorded sequences in which kube-scheduler filtered only a part of the nodes.

The mode "sequence-sampled" of the conformance runner: pods are scheduled in the order given, and
nodes come, go and change between them. Each row gives the order of the nodes, the start and end of
each search, and the nodes found.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.sampling import Rotation
from moorage.engine.scoring import run_scores
from moorage.engine.select_node import smallest_name
from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.conformance.recordings import Json, NodeChanges, Scenario
from moorage_lab.conformance.world import World, failed

_HEAD = 5
_LISTED = 12
"""Longer lists are recorded as a hash with their first and last entries."""


def run_sampled(scenario: Scenario, world: World) -> list[Json]:
    """Schedule the pending pods in their order and return one row for each."""
    changes: dict[int, list[NodeChanges]] = {}
    for change in scenario.changes:
        changes.setdefault(change.before, []).append(change)
    rows = []
    for index, info in enumerate(world.pending):
        for change in changes.get(index, ()):
            _apply(world, change)
        rows.append(_scheduled(world, info))
    return rows


def _apply(world: World, change: NodeChanges) -> None:
    table = world.snapshot.table
    for name in change.remove_nodes:
        table.remove_node(name)
    for node in change.add_nodes:
        table.add_node(node)
    for node in change.update_nodes:
        table.update_node(node)


def _scheduled(world: World, info: PodInfo) -> Json:
    row = world.unscheduled(info)
    if row is not None:
        return row
    profile, snapshot = world.profile(info.pod), world.snapshot
    assert profile is not None
    before = Rotation()
    before.start = world.rotation.start
    names = [snapshot.names[int(row)] for row in snapshot.search_order()]
    start = before.start % len(names)
    decision = world.cycles[profile.name].decide(info)
    result: Json = {
        "pod": info.key,
        "nodes": len(names),
        "orderSHA256": _hash(names),
        "head": [*names[start:], *names[:start]][:_HEAD],
        "start": start,
        "next": world.rotation.start,
        "evaluated": decision.evaluated,
    }
    if decision.outcome is not Outcome.BIND:
        return result | {"scoredSHA256": _hash(())} | failed(decision)
    result |= {"outcome": "scheduled"} | _chosen(world, profile, decision, before)
    world.assume(profile, decision)
    return result


def _chosen(world: World, profile: Profile, decision: Decision, before: Rotation) -> Json:
    """Search and score again without reuse; return the result and whether it agrees."""
    snapshot = world.snapshot
    cycle = Cycle(profile, snapshot, smallest_name, reuse=False, rotation=before)
    attempt = cycle.begin(decision.pod)
    search = cycle.search(attempt)
    feasible = snapshot.rows(search.view.row_numbers()[search.filtered.passed])
    order = cycle.in_order(search, feasible.row_numbers())
    names = [snapshot.names[int(row)] for row in order]
    scored = sorted(names, key=str.encode)
    total_n = run_scores(attempt, feasible).total_n
    best = feasible.row_numbers()[np.flatnonzero(total_n == total_n.max())]
    winners = sorted((snapshot.names[int(row)] for row in best), key=str.encode)
    row: Json = {
        "node": decision.node_name,
        "total": int(total_n.max()),
        "feasibleCount": decision.feasible,
        "scoredSHA256": _hash(scored),
        "winnersCount": len(winners),
        "winnersSHA256": _hash(winners),
    }
    short = len(scored) <= _LISTED
    row |= {"scored": scored} if short else {"scoredFirst": names[0], "scoredLast": names[-1]}
    row |= {"winners": winners} if len(winners) <= _LISTED else {}
    fresh = (winners[0], len(scored), before.start)
    reused = (decision.node_name, decision.feasible, world.rotation.start)
    return row if fresh == reused else row | {"reuse": f"the cycle says {reused}, afresh {fresh}"}


def _hash(names: Sequence[str]) -> str:
    return sha256("".join(f"{name}\n" for name in names).encode()).hexdigest()
