"""NodeResourcesAllocatable: prefers small nodes, or large nodes, whatever runs on them.

The score depends on the node's allocatable amounts only, not on free amounts and not on the pod.
Preferring small nodes keeps large nodes free for large pods. The plugin is not part of the
default profile.

Rules mirrored: scheduler-plugins ``pkg/noderesources`` (allocatable.go) of 2026-08.
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
        The mode is unknown, or a weight is not positive.
    """

    name = "NodeResourcesAllocatable"
    capabilities = Capabilities(score_reads=Reads.NODE, shape_parts=())  # the pod does not matter

    def __init__(self, args: NodeResourcesAllocatableArgs, handle: Handle) -> None:
        faults = validate(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        # Of a resource that is named twice the last weight counts, as upstream.
        self._weights = {resource.name: resource.weight for resource in args.resources}
        self._weight_sum = sum(self._weights.values())
        self._most = args.mode == MOST
        self._snapshot = handle.snapshot

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Return the weighted mean of the allocatable amounts; negative to prefer small nodes."""
        del state, pod
        total = np.zeros(len(view), np.int64)
        for name, weight in self._weights.items():
            total += view.take_rows(self._snapshot.allocatable(name)) * np.int64(weight)
        # The quotient is negated, not the sum: division truncates toward zero.
        mean = total // self._weight_sum
        return mean if self._most else -mean

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Scale the scores to 0 to 100; all 0 when all raw scores are equal."""
        del state, pod
        if not len(raw_n) or int(raw_n.min()) == int(raw_n.max()):
            return np.zeros_like(raw_n)
        low, high = int(raw_n.min()), int(raw_n.max())
        return (raw_n - low) * MAX_NODE_SCORE // (high - low)
