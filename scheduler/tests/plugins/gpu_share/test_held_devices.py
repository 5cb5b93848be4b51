"""The GPUs that bound pods hold, by their annotations, and what pods so take of their nodes."""

from __future__ import annotations

import pytest

from moorage.framework.insight.held_devices import HeldDevice
from moorage.plugins.gpu_share.asking import gpus_by_default_names, node_requests
from scheduler.tests.plugins.builders import node, pod
from scheduler.tests.plugins.gpu_share.test_asking import annotated
from scheduler.tests.plugins.gpu_share.test_gpu_share import gpus

GPU = "nvidia.com/gpu"
HALF = 500_000_000


@pytest.mark.parametrize(
    ("holder", "held", "taken"),
    [
        pytest.param(pod(), [], None, id="a pod without GPUs"),
        pytest.param(
            annotated(count="1", milli="460", index="3"), [("3", 460)], 460_000_000, id="a share"
        ),
        pytest.param(
            annotated(count="2", index="0-3"),
            [("0", 1000), ("3", 1000)],
            2 * 10**9,
            id="whole GPUs of an annotation",
        ),
        pytest.param(
            annotated(count="1", milli="460"), [], None, id="a pod for which none were chosen"
        ),
        pytest.param(
            annotated(index="0-1", requests={GPU: "2"}),
            [("0", 1000), ("1", 1000)],
            2 * 10**9,
            id="GPUs that are requested as well count once",
        ),
        pytest.param(pod(requests={GPU: "2"}), [], 2 * 10**9, id="GPUs that kubelet chooses"),
    ],
)
def test_what_a_pod_holds_and_takes(holder, held, taken):
    host = gpus("host", 4)
    assert gpus_by_default_names(holder, host) == tuple(
        HeldDevice(GPU, device, milli) for device, milli in held
    )
    assert node_requests(holder, host).get(GPU) == taken


def test_a_node_without_gpus_has_none_to_hold():
    holder = annotated(count="1", milli="500", index="0")
    assert gpus_by_default_names(holder, node("host")) == ()
    assert node_requests(holder, None).get(GPU) is None
