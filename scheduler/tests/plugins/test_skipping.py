"""Plugins that declare which pods PreFilter skips: PreFilter skips these pods and writes no state.

What is made of it is tested in ``scheduler/tests/engine/reuse/test_shapes.py``.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.pod import TopologySpreadConstraint
from moorage.config.plugin_args import PodTopologySpreadArgs
from moorage.framework.capabilities import capabilities_of
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Code
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.plugins.builders import cluster, make, node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM: dict[str, Any] = {"topologyKey": "zone", "labelSelector": {}}
BROKEN = {"matchExpressions": [{"key": "app", "operator": "Like"}]}
WISH = {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}}


def spread(when: str, **more: Any) -> list[dict[str, Any]]:
    return [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": when, **more}]


SPREAD, AFFINITY = "PodTopologySpread", "InterPodAffinity"
ZONE, BINDING, LIMITS = "VolumeZone", "VolumeBinding", "NodeVolumeLimits"
CLASH = "VolumeRestrictions"
EVERYBODY = {SPREAD, AFFINITY, ZONE, BINDING, LIMITS, CLASH}

PODS = [
    pytest.param({}, EVERYBODY, id="a pod without constraints, affinity and volumes"),
    pytest.param(
        {"topology_spread_constraints": spread("ScheduleAnyway")},
        EVERYBODY,
        id="a soft spread constraint",
    ),
    pytest.param(
        {"topology_spread_constraints": spread("DoNotSchedule")},
        EVERYBODY - {SPREAD},
        id="a hard spread constraint",
    ),
    pytest.param(
        {"topology_spread_constraints": spread("DoNotSchedule", labelSelector=BROKEN)},
        EVERYBODY - {SPREAD},
        id="an invalid hard constraint",
    ),
    pytest.param({"affinity": WISH}, EVERYBODY, id="preferred affinity"),
    pytest.param(
        {"affinity": {"podAffinity": {REQUIRED: [TERM]}}},
        EVERYBODY - {AFFINITY},
        id="required affinity",
    ),
    pytest.param(
        {"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}},
        EVERYBODY - {AFFINITY},
        id="required anti-affinity",
    ),
    pytest.param(
        {"affinity": {"podAffinity": {REQUIRED: [{**TERM, "labelSelector": BROKEN}]}}},
        EVERYBODY - {AFFINITY},
        id="invalid affinity",
    ),
    pytest.param({"volumes": [{"name": "v", "emptyDir": {}}]}, EVERYBODY, id="an emptyDir volume"),
    pytest.param(
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        {SPREAD, AFFINITY},
        id="a claim",
    ),
    pytest.param(
        {"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]},
        EVERYBODY - {CLASH, LIMITS},
        id="a disk",
    ),
]


def camel(spec: dict[str, Any]) -> dict[str, Any]:
    renamed = {"topology_spread_constraints": "topologySpreadConstraints"}
    return {renamed.get(key, key): value for key, value in spec.items()}


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(False, id="in an empty cluster"),
        pytest.param(True, id="beside a pod with the same spec"),
    ],
)
@pytest.mark.parametrize(("spec", "expected"), PODS)
def test_a_plugin_that_declares_to_skip_does_skip(spec, expected, others):
    """A pod with terms of its own on a node makes that of InterPodAffinity depend on it."""
    there = {"n1": [pod("other", affinity={"podAntiAffinity": {REQUIRED: [TERM]}})]}
    snapshot = cluster(node("n1", labels={"zone": "a"}), pods=there if others else {})
    asked, said = PodInfo(pod("asked", **camel(spec))), set()
    for name in EVERYBODY:
        plugin = make(name, snapshot)[0]
        declared = capabilities_of(name, plugin)
        assert declared.skips_spec is not None
        skips = declared.skips_spec(asked)
        if skips:
            said.add(name)
            state = CycleState()
            holds = skips(snapshot) if callable(skips) else skips
            assert holds == (name != AFFINITY or not others)
            if holds:
                result, status = plugin.pre_filter(state, asked, snapshot)
                assert (result, status.code) == (None, Code.SKIP)
                assert vars_of(state) == {}
    assert said == expected


def test_a_nominated_pod_with_anti_affinity_ends_the_skipping():
    snapshot, asked = cluster(node("n1", labels={"zone": "a"})), PodInfo(pod("asked"))
    declared = capabilities_of(AFFINITY, make(AFFINITY, snapshot)[0])
    assert declared.skips_spec is not None
    skips = declared.skips_spec(asked)
    assert callable(skips)
    held = []
    for affinity in ({}, WISH, {"podAntiAffinity": {REQUIRED: [TERM]}}):
        snapshot.nominations = {"n1": [PodInfo(pod("other", affinity=affinity))]}
        held.append(skips(snapshot))
    assert held == [True, True, False]


def vars_of(state: CycleState) -> dict[Any, object]:
    return state._values


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        pytest.param("ScheduleAnyway", True, id="soft default constraints do not prevent a skip"),
        pytest.param("DoNotSchedule", False, id="hard default constraints prevent a skip"),
    ],
)
def test_default_constraints_apply_to_pods_without_constraints(when, expected):
    written = tuple(from_dict(TopologySpreadConstraint, each) for each in spread(when))
    args = PodTopologySpreadArgs(default_constraints=written, defaulting_type="List")
    snapshot = cluster(node())
    plugin = make(SPREAD, snapshot, args=args)[0]
    skips = plugin.skips_spec(PodInfo(pod()))
    assert (skips if isinstance(skips, bool) else skips(snapshot)) is expected
    soft = camel({"topology_spread_constraints": spread("ScheduleAnyway")})
    assert plugin.skips_spec(PodInfo(pod(**soft)))


def test_no_other_plugin_declares_that_it_skips():
    """A plugin that begins to is held to it by the tests above."""
    snapshot = cluster(node())
    names = {entry.name for entry in in_tree_registry()}
    declared = {name: capabilities_of(name, make(name, snapshot)[0]) for name in names}
    assert {name for name, each in declared.items() if each.skips_spec} == EVERYBODY
