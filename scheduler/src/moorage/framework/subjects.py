"""The subjects of a plugin's rejections, so that words and amounts can explain them."""

from __future__ import annotations

from enum import Enum


class Subject(Enum):
    """The part of a pod that a Filter compares with a node."""

    NODE_NAME = "node name"
    """``spec.nodeName``."""
    NODE_AFFINITY = "node affinity"
    """``nodeSelector`` and required node affinity: the nodes that the pod chooses."""
    CORDON = "cordon"
    """``spec.unschedulable`` of the node."""
    TAINTS = "taints"
    """Taints of the node that the pod does not tolerate."""
    PORTS = "ports"
    """Ports of the node that the pod requests."""
    RESOURCES = "resources"
    """Requests, and the number of pods."""
    VOLUMES = "volumes"
    """The nodes that the pod's volumes can be used on."""
    VOLUME_USE = "volume use"
    """Volumes that other pods use, and how many volumes a node attaches."""
    DEVICES = "devices"
    """The devices of resource claims."""
    FEATURES = "features"
    """Features of the kubelet that the node does not declare."""
    SPREAD = "spread"
    """Topology spread constraints."""
    POD_AFFINITY = "pod affinity"
    """Required affinity and anti-affinity between pods."""
