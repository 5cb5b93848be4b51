"""Guards: which pods they hold, with what text, and at which points."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework.cycle_state import CycleState
from moorage.framework.status import SKIP, unresolvable
from moorage.plugins.in_tree import IN_TREE
from moorage.plugins.unbuilt import NEEDED_BY, unbuilt_needs
from moorage.snapshot.pod_info import PodInfo
from tests.plugins.builders import cluster, make, node, pod


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "plain"}, {"name": "v", **source}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {}, id="a plain pod needs nothing"),
        pytest.param(volume(configMap={"name": "c"}), {}, id="a config map needs nothing"),
        pytest.param(volume(image={"reference": "i"}), {}, id="an image volume needs nothing"),
        pytest.param(volume(ephemeral={}), {}, id="volumes are built"),
        pytest.param(
            {"affinity": {"podAntiAffinity": {}, "nodeAffinity": {}}}, {}, id="affinity is built"
        ),
        pytest.param(
            {"resourceClaims": [{"name": "r"}]},
            {"DynamicResources": "spec.resourceClaims"},
            id="claims for devices",
        ),
    ],
)
def test_needs(spec, expected):
    asked = pod(**spec)
    assert unbuilt_needs(asked) == expected
    snapshot = cluster(node())
    for name in NEEDED_BY:
        plugin, _ = make(name, snapshot)
        status = SKIP
        if name in expected:
            status = unresolvable(
                f"moorage does not implement {name} yet: pod uses {expected[name]}; "
                "leave the field out, or let kube-scheduler schedule this pod"
            )
        found = plugin.pre_filter(CycleState(), PodInfo(asked), snapshot)
        assert found == (None, status), name


def test_guards_wake_only_for_a_change_of_the_pod_itself():
    for entry in IN_TREE:
        if entry.built:
            continue
        plugin, _ = make(entry.name)
        (registration,) = plugin.events_to_register()
        assert registration.hint(pod("a"), pod("a"), pod("a")) is True
        assert registration.hint(pod("a"), pod("b"), pod("b")) is False
