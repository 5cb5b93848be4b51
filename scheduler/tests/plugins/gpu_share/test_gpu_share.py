"""GpuShare: rejections, the chosen devices, the account of devices, and the written annotation."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.errors import ApiError, ConfigError
from moorage.config.args import default_args, read_args
from moorage.config.plugin_args_gpu import GpuShareArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Code, Status
from moorage.plugins.gpu_share.sharing import device_columns
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import cluster, handle, make, node, pod, rejections
from scheduler.tests.plugins.gpu_share.test_asking import annotated

NEVER, LATER = "UnschedulableAndUnresolvable", "Unschedulable"
MODEL = "alibabacloud.com/gpu-card-model"


def gpus(name: str, count: int, model: str = "") -> Node:
    room = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(count)}
    return node(name, labels={MODEL: model} if model else {}, allocatable=room)


def three() -> Snapshot:
    """A node with two whole GPUs, one with a whole and a half GPU, one without GPUs."""
    half = annotated("half", count="1", milli="500", index="1")
    return cluster(
        gpus("two", 2, "T4"), gpus("half", 2, "V100"), node("none"), pods={"half": [half]}
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(pod(), {}, id="a pod without GPUs"),
        pytest.param(
            annotated(count="1"),
            {"none": (NEVER, ("node(s) had fewer GPUs than requested",))},
            id="one GPU",
        ),
        pytest.param(
            annotated(count="2"),
            {
                "half": (LATER, ("node(s) didn't have enough wholly free GPUs",)),
                "none": (NEVER, ("node(s) had fewer GPUs than requested",)),
            },
            id="two GPUs",
        ),
        pytest.param(
            annotated(count="1", milli="500", card_model="V100|A10"),
            {
                "two": (NEVER, ("node(s) had no GPU of a requested model",)),
                "none": (NEVER, ("node(s) had fewer GPUs than requested",)),
            },
            id="a share of a model",
        ),
    ],
)
def test_rejections(asked, expected):
    assert rejections("GpuShare", three(), asked) == expected


def test_a_share_that_no_device_has_left():
    full = [annotated(f"p{d}", count="1", milli="700", index=str(d)) for d in (0, 1)]
    snapshot = cluster(gpus("a", 2), pods={"a": full})
    assert rejections("GpuShare", snapshot, annotated("q", milli="300")) == {}
    assert rejections("GpuShare", snapshot, annotated("q", milli="301")) == {
        "a": (LATER, ("node(s) had no GPU with a large enough free share",))
    }


def test_a_request_that_is_not_understood_is_rejected_with_its_text():
    plugin, _ = make("GpuShare", snapshot := three())
    _, status = plugin.pre_filter(CycleState(), PodInfo(annotated(count="no")), snapshot)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ('annotation alibabacloud.com/gpu-count is "no", not a whole number',)


def reserve(plugin: Any, snapshot: Snapshot, asked: Pod, node_name: str) -> Code:
    snapshot.table.add_pod(asked, node_name)
    status: Status = plugin.reserve(CycleState(), PodInfo(asked), node_name)
    return status.code


def free(snapshot: Snapshot) -> list[list[int]]:
    devices = device_columns(snapshot, GpuShareArgs())
    devices.follow()
    found: list[list[int]] = devices.free_nd.tolist()
    return found


def test_reserve_takes_the_fullest_device_with_room_and_unreserve_gives_it_back():
    plugin, _ = make("GpuShare", snapshot := three())
    asked = annotated("new", milli="400")
    assert reserve(plugin, snapshot, asked, "half") is Code.SUCCESS
    assert free(snapshot) == [[1000, 1000], [1000, 100], [-1, -1]]
    snapshot.table.remove_pod("uid-new")
    plugin.unreserve(CycleState(), PodInfo(asked), "half")
    plugin.unreserve(CycleState(), PodInfo(asked), "half")
    assert free(snapshot) == [[1000, 1000], [1000, 500], [-1, -1]]


def test_whole_gpus_are_the_lowest_free_devices():
    plugin, _ = make("GpuShare", snapshot := cluster(gpus("a", 4)))
    reserve(plugin, snapshot, annotated("share", milli="100"), "a")
    assert reserve(plugin, snapshot, annotated("two", count="2"), "a") is Code.SUCCESS
    assert free(snapshot) == [[900, 0, 0, 1000]]
    assert reserve(plugin, snapshot, annotated("more", count="2"), "a") is Code.UNSCHEDULABLE


def test_profiles_share_the_account_of_devices():
    one, _ = make("GpuShare", snapshot := cluster(gpus("a", 1)))
    make("GpuShare", snapshot)
    reserve(one, snapshot, annotated("p", count="1"), "a")
    expected = {"a": (LATER, ("node(s) didn't have enough wholly free GPUs",))}
    assert rejections("GpuShare", snapshot, annotated("q", count="1")) == expected


def test_devices_follow_pods_nodes_and_trials():
    snapshot = cluster(gpus("a", 2), gpus("b", 1))
    assert free(snapshot) == [[1000, 1000], [1000, -1]]
    snapshot.table.add_pod(annotated("p", count="1", index="1"), "a")
    assert free(snapshot) == [[1000, 0], [1000, -1]]
    with snapshot.trial() as trial:
        trial.remove_pod("uid-p")
        trial.add_pod(PodInfo(annotated("q", milli="300")), 1)
        assert free(snapshot) == [[1000, 1000], [700, -1]]
    assert free(snapshot) == [[1000, 0], [1000, -1]]
    snapshot.table.remove_node("b")
    snapshot.table.update_node(gpus("a", 3))
    assert free(snapshot) == [[1000, 0, 1000]]


def test_an_annotation_written_later_is_followed():
    snapshot = cluster(gpus("a", 2), pods={"a": [annotated("p", milli="300")]})
    assert free(snapshot) == [[700, 1000]]
    snapshot.table.update_pod(annotated("p", milli="300", index="1"), "a")
    assert free(snapshot) == [[1000, 700]]


class Objects:
    """Takes patches; answers with an error where one is given."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.patches: list[tuple[str, str, Any]] = []
        self.problem = problem

    async def patch(self, resource: Any, name: str, body: bytes, **how: Any) -> dict[str, object]:
        self.patches.append((resource.plural, f"{how['namespace']}/{name}", json.loads(body)))
        if self.problem is not None:
            raise self.problem
        return {}


def bound_with(objects: Objects) -> tuple[Any, PodInfo]:
    snapshot = cluster(gpus("a", 4))
    plugin, _ = make("GpuShare", snapshot, client=SimpleNamespace(objects=objects))
    asked = annotated("p", count="2")
    assert reserve(plugin, snapshot, asked, "a") is Code.SUCCESS
    return plugin, PodInfo(asked)


def test_pre_bind_writes_the_chosen_devices():
    objects = Objects()
    plugin, asked = bound_with(objects)
    assert plugin.pre_bind_pre_flight(CycleState(), asked, "a").code is Code.SUCCESS
    assert asyncio.run(plugin.pre_bind(CycleState(), asked, "a")).code is Code.SUCCESS
    annotations = {"alibabacloud.com/gpu-index": "0-1"}
    body = {"metadata": {"uid": "uid-p", "annotations": annotations}}
    assert objects.patches == [("pods", "default/p", body)]


def test_a_write_that_fails_ends_the_binding():
    plugin, asked = bound_with(Objects(ApiError(403, "Forbidden", "no")))
    status = asyncio.run(plugin.pre_bind(CycleState(), asked, "a"))
    assert status.code is Code.ERROR
    assert status.message.startswith("writing the chosen GPUs of pod default/p: ")


def test_a_pod_without_gpus_has_nothing_to_write():
    plugin, _ = make("GpuShare", three())
    status = plugin.pre_bind_pre_flight(CycleState(), PodInfo(pod()), "two")
    assert status.code is Code.SKIP


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        pytest.param(
            "GpuShare",
            {"countAnnotation": "", "milliAnnotation": "x/y", "modelAnnotation": "x/y"},
            [
                "args.countAnnotation: Required value",
                'args.modelAnnotation: Duplicate value: "x/y", as milliAnnotation',
            ],
            id="names that are missing or the same",
        ),
        pytest.param(
            "GpuShare",
            {"countResources": []},
            ["args.countResources: Required value"],
            id="no resource that counts devices",
        ),
        pytest.param(
            "GpuFragmentation",
            {"typicalPods": []},
            ["args.typicalPods: Required value: the kinds of pods that are expected"],
            id="no typical pods",
        ),
        pytest.param(
            "GpuLookahead",
            {
                "typicalPods": [
                    {"gpus": 1, "gpuMilli": 0, "share": 1},
                    {"gpus": 2, "gpuMilli": 500, "share": 1},
                    {"gpus": 0, "gpuMilli": 5, "cpuMilli": -1, "share": 0},
                ],
                "cpuSlack": 0,
                "pressureWeight": -1,
            },
            [
                "args.typicalPods[0].gpuMilli: Invalid value: 0: must be 1 to 1000",
                "args.typicalPods[1].gpuMilli: Invalid value: 500: must be 1000 for more than one "
                "GPU",
                "args.typicalPods[2].cpuMilli: Invalid value: -1: must be at least 0",
                "args.typicalPods[2].gpuMilli: Invalid value: 5: must be 0 for pods without GPUs",
                "args.typicalPods[2].share: Invalid value: 0: must be greater than 0",
                "args.cpuSlack: Invalid value: 0: must be greater than 0",
                "args.pressureWeight: Invalid value: -1: must be at least 0",
            ],
            id="every fault is listed",
        ),
    ],
)
def test_arguments_are_checked(plugin, args, expected):
    faults: list[str] = []
    read_args(plugin, args, path="args", faults=faults)
    assert [fault.replace(".0:", ":") for fault in faults] == expected


def test_a_policy_needs_gpu_share():
    policy, _ = make("GpuBestFit", snapshot := three())
    status = policy.pre_score(CycleState(), PodInfo(pod()), snapshot.all())
    text = "GpuBestFit scores the GPUs that GpuShare counts: enable GpuShare"
    assert (status.code, status.message) == (Code.ERROR, text)


def test_a_profile_has_one_policy():
    given = handle(three())
    for name in ("GpuShare", "GpuBestFit", "GpuRandom"):
        entry = in_tree_registry().find(name)
        assert entry is not None
        if name != "GpuRandom":
            entry.make(default_args(name), given)
            continue
        with pytest.raises(ConfigError, match="GpuBestFit and GpuRandom both choose GPUs"):
            entry.make(None, given)
