"""The zone and region of a pod's node, as labels of the pod.

A container reads them through its environment. Mirrors kubernetes v1.36
plugin/pkg/admission/podtopologylabels (the gate PodTopologyLabelsAdmission, on since 1.35).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TOPOLOGY_LABELS: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
"""The labels of a node that its pods get."""


def topology_labels(node_labels: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that a pod, or its Binding, gets from its node.

    Parameters
    ----------
    node_labels
        Labels of the node.
    own
        Labels that were sent, which stay.
    """
    return {
        key: node_labels[key] for key in TOPOLOGY_LABELS if key in node_labels and key not in own
    }
