"""NodeResourcesAllocatable: prefer small nodes, or large ones, whatever runs on them.

Scores by what a node offers, not by what is left, and not by the pod: small nodes first keeps
large ones whole for pods that need them. Not part of the default profile. Rules mirrored:
scheduler-plugins ``pkg/noderesources`` (allocatable.go) of 2026-08.
"""

from __future__ import annotations

import numpy as np

from moorage.base.errors import ConfigError
from moorage.config.plugin_args_optional import MOST, NodeResourcesAllocatableArgs
from moorage.config.plugin_args_optional import (
    validate_node_resources_allocatable_args as validate,
)
from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView


class NodeResourcesAllocatable:
    """Score plugin; registers no events.

    Raises
    ------
    ConfigError
        An unknown mode, or a weight that is not positive.
    """

    name = "NodeResourcesAllocatable"
    capabilities = Capabilities(score_reads=Reads.NODE, shape_parts=())  # the pod does not matter

    def __init__(self, args: NodeResourcesAllocatableArgs, handle: Handle) -> None:
        faults = validate(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._weights = [(resource.name, resource.weight) for resource in args.resources]
        self._weight_sum = sum(weight for _, weight in self._weights)
        self._most = args.mode == MOST
        self._snapshot = handle.snapshot

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Return the weighted mean of the allocatable amounts, negative where little is best."""
        del state, pod
        total = np.zeros(len(view), np.int64)
        for name, weight in self._weights:
            total += view.take(self._snapshot.allocatable(name)) * np.int64(weight)
        # The quotient is negated, not the sum: division truncates toward zero.
        mean = total // self._weight_sum
        return mean if self._most else -mean

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Spread the scores over 0 to 100; equal ones are all 0."""
        del state, pod
        if not len(raw_n) or int(raw_n.min()) == int(raw_n.max()):
            return np.zeros_like(raw_n)
        low, high = int(raw_n.min()), int(raw_n.max())
        return (raw_n - low) * MAX_NODE_SCORE // (high - low)
