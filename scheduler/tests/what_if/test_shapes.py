"""Which nodes have one shape, how many shapes are tried, and what a limit leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api.node import Node
from moorage.base.clock import ManualClock
from moorage.cli.capacity.text import CapacityReport, report
from moorage.cli.rows.text import Shown
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.plugins.from_outside import with_plugins
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage.what_if.answering.answers import capacity
from moorage.what_if.capacity.shapes import SHAPES_MOST, differences, shapes_to_try
from moorage.what_if.limits import Limits
from moorage.what_if.wire import Capacity, CapacityBody
from moorage_sandbox.testing.builders import Manifest, node
from scheduler.tests.what_if.cluster import bare, inputs_of

ZONE, DISK, RACK = "topology.kubernetes.io/zone", "example.com/disk", "example.com/rack"
ADDED_AFFINITY = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{{matchExpressions: [{{key: {DISK}, operator: Exists}}]}}]
"""


def nodes(number: int) -> dict[str, Node]:
    """Return nodes that differ in their names, zones, disks and racks, but in nothing else."""
    labels = [
        {ZONE: f"z{each % 3}", DISK: ("ssd", "hdd")[each % 2], RACK: f"r{each}"}
        for each in range(number)
    ]
    return {f"n{each:02}": node(f"n{each:02}", labels=labels[each]) for each in range(number)}


def inputs(*items: Manifest, config: str = "", number: int = 12) -> ClusterInputs:
    found = inputs_of(*items, nodes=0)
    found.objects.nodes.update(nodes(number))
    loaded = parse_config(config) if config else LoadedConfiguration()
    return msgspec.structs.replace(found, config=loaded)


def required(key: str, value: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


def apart(key: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "w"}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "w"}},
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "v"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "nodeAffinity": {
            "required": required(ZONE, "z1")["requiredDuringSchedulingIgnoredDuringExecution"]
        },
    },
}
OLD_VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "v", "labels": {"failure-domain.beta.kubernetes.io/zone": "z1"}},
    "spec": {"capacity": {"storage": "1Gi"}},
}


def as_reported(capacity: Capacity) -> CapacityReport:
    return CapacityReport(**msgspec.structs.asdict(capacity), question="", source="")


@pytest.mark.parametrize(
    ("items", "config", "shapes"),
    [
        pytest.param([bare("w")], "", 1, id="nobody asks about a label"),
        pytest.param([bare("w", nodeSelector={DISK: "ssd"})], "", 2, id="a node selector"),
        pytest.param(
            [bare("w", affinity={"nodeAffinity": required(ZONE, "z1")})], "", 3, id="node affinity"
        ),
        pytest.param([bare("w", topologySpreadConstraints=[SPREAD])], "", 3, id="a constraint"),
        pytest.param(
            [bare("w"), bare("b", "n01", affinity=apart(ZONE))],
            "",
            3,
            id="the anti-affinity of a pod that has a node",
        ),
        pytest.param(
            [bare("w"), bare("b", "n01", nodeSelector={DISK: "hdd"})],
            "",
            1,
            id="the node selector of a pod that has a node asks nothing",
        ),
        pytest.param([bare("w"), VOLUME], "", 3, id="a volume"),
        pytest.param([bare("w"), OLD_VOLUME], "", 3, id="a volume with an old label of its zone"),
        pytest.param([bare("w")], ADDED_AFFINITY, 2, id="the configuration"),
        pytest.param([bare("w", nodeSelector={RACK: "r1"})], "", 12, id="a label of one node each"),
    ],
)
def test_labels_make_shapes_only_where_somebody_asks_about_them(
    items: list[Manifest], config: str, shapes: int
) -> None:
    found = shapes_to_try(ClusterModel(inputs(*items, config=config)))
    assert (len(found.tried), found.left_out) == (shapes, [])


def test_a_plugin_from_outside_may_ask_about_every_label(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from moorage import plugin\n\n@plugin.filter\ndef rack(pod, node):\n    return True\n"
    )
    known = with_plugins(LoadedConfiguration(), [f"{file}:rack"])
    start = msgspec.structs.replace(inputs(bare("w")), config=known.config, registry=known.registry)
    assert len(shapes_to_try(ClusterModel(start)).tried) == 12


def answered(start: ClusterInputs, limits: Limits | None = None) -> Capacity:
    limits = limits or Limits(ManualClock())
    return capacity(CapacityBody(needs=True), lambda work: work(ClusterModel(start)), limits)


def test_only_the_most_common_shapes_are_tried_and_the_others_are_named() -> None:
    start = inputs(bare("w", cpu="65", nodeSelector={RACK: "common"}), number=SHAPES_MOST + 5)
    for name in ("x1", "x2"):
        start.objects.nodes[name] = node(name, cpu="64", labels={RACK: "common"})
    found = answered(start)
    likes = [need.like for need in found.needs]
    assert (len(likes), likes[-1]) == (SHAPES_MOST, "x1")
    assert found.left_out == tuple(f"n{each}" for each in range(SHAPES_MOST - 1, SHAPES_MOST + 5))
    assert found.limit == f"{SHAPES_MOST} shapes of nodes are tried, those of the most nodes"


def test_shapes_of_one_size_say_what_differs() -> None:
    """Pods that are spread over zones make three shapes of the same size."""
    waiting = [
        bare(f"w{each}", cpu="65", labels={"app": "w"}, topologySpreadConstraints=[SPREAD])
        for each in range(2)
    ]
    found = answered(inputs(*waiting))
    assert [need.differs for need in found.needs] == [{ZONE: f"z{each}"} for each in range(3)]
    assert [(row.pods, row.reason) for row in found.waiting] == [(2, "InsufficientCPU")]
    text = report(as_reported(found), Shown())
    assert "nodes like n00 (cpu=4, memory=8Gi, zone=z0) place none, for the same reasons" in (
        " ".join(text.split())
    )
    assert max(map(len, text.splitlines())) <= 80


def test_a_difference_is_a_label_a_taint_or_an_amount() -> None:
    plain: Manifest = {"metadata": {"labels": {}}, "status": {"allocatable": {"cpu": "4"}}}
    taint = {"key": "gpu", "value": "", "effect": "NoSchedule"}
    amounts = {"cpu": "4", "nvidia.com/gpu": "8"}
    with_gpus = {**plain, "spec": {"taints": [taint]}, "status": {"allocatable": amounts}}
    larger = {**plain, "status": {"allocatable": {"cpu": "8"}}}
    assert differences([plain, larger, with_gpus]) == [
        {"nvidia.com/gpu": "", "taint gpu:NoSchedule": ""},
        {},
        {"nvidia.com/gpu": "8", "taint gpu:NoSchedule": "yes"},
    ]


class Rushing(ManualClock):
    """A clock that goes on by a second with each look."""

    def monotonic_ns(self) -> int:
        self.advance(1.0)
        return super().monotonic_ns()


@pytest.mark.parametrize("seconds", [30, 60, 200])
def test_shapes_that_the_time_does_not_suffice_for_are_left_out(seconds: int) -> None:
    waiting = [bare(f"w{each}", cpu="5", nodeSelector={DISK: "ssd"}) for each in range(9)]
    found = answered(inputs(*waiting), Limits(Rushing(), seconds=seconds))
    likes = {*(need.like for need in found.needs), *found.left_out}
    assert likes == {"n00", "n01"}
    assert found.limit in ("", f"the limit of {seconds} s was reached")


def test_what_was_left_out_is_shown() -> None:
    left_out = tuple(f"n{each}" for each in range(7))
    found = as_reported(Capacity(left_out=left_out, limit="the limit of 120 s was reached"))
    assert report(found, None) == (
        "7 shapes of nodes were left out, because the limit of 120 s was reached: "
        "like n0, n1, n2, n3, n4 and 2 more\n"
        "`--shape` tries a shape of your own.\n"
    ).rstrip("\n")
