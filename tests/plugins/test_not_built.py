"""Guards: which pods they hold, with what text, and at which points."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import NotBuiltError
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import SKIP, SUCCESS, Code, unresolvable
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
        pytest.param(
            volume(persistentVolumeClaim={"claimName": "c"}),
            dict.fromkeys(
                ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
                "spec.volumes[1].persistentVolumeClaim",
            ),
            id="a claim needs every volume plugin",
        ),
        pytest.param(
            volume(ephemeral={}),
            dict.fromkeys(("NodeVolumeLimits", "VolumeBinding"), "spec.volumes[1].ephemeral"),
            id="an ephemeral volume needs limits and binding",
        ),
        pytest.param(
            volume(gcePersistentDisk={"pdName": "d"}),
            dict.fromkeys(
                ("VolumeRestrictions", "NodeVolumeLimits"), "spec.volumes[1].gcePersistentDisk"
            ),
            id="a disk of a cloud needs restrictions and limits",
        ),
        pytest.param(
            volume(iscsi={"iqn": "q"}),
            {"VolumeRestrictions": "spec.volumes[1].iscsi"},
            id="iscsi needs restrictions only",
        ),
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


def test_filter_alone_holds_the_pod_too():
    snapshot = cluster(node("a"), node("b"))
    plugin, reasons = make("VolumeZone", snapshot)
    held = PodInfo(pod(**volume(persistentVolumeClaim={"claimName": "c"})))
    answer = plugin.filter(CycleState(), held, snapshot.all())
    assert answer.code_n.tolist() == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE] * 2
    assert "spec.volumes[1].persistentVolumeClaim" in reasons.reasons(int(answer.reason_n[1]))[0]
    assert plugin.filter(CycleState(), PodInfo(pod()), snapshot.all()) is None


def test_score_alone_never_places_a_pod_that_needs_the_plugin():
    snapshot = cluster(node())
    plugin, _ = make("VolumeBinding", snapshot)
    needing = PodInfo(pod(**volume(ephemeral={})))
    assert plugin.pre_score(CycleState(), PodInfo(pod()), snapshot.all()) == SKIP
    assert plugin.pre_score(CycleState(), needing, snapshot.all()).code is Code.ERROR
    with pytest.raises(NotBuiltError, match=r"spec\.volumes\[1\]\.ephemeral"):
        plugin.score(CycleState(), needing, snapshot.all())
    assert plugin.score(CycleState(), PodInfo(pod()), snapshot.all()).tolist() == [0]


def test_volume_binding_has_nothing_to_do_for_plain_pods_and_fails_on_others():
    plugin, _ = make("VolumeBinding")
    plain, state = PodInfo(pod()), CycleState()
    claiming = PodInfo(pod(**volume(ephemeral={})))
    assert plugin.reserve(state, plain, "n") == plugin.pre_bind(state, plain, "n") == SUCCESS
    assert plugin.pre_bind_pre_flight(state, plain, "n") == SKIP
    for method in (plugin.reserve, plugin.pre_bind, plugin.pre_bind_pre_flight):
        assert method(state, claiming, "n").code is Code.ERROR


def test_guards_wake_only_for_a_change_of_the_pod_itself():
    for entry in IN_TREE:
        if entry.built:
            continue
        plugin, _ = make(entry.name)
        (registration,) = plugin.events_to_register()
        assert registration.hint(pod("a"), pod("a"), pod("a")) is True
        assert registration.hint(pod("a"), pod("b"), pod("b")) is False
