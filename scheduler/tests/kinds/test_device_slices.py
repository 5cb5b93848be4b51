"""Scope: the rules that kube-apiserver has for resource slices."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.kinds.kind import Obj
from scheduler.tests.kinds.builders import create_errors, named
from scheduler.tests.kinds.test_device_rules import C_NAME
from scheduler.tests.kinds.test_pod_validation import LABEL, QUALIFIED
from scheduler.tests.kinds.test_scheduling_rules import SUBDOMAIN


def slice_(*devices: Obj, **spec: Any) -> Obj:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    base: Obj = {"driver": "d.com", "pool": pool, "allNodes": True}
    if devices:
        base["devices"] = list(devices)
    return named("resourceslices", spec=base | spec)


def device(**fields: Any) -> Obj:
    return {"name": "a", **fields}


def capacity(value: Any = "10", *, shared: bool = True, **policy: Any) -> Obj:
    found = {"memory": {"value": value, "requestPolicy": policy}}
    return slice_(device(capacity=found, allowMultipleAllocations=shared))


def term(key: str) -> Obj:
    return {"matchExpressions": [{"key": key, "operator": "Exists"}]}


WHERE = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
WHERE_DEVICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
D = "spec.devices[0]"
P = f"{D}.capacity[memory].requestPolicy"
COUNTERS = {"m": {"value": "1"}}
APART = {"allNodes": None, "perDeviceNodeSelection": True}
SLICES = [
    pytest.param(slice_(device()), [], id="a plain device"),
    pytest.param(slice_(), [], id="no device"),
    pytest.param(
        slice_(device(), pool={"name": "p/Q", "generation": 1, "resourceSliceCount": 1}),
        [f'spec.pool.name: Invalid value: "Q": {SUBDOMAIN}'],
        id="an odd pool",
    ),
    pytest.param(
        slice_(device(), driver=f"{'a' * 64}"),
        ["spec.driver: Too long: may not be more than 63 bytes"],
        id="a long driver",
    ),
    pytest.param(slice_(allNodes=None), [f"spec: Required value: {WHERE}"], id="no nodes"),
    pytest.param(
        slice_(allNodes=False, nodeName=""),
        [
            'spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string',
            "spec.allNodes: Invalid value: false: must be either unset or set to true",
            f"spec: Required value: {WHERE}",
        ],
        id="nodes that say nothing",
    ),
    pytest.param(
        slice_(nodeName="n", nodeSelector={"nodeSelectorTerms": [term("a"), term("b")]}),
        [
            "spec.nodeSelector.nodeSelectorTerms: Invalid value: "
            '[{"matchExpressions":[{"key":"a","operator":"Exists"}]},'
            '{"matchExpressions":[{"key":"b","operator":"Exists"}]}]: must have exactly one node '
            "selector term",
            'spec: Invalid value: "{`nodeName`, `nodeSelector`, `allNodes`}": '
            f"{WHERE}, but multiple fields are set",
        ],
        id="nodes in three ways",
    ),
    pytest.param(
        slice_(device(), **APART), [f"{D}: Required value: {WHERE_DEVICE}"], id="a device nowhere"
    ),
    pytest.param(
        slice_(device(nodeName="n", allNodes=True), **APART),
        [f'{D}: Invalid value: "{{`nodeName`, `allNodes`}}": {WHERE_DEVICE}'],
        id="a device in two places",
    ),
    pytest.param(
        slice_(device(nodeName="n")),
        [
            f"{D}: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set "
            "if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        ],
        id="a device in a place of its own",
    ),
    pytest.param(
        slice_(device(), sharedCounters=[{"name": "c", "counters": COUNTERS}]),
        ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
        id="counters and devices",
    ),
    pytest.param(
        slice_(sharedCounters=[{"name": "C", "counters": {"M": {"value": 1}}}, {"name": "d"}]),
        [
            f'spec.sharedCounters[0].name: Invalid value: "C": {LABEL}',
            f'spec.sharedCounters[0].counters: Invalid value: "M": {LABEL}',
            "spec.sharedCounters[1].counters: Required value",
        ],
        id="odd counters",
    ),
    pytest.param(
        slice_(device(consumesCounters=[{"counterSet": "c"}, {"counters": COUNTERS}])),
        [
            f"{D}.consumesCounters[0].counters: Required value",
            f"{D}.consumesCounters[1].counterSet: Required value",
        ],
        id="a device that consumes nothing",
    ),
    pytest.param(
        slice_(device(taints=[{"key": "a", "effect": "Nope"}, {"key": "", "value": "b c"}])),
        [
            f'{D}.taints[0].effect: Unsupported value: "Nope": supported values: "NoExecute", '
            '"NoSchedule", "None"',
            f'{D}.taints[1].key: Invalid value: "": name part must be non-empty',
            f'{D}.taints[1].key: Invalid value: "": {QUALIFIED}',
            f'{D}.taints[1].value: Invalid value: "b c": a valid label must be an empty string or '
            "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            f"{D}.taints[1].effect: Required value",
        ],
        id="odd taints",
    ),
    pytest.param(
        slice_(*[device(taints=[{"key": "a", "effect": "NoSchedule"}])] * 65),
        ["spec.devices: Too many: 65: must have at most 64 items"],
        id="more devices with taints than may be",
    ),
    pytest.param(
        slice_(
            device(
                attributes={
                    "a/b/c": {"int": 1},
                    "/x": {"int": 1},
                    "d.com/": {"int": 1},
                    "9": {"int": 1},
                    "x" * 33: {"int": 1},
                    "none": {},
                    "both": {"int": 1, "bool": True},
                    "long": {"string": "x" * 65},
                    "version": {"version": "1.0"},
                }
            )
        ),
        [
            f'{D}.attributes: Invalid value: "a/b/c": must not contain more than one slash',
            f'{D}.attributes: Invalid value: "": the domain must not be empty',
            f'{D}.attributes: Invalid value: "": the name must not be empty',
            f'{D}.attributes: Invalid value: "9": {C_NAME}',
            f"{D}.attributes: Too long: may not be more than 32 bytes",
            f'{D}.attributes[none]: Invalid value: "": exactly one value must be specified',
            f'{D}.attributes[both]: Invalid value: {{"int":1,"bool":true}}: exactly one value must '
            "be specified",
            f"{D}.attributes[long].string: Too long: may not be more than 64 bytes",
            f'{D}.attributes[version].version: Invalid value: "1.0": must be a string compatible '
            "with semver.org spec 2.0.0",
        ],
        id="odd attributes",
    ),
    pytest.param(
        slice_(device(capacity={"a b": {"value": "1"}})),
        [f'{D}.capacity: Invalid value: "a b": {C_NAME}'],
        id="an odd capacity",
    ),
    pytest.param(
        capacity(shared=False, default="1"),
        [f"{P}: Forbidden: allowMultipleAllocations must be true"],
        id="a policy of a device for one claim",
    ),
    pytest.param(capacity(default="2", validValues=["1", "2"]), [], id="a policy of values"),
    pytest.param(
        capacity(default="3", validValues=["2", "1", "20", "2"]),
        [
            f'{P}.validValues[1]: Invalid value: "1": values must be sorted in ascending order',
            f'{P}.validValues[3]: Invalid value: "2": values must be sorted in ascending order',
            f'{P}.validValues[2]: Invalid value: "20": option is larger than capacity value: 10',
            f'{P}.validValues[3]: Duplicate value: "2"',
            f'{P}.validValues: Invalid value: "3": default value is not valid according to the '
            "requestPolicy",
        ],
        id="values that are no choice",
    ),
    pytest.param(
        capacity(validRange={"min": "1"}),
        [f"{P}.default: Required value: required when validRange is defined"],
        id="a range without a default",
    ),
    pytest.param(
        capacity(default="1", validValues=["1"], validRange={"min": "1"}),
        [
            f'{P}: Forbidden: exactly one policy can be specified, cannot specify "validValues" '
            'and "validRange" at the same time'
        ],
        id="two policies",
    ),
    pytest.param(
        capacity(default="4", validRange={"min": "2", "max": "8", "step": "2"}),
        [],
        id="a range with steps",
    ),
    pytest.param(
        capacity(default="1", validRange={"min": "20", "max": "15", "step": "4"}),
        [
            f'{P}.validRange.min: Invalid value: "20": min is larger than capacity value: 10',
            f'{P}.validRange.default: Invalid value: "1": default is less than min: 20',
            f'{P}.validRange.max: Invalid value: "20": min is larger than max: 15',
            f'{P}.validRange.max: Invalid value: "15": max is larger than capacity value: 10',
            f'{P}.validRange.step: Invalid value: "4": one step 4 is larger than capacity value: '
            "10",
            f'{P}.validRange.step: Invalid value: "1": value is not a multiple of a given step (4) '
            "from (20)",
            f'{P}.validRange.step: Invalid value: "15": value is not a multiple of a given step '
            "(4) from (20)",
        ],
        id="a range of nothing",
    ),
    pytest.param(
        slice_(device(bindingConditions=["a", "a"], bindingFailureConditions=["a", "b c"])),
        [
            f'{D}.bindingFailureConditions[1]: Invalid value: "b c": {QUALIFIED}',
            f'{D}.bindingConditions[1]: Duplicate value: "a"',
            f'{D}.bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must '
            "not overlap with bindingConditions",
        ],
        id="conditions that contradict each other",
    ),
    pytest.param(
        slice_(device(bindingConditions=["a"])),
        [
            f"{D}.bindingFailureConditions: Invalid value: []: bindingFailureConditions are "
            "required to use bindingConditions"
        ],
        id="conditions without failures",
    ),
]


@pytest.mark.parametrize(("obj", "messages"), SLICES)
def test_a_resource_slice_gets_the_errors_of_kube_apiserver(obj, messages):
    assert create_errors("resourceslices", obj) == messages
