"""Plugins that know their answer by node name, and decisions told three ways: all must agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision
from moorage.engine.select_node import TieBreak, smallest_name
from moorage.framework.capabilities import Reads
from moorage.framework.profile import Profile
from moorage.framework.status import SUCCESS, Status
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.framework.builders import Fake
from scheduler.tests.snapshot.builders import cluster, node

THREE = ("n1", "n2", "n3")


def nodes(*names: str) -> Snapshot:
    return cluster(*(node(name) for name in names or THREE))


def filterer(
    name: str,
    by_node: Mapping[str, Status | Exception] | Callable[..., Status],
    reads: Reads = Reads.NODE,
    **more: Any,
) -> Fake:
    """A scalar Filter; nodes that are not named pass."""

    def filter_node(state: Any, pod: PodInfo, info: Any) -> Status:
        answer = by_node(info, pod) if callable(by_node) else by_node.get(info.name, SUCCESS)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Fake(name, filter_node=filter_node, filter_reads=reads, shape_parts=(), **more)


def scorer(
    name: str,
    by_node: Mapping[str, int | Exception] | Callable[..., int],
    reads: Reads = Reads.NODE,
    **more: Any,
) -> Fake:
    """A scalar Score; nodes that are not named score 0."""

    def score_node(state: Any, pod: PodInfo, info: Any) -> int:
        answer = by_node(info, pod) if callable(by_node) else by_node.get(info.name, 0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Fake(name, score_node=score_node, score_reads=reads, shape_parts=(), **more)


def told(decision: Decision) -> dict[str, object]:
    """Everything a decision says, but for the scratch of the attempt."""
    facts = {
        field: getattr(decision, field)
        for field in Decision.__struct_fields__
        if field not in {"state", "pod"}
    }
    return facts | {"pod": decision.pod.key, "message": decision.message}


def decide(
    profile: Profile, snapshot: Snapshot, pod: PodInfo, tie_break: TieBreak = smallest_name
) -> Decision:
    """Decide without reuse, with reuse for the first time, and with reuse again."""
    plain = Cycle(profile, snapshot, tie_break, reuse=False).decide(pod)
    reusing = Cycle(profile, snapshot, tie_break)
    for _ in range(3):
        assert told(reusing.decide(pod)) == told(plain)
    return plain


def summary(decision: Decision) -> tuple[str, str, str]:
    return decision.outcome.value, decision.node_name, decision.message
