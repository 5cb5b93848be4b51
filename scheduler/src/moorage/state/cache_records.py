"""Contents of the cache as frozen records: for the size gauge, comparing and debugging."""

from __future__ import annotations

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Pod


class CacheCounts(msgspec.Struct, frozen=True):
    """Sizes as the gauge ``scheduler_cache_size`` shows them.

    Parameters
    ----------
    nodes
        Nodes, including ghosts: names of nodes that are not there but have pods.
    pods
        Pods, including assumed ones.
    assumed_pods
        Pods the API server has not confirmed yet.
    """

    nodes: int
    pods: int
    assumed_pods: int


class CacheDump(msgspec.Struct, frozen=True):
    """Everything the cache believes at one moment, for comparing and debugging.

    Parameters
    ----------
    nodes
        Nodes by name, in order of arrival.
    node_of_pod
        Uid to node name of every pod, assumed ones included.
    pods
        Uid to pod; an assumed pod carries the node it is assumed on.
    assumed
        Uids of assumed pods, in order of assuming.
    """

    nodes: dict[str, Node]
    node_of_pod: dict[str, str]
    pods: dict[str, Pod]
    assumed: tuple[str, ...]
