"""Parameters of workloads: where they go, and every fault of them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import ConfigError
from moorage_lab.bench.scheduler_perf.operations import (
    CreateAny,
    CreateNodes,
    CreatePods,
    CreatePodSets,
    CreateResourceDriver,
    Operation,
    Sleep,
)
from moorage_lab.bench.scheduler_perf.parameters import resolve


def pods(**fields: Any) -> CreatePods:
    """Return an operation that creates pods."""
    return CreatePods(opcode="createPods", **fields)


@pytest.mark.parametrize(
    ("operation", "params", "resolved"),
    [
        pytest.param(
            pods(count_param="$n", namespace="a"),
            {"n": 5},
            [pods(count_param="$n", count=5, namespace="a")],
            id="a count",
        ),
        pytest.param(
            pods(count_param="$n", count_multiplier_param="$m"),
            {"n": 5, "m": 3.0},
            [pods(count_param="$n", count_multiplier_param="$m", count=15)],
            id="a multiplied count",
        ),
        pytest.param(
            pods(steady_state_param="$s", duration_param="$d"),
            {"s": True, "d": "2s"},
            [pods(steady_state_param="$s", duration_param="$d", steady_state=True, duration="2s")],
            id="a steady state",
        ),
        pytest.param(
            CreateResourceDriver(opcode="createResourceDriver", max_claims_per_node_param="$c"),
            {"c": 10},
            [
                CreateResourceDriver(
                    opcode="createResourceDriver",
                    max_claims_per_node_param="$c",
                    max_claims_per_node=10,
                )
            ],
            id="devices of a node",
        ),
        pytest.param(
            CreateAny(opcode="createAny", template_params={"a": "$x", "b": "plain", "c": 1}),
            {"x": [1, 2]},
            [CreateAny(opcode="createAny", template_params={"a": [1, 2], "b": "plain", "c": 1})],
            id="parameters of a template",
        ),
        pytest.param(
            CreateAny(opcode="createAny", template_params={"a": "$x|7", "b": "$y|7", "c": "$z|"}),
            {"x": 1},
            [CreateAny(opcode="createAny", template_params={"a": 1, "b": "7", "c": ""})],
            id="parameters of a template with a default",
        ),
        pytest.param(
            CreatePodSets(
                opcode="createPodSets",
                count_param="$sets",
                namespace_prefix="ns",
                create_pods_op=pods(count_param="$n"),
            ),
            {"sets": 2, "n": 3},
            [
                pods(count_param="$n", count=3, namespace="ns-0"),
                pods(count_param="$n", count=3, namespace="ns-1"),
            ],
            id="sets of pods, taken apart",
        ),
    ],
)
def test_parameters_are_filled_in(
    operation: Operation, params: dict[str, Any], resolved: list[Operation]
) -> None:
    found = resolve([operation], params)
    assert (list(found.operations), found.unused) == (resolved, ())


def test_parameters_that_no_operation_uses_are_named() -> None:
    found = resolve([pods(count_param="$n")], {"n": 1, "z": 1, "a": 1})
    assert found.unused == ("a", "z")


def test_every_fault_of_parameters_is_told() -> None:
    operations = [
        CreateNodes(opcode="createNodes", count_param="$missing"),
        pods(count_param="$text", steady_state_param="$number"),
        pods(count_param="$negative"),
        Sleep(opcode="sleep", duration_param="$soon"),
        CreateAny(opcode="createAny", template_params={"a": "$absent"}),
        pods(count_param="$truth", steady_state=True),
    ]
    params = {"text": "x", "number": 1, "negative": -1, "soon": "soon", "truth": True}
    with pytest.raises(ConfigError) as told:
        resolve(operations, params)
    assert told.value.faults == (
        "op 0: parameter missing is undefined",
        "op 1: parameter text is 'x', which is not of type int",
        "op 1: parameter number is 1, which is not of type bool",
        "op 2: parameter negative is -1, which is negative",
        "op 3: parameter soon is no duration: invalid duration 'soon': write it like 15s or 1m30s",
        "op 4: parameter absent is undefined",
        "op 5: parameter truth is True, which is not of type int",
        "op 5: a steady state needs a duration",
    )
