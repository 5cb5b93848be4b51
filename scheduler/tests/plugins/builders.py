"""Small factories and runners for plugin tests: objects by keyword, answers by node name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import msgspec

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.args import example_args
from moorage.config.feature_gates import DEFAULT_GATES, FeatureGates
from moorage.framework.adapt import as_filter, as_score
from moorage.framework.capabilities import NONE, Capabilities, capabilities_of
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.status import Code, ReasonTable
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

SUMS = ("filter_reads", "filter_room", "filter_row")
"""Capabilities by which preemption tries many rows at once."""

Rejections = dict[str, tuple[str, tuple[str, ...]]]
"""By node name, for failing nodes only: code and reasons."""

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def node(name: str = "n1", *, labels=None, taints=(), unschedulable=False, **status: Any) -> Node:
    return from_dict(
        Node,
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"taints": list(taints), "unschedulable": unschedulable},
            "status": {"allocatable": ROOM, **status},
        },
    )


def pod(name: str = "p", *, requests=None, container=None, status=None, **spec: Any) -> Pod:
    first = {"name": "c", "resources": {"requests": requests or {}}, **(container or {})}
    return from_dict(
        Pod,
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"containers": [first], **spec},
            "status": status or {},
        },
    )


def cluster(*nodes: Node, pods: dict[str, list[Pod]] | None = None) -> Snapshot:
    snapshot = Snapshot()
    for each in nodes:
        snapshot.table.add_node(each)
    for name, placed in (pods or {}).items():
        for each_pod in placed:
            snapshot.table.add_pod(each_pod, name)
    return snapshot


def handle(
    snapshot: Snapshot | None = None, client: Any = None, gates: FeatureGates = DEFAULT_GATES
) -> Handle:
    return Handle(
        profile_name="default-scheduler",
        snapshot=Snapshot() if snapshot is None else snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
        client=client,
        gates=gates,
    )


def make(
    name: str,
    snapshot: Snapshot | None = None,
    *,
    args: Any = None,
    client: Any = None,
    gates: FeatureGates = DEFAULT_GATES,
):
    """Return (plugin, its reason table)."""
    given = handle(snapshot, client, gates)
    entry = in_tree_registry().find(name)
    assert entry is not None
    plugin: Any = entry.make(example_args(name) if args is None else args, given)
    return plugin, given.reasons


@contextmanager
def without(name: str, *capabilities: str) -> Iterator[None]:
    """Have profiles built as if a plugin did not declare some of its capabilities."""

    def fewer(asked: str, plugin: object) -> Capabilities:
        found = capabilities_of(asked, plugin)
        gone = {each: getattr(NONE, each) for each in capabilities if asked == name}
        return msgspec.structs.replace(found, **gone)

    with mock.patch("moorage.framework.profile.capabilities_of", fewer):
        yield


def rejections(
    name: str,
    snapshot: Snapshot,
    asked: Pod,
    *,
    args: Any = None,
    rows=None,
    gates: FeatureGates = DEFAULT_GATES,
) -> Rejections:
    """Run PreFilter and Filter; a Skip passes every node."""
    plugin, reasons = make(name, snapshot, args=args, gates=gates)
    state, info = CycleState(), PodInfo(asked)
    if hasattr(plugin, "pre_filter"):
        _, status = plugin.pre_filter(state, info, snapshot)
        if status.code is Code.SKIP:
            return {}
        assert status.ok, status
    view = snapshot.all() if rows is None else snapshot.rows(rows)
    answer = as_filter(plugin, snapshot, reasons).filter(state, info, view)
    if answer is None:
        return {}
    assert len(answer.code_n) == len(answer.reason_n) == len(view)
    names = [snapshot.names[int(row)] for row in view.row_numbers()]
    return {
        name: (Code(int(code)).text, reasons.reasons(int(reason)))
        for name, code, reason in zip(names, answer.code_n, answer.reason_n, strict=True)
        if code
    }


def scores(name: str, snapshot: Snapshot, asked: Pod, *, args: Any = None, rows=None):
    """Run PreScore, Score and Normalize; return (raw, normalized) lists, None for Skip."""
    plugin, _ = make(name, snapshot, args=args)
    state, info = CycleState(), PodInfo(asked)
    view = snapshot.all() if rows is None else snapshot.rows(rows)
    if hasattr(plugin, "pre_score"):
        status = plugin.pre_score(state, info, view)
        if status.code is Code.SKIP:
            return None
        assert status.ok, status
    raw = as_score(plugin, snapshot).score(state, info, view)
    assert raw.dtype == "int64"
    before = raw.tolist()
    final = plugin.normalize(state, info, raw) if hasattr(plugin, "normalize") else raw
    assert raw.tolist() == before, "normalize changed its argument"
    return before, final.tolist()
