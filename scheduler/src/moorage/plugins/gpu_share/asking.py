"""The demand of a pod: a number of GPUs, the part of each, and admissible models.

A pod asks by annotations. A pod without these annotations asks by the resources it requests. The
GPUs that a bound pod holds are in another annotation, which GpuShare writes.

Rules: GPU sharing of the OpenB traces; annotations of open-gpu-share (hkust-adsl,
kubernetes-scheduler-simulator, ``pkg/type/open-gpu-share``).
"""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import NANO
from moorage.api.requests import pod_requests
from moorage.config.plugin_args_gpu import WHOLE_GPU_MILLI, GpuShareArgs
from moorage.framework.insight.held_devices import WHOLE_DEVICE, HeldDevice, with_devices
from moorage.plugins.answers import memo_of
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.snapshot.shape import RESOURCES, PartKind, PodRequests

_SEVERAL_SHARES: Final = "shares of several GPUs are not supported, ask for one or for whole GPUs"


class GpuAsk(msgspec.Struct, frozen=True):
    """The GPUs that one pod asks for.

    Parameters
    ----------
    gpus
        Number of devices; 0 for none.
    milli
        Milli-GPU of each device: 1000 for whole devices, less for a share of one.
    models
        Admissible models, sorted; empty for every model.
    fault
        Why the request cannot be understood; "" where it can.
    """

    gpus: int = 0
    milli: int = 0
    models: tuple[str, ...] = ()
    fault: str = ""

    @property
    def total_milli(self) -> int:
        """Milli-GPU of all devices together."""
        return self.gpus * self.milli

    @property
    def is_share(self) -> bool:
        """Whether the pod asks for less than one whole device."""
        return 0 < self.milli < WHOLE_GPU_MILLI


NOTHING: Final = GpuAsk()


class Asking:
    """Reads what pods ask for, under configured names.

    Parameters
    ----------
    names
        The names of annotations, resources and labels.

    Attributes
    ----------
    kind
        The annotations as a part of a pod's shape.
    """

    def __init__(self, names: GpuShareArgs) -> None:
        self.names = names
        self.kind: PartKind[GpuAsk | None] = _part_kind(
            names.count_annotation, names.milli_annotation, names.model_annotation
        )

    def gpu_ask_of(self, pod: PodInfo) -> GpuAsk:
        """Return what a pod asks for."""
        annotated = self.annotated(pod)
        if annotated is not None:
            return annotated
        return memo_of(pod.part(RESOURCES), self.kind, self._by_resources)

    def annotated(self, pod: PodInfo) -> GpuAsk | None:
        """Return what the annotations of a pod ask for; None for a pod without them."""
        return pod.part(self.kind).value if pod.annotations else None

    def devices_of(self, pod: PodInfo) -> tuple[int, ...] | None:
        """Return the devices that the pod's annotation names; None without a valid annotation."""
        text = pod.annotations.get(self.names.index_annotation, "")
        parts = text.split("-") if text else []
        if not parts or not all(part.isascii() and part.isdigit() for part in parts):
            return None
        return tuple(int(part) for part in parts)

    def count_resource(self, node: Node) -> str:
        """Return the resource that counts the GPUs of a node; "" for a node without GPUs."""
        offered = node.status.allocatable
        return next((name for name in self.names.count_resources if name in offered), "")

    def held_devices(self, pod: PodInfo, node: Node) -> tuple[HeldDevice, ...]:
        """Return the GPUs of a node that a pod on it holds; none without the annotation."""
        devices, resource = self.devices_of(pod), self.count_resource(node)
        if devices is None or not resource:
            return ()
        milli = self.gpu_ask_of(pod).milli
        return tuple(HeldDevice(resource, str(device), milli) for device in devices)

    def _by_resources(self, requests: PodRequests) -> GpuAsk:
        milli = requests.filter.get(self.names.milli_resource, 0)
        if milli > WHOLE_GPU_MILLI and milli % WHOLE_GPU_MILLI:
            return GpuAsk(fault=f"{self.names.milli_resource} {milli}: {_SEVERAL_SHARES}")
        if milli:
            return GpuAsk(max(1, milli // WHOLE_GPU_MILLI), min(milli, WHOLE_GPU_MILLI))
        for resource in self.names.count_resources:
            count = requests.filter.get(resource, 0)
            if count:
                return GpuAsk(count, WHOLE_GPU_MILLI)
        return NOTHING


@cache
def _part_kind(count: str, milli: str, models: str) -> PartKind[GpuAsk | None]:
    """Return the part made of three annotations: one object for equal names."""
    return PartKind(
        f"{count},{milli},{models}",
        lambda pod: [pod.metadata.annotations.get(name) for name in (count, milli, models)],
        lambda pod: _parsed(pod.metadata.annotations, count, milli, models=models),
    )


def _parsed(annotations: dict[str, str], count: str, milli: str, *, models: str) -> GpuAsk | None:
    if count not in annotations and milli not in annotations:
        return None
    gpus = _number(annotations.get(count, "1"))
    if gpus is None:
        return GpuAsk(fault=f'annotation {count} is "{annotations[count]}", not a whole number')
    if gpus == 0:
        return NOTHING
    part = _number(annotations.get(milli, str(WHOLE_GPU_MILLI)))
    if part is None or not 1 <= part <= WHOLE_GPU_MILLI:
        return GpuAsk(fault=f'annotation {milli} is "{annotations[milli]}", not 1 to 1000')
    if gpus > 1 and part < WHOLE_GPU_MILLI:
        return GpuAsk(fault=f"{gpus} GPUs of {part} milli: {_SEVERAL_SHARES}")
    named = {name for name in annotations.get(models, "").split("|") if name}
    return GpuAsk(gpus, part, tuple(sorted(named)))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def gpus_by_default_names(pod: Pod, node: Node) -> tuple[HeldDevice, ...]:
    """Return the GPUs that a pod holds under the default names of GpuShare's arguments."""
    return _default_asking().held_devices(info_of(pod), node)


def node_requests(pod: Pod, node: Node | None) -> dict[str, int]:
    """Return what a bound pod takes of its node, in nano units, by resource.

    Requests count as in NodeResourcesFit, and next to them the GPUs of the pod's annotation under
    its default name.

    Parameters
    ----------
    pod
        A bound pod.
    node
        Its node; None where the node is not known, and so its GPUs are not either.
    """
    requests = pod_requests(pod, use_status=True, pod_level=True)
    devices = () if node is None else gpus_by_default_names(pod, node)
    if node is None or not devices:
        return requests
    nano = NANO // WHOLE_DEVICE
    return with_devices(
        requests, devices, node.status.allocatable, amount_of=lambda milli: milli * nano
    )


@cache
def _default_asking() -> Asking:
    return Asking(GpuShareArgs())
