"""Devices are searched for once where nothing that they are chosen by has changed."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.explain.explaining import explain
from moorage.plugins.claims.dynamic_resources import DynamicResources
from moorage.snapshot.view import NodeView
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, explained, inputs_of, pod_of, waiting
from scheduler.tests.explain.planted_devices import (
    device_class,
    offered,
    resource_claim,
    taken,
    using,
)

_NODES = 80


def _cluster() -> list[Manifest]:
    """Return nodes of which pods have every device; half of them have a taint as well."""
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    found = [device_class(), resource_claim(), waiting("p", resourceClaims=using())]
    for number in range(_NODES):
        name = f"n{number:02}"
        found += [
            node_manifest(name, taints=[taint] * (number % 2)),
            offered(name),
            resource_claim(f"of-{name}", status=taken(name, by=f"{name}-user")),
            bound(f"{name}-user", name, cpu="10m", resourceClaims=using(f"of-{name}")),
        ]
    return found


def test_every_node_is_asked_about_twice_as_it_is_and_without_allocations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No trial of a toleration or another rule asks about nodes without devices again."""
    asked: list[int] = []
    judge = DynamicResources.filter

    def counted(self: DynamicResources, state: Any, pod: Any, view: NodeView) -> Any:
        asked.append(len(view))
        return judge(self, state, pod, view)

    monkeypatch.setattr(DynamicResources, "filter", counted)
    inputs = inputs_of(*_cluster())
    explain(inputs.fill().core, pod_of(inputs, "p"))
    # The cycle asks about nodes without the taint, and then the others are asked about.
    assert sum(asked[:2]) == _NODES
    assert asked[2] == _NODES
    assert max(asked[3:]) <= 32, "a user's node, or a few nodes for the words"


def test_devices_that_others_have_are_the_cause_on_nodes_without_another() -> None:
    """Half of the nodes have nothing else against the pod; a user's leaving is a suggestion."""
    found = explained(*_cluster())
    assert found.sentence == (
        f"would fit on {_NODES // 2} nodes of {_NODES} but for its resource claim c (device class "
        f"gpu), whose devices on these nodes other pods have (it asks for 1; pods "
        "default/n00-user, default/n02-user, default/n04-user and 29 more have 32)"
    )
    assert [each.delete for each in found.suggestions if each.kind == "evict"] == [
        "default/n00-user",
    ]


def test_a_question_leaves_claims_as_they_are() -> None:
    """Devices are given back on trial only."""
    inputs = inputs_of(*_cluster())
    core = inputs.fill().core
    before = list(core.snapshot.listers.resource_claims.all())
    explain(core, pod_of(inputs, "p"))
    again = explain(core, pod_of(inputs, "p"))
    assert list(core.snapshot.listers.resource_claims.all()) == before
    assert again.sentence.startswith(f"would fit on {_NODES // 2} nodes of {_NODES}")
