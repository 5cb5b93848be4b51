"""Arguments of in-tree plugins: defaults, strictness, and every fault in Kubernetes' words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.config import args as args_module
from moorage.config.args import default_args, example_args, read_args
from moorage.config.plugin_args import (
    ARGS_KINDS,
    Args,
    ArgsKind,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    with_defaults,
)

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
RANGE = "not in valid range"


def strategy(**fields: Any) -> dict[str, Any]:
    return {"scoringStrategy": {"type": "LeastAllocated", **fields}}


def ratio(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": at, "score": score} for at, score in points]
    return {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "requestedToCapacityRatio": {"shape": shape},
        }
    }


def spread(**fields: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"defaultingType": "List", "defaultConstraints": [{**constraint, **fields}]}


def added(expression: dict[str, Any]) -> dict[str, Any]:
    term = {"matchExpressions": [expression]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"addedAffinity": rule}


SHAPE = "args.scoringStrategy.requestedToCapacityRatio.shape"
CASES: list[Any] = [
    pytest.param(
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 101},
        [
            f"args.minCandidateNodesPercentage: Invalid value: 101: {RANGE} [0, 100]",
        ],
        id="preemption: more than all nodes",
    ),
    pytest.param(
        "DefaultPreemption",
        {"minCandidateNodesAbsolute": -1},
        [
            f"args.minCandidateNodesAbsolute: Invalid value: -1: {RANGE} [0, inf)",
        ],
        id="preemption: less than no nodes",
    ),
    pytest.param(
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
        [
            "args.minCandidateNodesPercentage: Invalid value: 0: "
            "cannot be zero at the same time as minCandidateNodesAbsolute",
            "args.minCandidateNodesAbsolute: Invalid value: 0: "
            "cannot be zero at the same time as minCandidateNodesPercentage",
        ],
        id="preemption: no node at all",
    ),
    pytest.param(
        "DynamicResources",
        {"filterTimeout": "-1s", "bindingTimeout": "10ms"},
        [
            'args.filterTimeout: Invalid value: "-1s": must be zero or positive',
            'args.bindingTimeout: Invalid value: "10ms": must be at least 1 second',
        ],
        id="devices: timeouts out of bounds",
    ),
    pytest.param(
        "InterPodAffinity",
        {"hardPodAffinityWeight": 101},
        [
            f"args.hardPodAffinityWeight: Invalid value: 101: {RANGE} [0, 100]",
        ],
        id="pod affinity: weight",
    ),
    pytest.param(
        "NodeAffinity",
        added({"key": "k", "operator": "Near"}),
        [
            "args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution."
            'nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "Near" '
            "is not a valid node selector operator",
        ],
        id="node affinity: unknown operator",
    ),
    pytest.param(
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": "cpu", "weight": 2}, {"name": "cpu", "weight": 1}]},
        [
            "args.resources[0].weight: Invalid value: 2: must be 1",
            'args.resources[1].name: Duplicate value: "cpu"',
        ],
        id="balance: weight and duplicate",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"ignoredResources": ["-x"]},
        [
            f'args.ignoredResources[0]: Invalid value: "-x": {NAME_RULE}',
        ],
        id="fit: a resource that cannot be",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"ignoredResourceGroups": ["a.io/b"]},
        [
            'args.ignoredResourceGroups[0]: Invalid value: "a.io/b": '
            "resource group name can't contain '/'",
        ],
        id="fit: a group with a slash",
    ),
    pytest.param(
        "NodeResourcesFit",
        strategy(type="Best"),
        [
            'args.scoringStrategy.type: Unsupported value: "Best": supported values: '
            '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"',
        ],
        id="fit: unknown strategy",
    ),
    pytest.param(
        "NodeResourcesFit",
        strategy(resources=[{"name": "cpu", "weight": 101}]),
        [
            "args.scoringStrategy.resources[0].weight: Invalid value: 101: "
            "resource weight of cpu not in valid range (0, 100]",
        ],
        id="fit: weight too great",
    ),
    pytest.param(
        "NodeResourcesFit",
        strategy(type="RequestedToCapacityRatio"),
        [
            "args.scoringStrategy.requestedToCapacityRatio: Required value: "
            "must be specified when type is RequestedToCapacityRatio",
        ],
        id="fit: ratio without shape",
    ),
    pytest.param(
        "NodeResourcesFit",
        strategy(requestedToCapacityRatio={"shape": []}),
        [
            "args.scoringStrategy.requestedToCapacityRatio: Forbidden: "
            "must be nil when type is not RequestedToCapacityRatio",
        ],
        id="fit: shape without ratio",
    ),
    pytest.param(
        "NodeResourcesFit",
        ratio(),
        [
            f"{SHAPE}: Required value: at least one point must be specified",
        ],
        id="fit: empty shape",
    ),
    pytest.param(
        "NodeResourcesFit",
        ratio((50, 1), (50, 11), (101, -1)),
        [
            f"{SHAPE}[1].utilization: Invalid value: 50: values must be sorted in increasing order",
            f"{SHAPE}[1].score: Invalid value: 11: {RANGE} [0, 10]",
            f"{SHAPE}[2].utilization: Invalid value: 101: {RANGE} [0, 100]",
            f"{SHAPE}[2].score: Invalid value: -1: {RANGE} [0, 10]",
        ],
        id="fit: every fault of a shape",
    ),
    pytest.param(
        "PodTopologySpread",
        {"defaultingType": "Any"},
        [
            'args.defaultingType: Unsupported value: "Any": supported values: "System", "List"',
        ],
        id="spread: unknown defaulting",
    ),
    pytest.param(
        "PodTopologySpread",
        {**spread(), "defaultingType": "System"},
        [
            'args.defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
        ],
        id="spread: constraints with system defaulting",
    ),
    pytest.param(
        "PodTopologySpread",
        spread(maxSkew=0, topologyKey="", whenUnsatisfiable="Maybe", labelSelector={}),
        [
            f"args.defaultConstraints[0].maxSkew: Invalid value: 0: {RANGE} (0, inf)",
            "args.defaultConstraints[0].topologyKey: Required value: can not be empty",
            'args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"',
            "args.defaultConstraints[0].labelSelector: Forbidden: "
            "constraint must not define a selector, as they deduced for each pod",
        ],
        id="spread: every fault of a constraint",
    ),
    pytest.param(
        "PodTopologySpread",
        {"defaultingType": "List", "defaultConstraints": spread()["defaultConstraints"] * 2},
        ['args.defaultConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"'],
        id="spread: the same constraint twice",
    ),
    pytest.param(
        "VolumeBinding",
        {"bindTimeoutSeconds": -1},
        [
            "args.bindTimeoutSeconds: Invalid value: -1: "
            "invalid BindTimeoutSeconds, should not be a negative value",
        ],
        id="volumes: negative timeout",
    ),
    pytest.param(
        "VolumeBinding",
        {"shape": [{"utilization": 0, "score": 11}]},
        ["args.shape[0].score: Invalid value: 11: not in valid range [0, 10]"],
        id="volumes: a score of the shape that is too high",
    ),
]


@pytest.mark.parametrize(("plugin", "raw", "expected"), CASES)
def test_faults(plugin, raw, expected):
    kind = ARGS_KINDS[plugin]
    assert kind.validate(msgspec.convert(raw, kind.type), "args") == expected


@pytest.mark.parametrize("plugin", sorted(ARGS_KINDS))
def test_defaults_have_no_fault(plugin):
    kind = ARGS_KINDS[plugin]
    assert kind.validate(with_defaults(kind.type()), "args") == []
    assert kind.type.__name__ == f"{plugin}Args"


@pytest.mark.parametrize("plugin", sorted(ARGS_KINDS))
def test_unknown_fields_are_refused(plugin):
    with pytest.raises(msgspec.ValidationError, match="unknown field `surprise`"):
        msgspec.convert({"surprise": 1}, ARGS_KINDS[plugin].type)


def test_open_weights_and_lists_are_filled_in():
    open_args = NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(
            type="LeastAllocated", resources=(ResourceSpec(name="cpu"),)
        )
    )
    expected = ScoringStrategy(
        type="LeastAllocated", resources=(ResourceSpec(name="cpu", weight=1),)
    )
    assert with_defaults(open_args) == NodeResourcesFitArgs(scoring_strategy=expected)
    empty = NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(type="LeastAllocated", resources=())
    )
    assert with_defaults(empty) == NodeResourcesFitArgs()
    assert with_defaults(NodeResourcesFitArgs(scoring_strategy=None)) == NodeResourcesFitArgs()


class _LimitArgs(Args, frozen=True, kw_only=True):
    limit: int


@pytest.mark.parametrize(
    ("example", "raw", "expected", "faults"),
    [
        pytest.param({"limit": 2}, {"limit": 3}, 3, 0, id="given"),
        pytest.param({"limit": 2}, {}, None, 1, id="left out"),
        pytest.param({"limit": 2}, None, None, 1, id="no arguments at all"),
        pytest.param({}, {"limit": 3}, 3, 0, id="a kind without an example"),
    ],
)
def test_an_argument_may_be_required(example, raw, expected, faults, monkeypatch):
    kind = ArgsKind(_LimitArgs, lambda _args, _path: [], example)
    monkeypatch.setattr(args_module, "_KINDS", {"Limit": kind})
    found: list[str] = []
    args = read_args("Limit", raw, path="args", faults=found)
    assert (getattr(args, "limit", None), len(found)) == (expected, faults), found
    assert all("limit" in fault for fault in found)
    assert default_args("Limit") is None
    if example:
        assert example_args("Limit") == _LimitArgs(limit=2)
    else:
        with pytest.raises(ValueError, match="limit"):
            example_args("Limit")
