"""Filter: which nodes can serve a pod's claims, and the allocations found there.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/dynamicresources`` (Filter).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.node import Node
from moorage.base.clock import Clock
from moorage.framework.status import SUCCESS, Status, error, unresolvable
from moorage.plugins.claims.attempt import Attempt, OnNode, PodClaim
from moorage.plugins.claims.conditions import is_lost
from moorage.plugins.claims.devices.allocator import Allocator
from moorage.plugins.claims.devices.contract import (
    AllocationError,
    AllocationTimeoutError,
    NodeFacts,
)
from moorage.plugins.claims.extended import NodeClaim

LEFT_OVER: Final = "cannot schedule extended resource claim"
NO_FIT: Final = "cannot fit resource"
NOT_AVAILABLE: Final = "resourceclaim not available on the node"
NOT_ALLOCATED: Final = "cannot allocate all claims"

_NO_RESOURCE_LEFT: Final[tuple[str, ...]] = ()


class DeviceSearch:
    """Judges nodes for one attempt.

    Parameters
    ----------
    attempt
        The claims; the search adds allocations by node and the claims that nodes cannot reach.
    allocator
        Finds devices; None if every claim is allocated.
    clock, timeout_ns
        Time limit for allocated devices to become ready; None to never wait for devices.
    """

    def __init__(
        self,
        attempt: Attempt,
        allocator: Allocator | None,
        *,
        clock: Clock,
        timeout_ns: int | None,
    ) -> None:
        self._attempt = attempt
        self._allocator = allocator
        # The state of a claim's devices does not depend on the node.
        self._lost = [
            timeout_ns is not None
            and each.is_allocated
            and is_lost(each.claim, clock, timeout_ns=timeout_ns)
            for each in attempt.claims
        ]

    def judge(self, nodes: Sequence[Node]) -> list[Status]:
        """Return the status of each node; an Error applies to all nodes."""
        if self._attempt.left_over is not None:
            return [unresolvable(LEFT_OVER)] * len(nodes)
        statuses = [SUCCESS] * len(nodes)
        asked: dict[tuple[str, ...], list[int]] = {}
        for index, node in enumerate(nodes):
            resources = self._left_to_devices(node)
            if resources is None:
                statuses[index] = unresolvable(NO_FIT)
            elif resources or self._attempt.has_own:
                asked.setdefault(resources, []).append(index)
        try:
            for resources, indexes in asked.items():
                found = self._find(resources, [nodes[index] for index in indexes])
                for index, status in zip(indexes, found, strict=True):
                    statuses[index] = status
        except (AllocationError, AllocationTimeoutError) as broken:
            return [error(str(broken))] * len(nodes)
        return statuses

    def _left_to_devices(self, node: Node) -> tuple[str, ...] | None:
        extended = self._attempt.extended
        return _NO_RESOURCE_LEFT if extended is None else extended.left_to_devices(node)

    def _find(self, resources: tuple[str, ...], nodes: Sequence[Node]) -> list[Status]:
        """Find devices on nodes where devices must provide the same resources."""
        attempt, extended = self._attempt, self._attempt.extended
        special = None if extended is None else extended.on_node(resources)
        statuses = self._allocated(nodes, special)
        for index, node in enumerate(nodes):
            if not statuses[index].ok:
                continue
            missing = [
                i for i, each in enumerate(attempt.claims) if self._is_missing(i, each, node)
            ]
            if missing:
                attempt.unavailable.update(dict.fromkeys(missing))
                attempt.by_node.pop(node.name, None)
                statuses[index] = unresolvable(NOT_AVAILABLE)
        return statuses

    def _is_missing(self, index: int, one: PodClaim, node: Node) -> bool:
        """Whether an allocated claim cannot be used on a node."""
        if self._lost[index]:
            return True
        reachable = one.reachable
        return reachable is not None and not reachable.matches(node.metadata.labels, node.name)

    def _allocated(self, nodes: Sequence[Node], special: NodeClaim | None) -> list[Status]:
        attempt = self._attempt
        if self._allocator is None:
            return [SUCCESS] * len(nodes)
        claims = attempt.asked_for(special)
        if not claims:
            for node in nodes:
                attempt.by_node[node.name] = OnNode(None, special)
            return [SUCCESS] * len(nodes)
        without = unresolvable(NOT_ALLOCATED)  # one object for all: there are thousands of nodes
        facts = [NodeFacts(node.name, node.metadata.labels) for node in nodes]
        statuses = []
        for node, found in zip(nodes, self._allocator.allocate_nodes(facts, claims), strict=True):
            if found.is_allocated:
                attempt.by_node[node.name] = OnNode(found, special)
                statuses.append(SUCCESS)
            else:
                attempt.by_node.pop(node.name, None)
                statuses.append(unresolvable(found.reason) if found.reason else without)
        return statuses
