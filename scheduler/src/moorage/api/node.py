"""core/v1 Node: the fields that the scheduler reads and the node agent writes."""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from moorage.api.meta import ApiObject, ApiStruct, Condition, ResourceList


class Taint(ApiStruct, frozen=True, kw_only=True):
    """A taint; ``effect`` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted state of a node."""

    pod_cidr: str = ""
    pod_cidrs: list[str] = []
    provider_id: str = ""
    taints: list[Taint] = []
    unschedulable: bool = False


class ContainerImage(ApiStruct, frozen=True, kw_only=True):
    """An image present on a node, under all its names; size in bytes."""

    names: list[str] = []
    size_bytes: int = 0


class NodeAddress(ApiStruct, frozen=True, kw_only=True):
    """One address of a node: InternalIP, Hostname, ..."""

    type: str = ""
    address: str = ""


class AttachedVolume(ApiStruct, frozen=True, kw_only=True):
    """A volume the attach controller reports on the node."""

    name: str = ""
    device_path: str = ""


class NodeSystemInfo(ApiStruct, frozen=True, kw_only=True):
    """Versions and identifiers reported by the node agent."""

    architecture: str = ""
    boot_id: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""
    kube_proxy_version: str = ""
    kubelet_version: str = ""
    machine_id: str = ""
    operating_system: str = ""
    os_image: str = ""
    system_uuid: str = ""


class NodeStatus(ApiStruct, frozen=True, kw_only=True):
    """Observed state of a node; the scheduler counts with ``allocatable``, never capacity."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    phase: str = ""
    conditions: list[Condition] = []
    addresses: list[NodeAddress] = []
    node_info: NodeSystemInfo = NodeSystemInfo()
    images: list[ContainerImage] = []
    volumes_in_use: list[str] = []
    volumes_attached: list[AttachedVolume] = []
    declared_features: list[str] = []


class Node(ApiObject, frozen=True, kw_only=True):
    """core/v1 Node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
