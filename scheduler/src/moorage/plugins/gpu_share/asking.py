"""The demand of a pod: a number of GPUs, the part of each, and admissible models.

A pod asks by annotations. A pod without these annotations asks by the resources it requests.

Rules: GPU sharing of the OpenB traces; annotations of open-gpu-share (hkust-adsl,
kubernetes-scheduler-simulator, ``pkg/type/open-gpu-share``).
"""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec

from moorage.config.plugin_args_gpu import WHOLE_GPU_MILLI, GpuShareArgs
from moorage.plugins.answers import memo_of
from moorage.snapshot.pod_info import PodInfo
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
