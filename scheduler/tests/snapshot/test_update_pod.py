"""A newer version of a counted pod: which ones touch columns, and which leave them alone."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.snapshot.snapshot import Snapshot


def _pod(**changes: Any) -> Pod:
    values: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"app": "a"}},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            "nodeName": "n",
        },
        "status": {},
    }
    for path, value in changes.items():
        part, _, field = path.partition("__")
        values[part][field] = value
    return from_dict(Pod, values)


def _cluster() -> Snapshot:
    snapshot = Snapshot()
    for name in ("n", "other"):
        status = {"allocatable": {"cpu": "4", "pods": "10"}}
        snapshot.table.add_node(from_dict(Node, {"metadata": {"name": name}, "status": status}))
    snapshot.table.add_pod(_pod(), "n")
    return snapshot


@pytest.mark.parametrize(
    ("changes", "moved"),
    [
        pytest.param({"status__phase": "Running"}, False, id="a phase changes no column"),
        pytest.param({"status__podIP": "10.0.0.1"}, False, id="an address changes no column"),
        pytest.param({"metadata__labels": {"app": "b"}}, True, id="labels change columns"),
        pytest.param(
            {"metadata__deletionTimestamp": "2026-01-01T00:00:00Z"},
            True,
            id="a deletion timestamp changes columns",
        ),
        pytest.param(
            {"spec__containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
            True,
            id="requests change columns",
        ),
    ],
)
def test_only_versions_that_count_differently_touch_the_row(
    changes: dict[str, Any], moved: bool
) -> None:
    snapshot = _cluster()
    before = snapshot.table.pod_log.position
    new = _pod(**changes)
    snapshot.table.update_pod(new, "n")
    assert (snapshot.table.pod_log.position > before) is moved
    assert [info.pod for info in snapshot.pods(0)] == [new]
    fresh = Snapshot()
    for node in snapshot.table.nodes:
        fresh.table.add_node(node)
    fresh.table.add_pod(new, "n")
    assert snapshot.requested("cpu").tolist() == fresh.requested("cpu").tolist()


def test_a_pod_that_the_api_shows_elsewhere_moves() -> None:
    snapshot = _cluster()
    snapshot.table.update_pod(_pod(spec__nodeName="other"), "other")
    assert snapshot.pod_count.tolist() == [0, 1]
    assert snapshot.requested("cpu").tolist() == [0, 1000]


def test_a_pod_on_an_unknown_node_stays_hidden_in_its_newest_version() -> None:
    snapshot = _cluster()
    snapshot.table.remove_node("n")
    snapshot.table.update_pod(_pod(status__phase="Running"), "n")
    hidden = snapshot.table.pod_info("u")
    assert hidden is not None
    assert hidden.pod.status.phase == "Running"
    assert snapshot.pod_count.tolist() == [0]
