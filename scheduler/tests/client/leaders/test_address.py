"""What a Lease says about its holder, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.client.leaders import address
from moorage.client.leaders.address import ANNOTATION, LeaderAddress, leader_address, own_pod

LEADER = LeaderAddress("moorage-0_1", "acme/moorage-0", 10259, "PEM")


def lease(holder: Any, annotations: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}, "spec": {"holderIdentity": holder}}


def test_the_holder_is_read_as_it_was_written() -> None:
    assert leader_address(lease("moorage-0_1", LEADER.annotations)) == LEADER


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(lease("kube-scheduler_2", LEADER.annotations), id="another holder since"),
        pytest.param(lease("", LEADER.annotations), id="released"),
        pytest.param(lease("x", None), id="no annotations"),
        pytest.param(lease("x", {ANNOTATION: "no JSON"}), id="no JSON"),
        pytest.param(lease("x", {ANNOTATION: '{"holder": 1}'}), id="another type"),
        pytest.param(lease("", {ANNOTATION: '{"holder": ""}'}), id="nobody"),
        pytest.param({}, id="an empty object"),
    ],
)
def test_no_address_is_found(found: dict[str, Any]) -> None:
    assert leader_address(found) is None


def test_the_pod_is_known_from_the_environment_or_its_service_account(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    monkeypatch.delenv("POD_NAME", raising=False)
    monkeypatch.setattr(address, "SERVICE_ACCOUNT_DIR", tmp_path)
    monkeypatch.setattr("socket.gethostname", lambda: "host-1")
    assert own_pod() == ""
    (tmp_path / "namespace").write_text("acme\n")
    assert own_pod() == "acme/host-1"
    monkeypatch.setenv("POD_NAMESPACE", "kube-system")
    monkeypatch.setenv("POD_NAME", "moorage-node-1")
    assert own_pod() == "kube-system/moorage-node-1"
