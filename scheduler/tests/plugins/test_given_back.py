"""Which failed bindings wake the pods that wait for what only the scheduler's memory held."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.plugins.claims.pod_claims import devices_given_back
from moorage.plugins.volumes.hints import given_back_hint
from scheduler.tests.plugins.builders import pod

CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}


@pytest.mark.parametrize(
    ("spec", "volumes", "devices"),
    [
        pytest.param({}, False, False, id="neither"),
        pytest.param({"volumes": [CLAIM]}, True, False, id="a claim"),
        pytest.param(
            {"volumes": [{"name": "v", "ephemeral": {}}]}, True, False, id="an ephemeral volume"
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]}, False, False, id="a volume of the node"
        ),
        pytest.param(
            {"resourceClaims": [{"name": "d", "resourceClaimName": "c"}]}, False, True, id="devices"
        ),
        pytest.param(
            {"requests": {"example.com/gpu": "1"}}, False, True, id="an extended resource"
        ),
        pytest.param({"requests": {"cpu": "1"}}, False, False, id="a resource of the node"),
    ],
)
def test_a_failed_binding_gives_back(spec: dict[str, Any], volumes: bool, devices: bool) -> None:
    failed, waiting = pod("failed", **spec), pod("waits")
    assert given_back_hint(waiting, failed, None) is volumes
    assert devices_given_back(waiting, failed, None) is devices
