"""Arguments of the plugins that share GPUs; continues `plugin_args_optional`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.config.plugin_args import Args, ArgsKind
from moorage.config.strict import invalid

_PREFIX: Final = "alibabacloud.com"
WHOLE_GPU_MILLI: Final = 1000
"""Milli-GPU of one device."""
_GPUS_MOST: Final = 64  # devices of one node; above what any server has, a guess


class GpuShareArgs(Args, frozen=True, kw_only=True):
    """Names of the annotations, labels and resources by which pods ask for GPUs.

    The defaults are those of the OpenB traces and of the open GPU share scheduler.
    """

    count_annotation: str = f"{_PREFIX}/gpu-count"
    """Annotation of pods: the number of GPUs."""
    milli_annotation: str = f"{_PREFIX}/gpu-milli"
    """Annotation of pods: thousandths of each of these GPUs, 1 to 1000. Without it, 1000."""
    model_annotation: str = f"{_PREFIX}/gpu-card-model"
    """Annotation of pods: the admissible models, joined by ``|``. Without it, every model."""
    index_annotation: str = f"{_PREFIX}/gpu-index"
    """Annotation of pods that the scheduler writes: the chosen GPUs, such as ``0-3``."""
    count_resources: tuple[str, ...] = (f"{_PREFIX}/gpu-count", "nvidia.com/gpu", "amd.com/gpu")
    """Resources that count GPUs. The first that a node offers is its number of devices. A pod
    without annotations asks for whole GPUs by requesting one of them."""
    milli_resource: str = f"{_PREFIX}/gpu-milli"
    """Resource by which a pod without annotations asks for thousandths of one GPU, or for whole
    GPUs as a multiple of 1000."""
    model_labels: tuple[str, ...] = (f"{_PREFIX}/gpu-card-model", "nvidia.com/gpu.product")
    """Labels of nodes; the first that a node has is the model of its GPUs."""


class TypicalPod(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A kind of pods that will come, and how frequent it is."""

    cpu_milli: int = 0
    """Requested CPU, in thousandths of a core."""
    gpus: int = 0
    """Number of GPUs; 0 for pods without GPUs."""
    gpu_milli: int = 0
    """Thousandths of each GPU; 1000 for whole GPUs, 0 for pods without GPUs."""
    models: tuple[str, ...] = ()
    """Admissible models; empty for every model."""
    share: float = 0.0
    """Frequency of the kind, in any unit: shares are divided by their sum."""


_KINDS: Final = ((1, 500), (1, 1000), (2, 1000), (4, 1000), (8, 1000))
_ANY_PODS: Final = tuple(
    TypicalPod(cpu_milli=gpus * milli * 8, gpus=gpus, gpu_milli=milli, share=1)
    for gpus, milli in _KINDS
)
"""A guess, for clusters of which nothing is known: half a GPU to eight, and 8 cores a GPU."""


class GpuFragmentationArgs(Args, frozen=True, kw_only=True):
    """The pods that are expected, for which GPUs should remain usable."""

    typical_pods: tuple[TypicalPod, ...] = _ANY_PODS
    """Kinds of pods with their shares; at least one kind. The default is a guess: a half, one, two,
    four and eight GPUs are equally frequent, with 8 cores for each GPU."""


class GpuLookaheadArgs(Args, frozen=True, kw_only=True):
    """The pods that are expected, and how far the policy looks ahead."""

    typical_pods: tuple[TypicalPod, ...] = _ANY_PODS
    """Kinds of pods with their shares; at least one kind. The default is a guess: a half, one, two,
    four and eight GPUs are equally frequent, with 8 cores for each GPU."""
    cpu_slack: float = 1.5
    """GPUs that a node's CPU is expected to serve, in units of the mean of the typical pods. Above
    1, because pods that need little CPU can be chosen for nodes that have little left."""
    pressure_weight: float = 1.0
    """Weight of the demand for a model next to the fragmentation of a node; 0 for nothing."""


def validate_gpu_share_args(args: GpuShareArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    at = f"{path}." if path else ""
    names = {
        "countAnnotation": args.count_annotation,
        "milliAnnotation": args.milli_annotation,
        "modelAnnotation": args.model_annotation,
        "indexAnnotation": args.index_annotation,
    }
    faults = [f"{at}{field}: Required value" for field, name in names.items() if not name]
    seen: dict[str, str] = {}
    for field, name in names.items():
        if name and name in seen:
            faults.append(f'{at}{field}: Duplicate value: "{name}", as {seen[name]}')
        seen.setdefault(name, field)
    if not args.count_resources:
        faults.append(f"{at}countResources: Required value")
    for field, listed in (
        ("countResources", args.count_resources),
        ("modelLabels", args.model_labels),
    ):
        faults += [f"{at}{field}[{i}]: Required value" for i, name in enumerate(listed) if not name]
    return faults


def validate_gpu_fragmentation_args(args: GpuFragmentationArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    return _typical_faults(args.typical_pods, f"{path}." if path else "")


def validate_gpu_lookahead_args(args: GpuLookaheadArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    at = f"{path}." if path else ""
    faults = _typical_faults(args.typical_pods, at)
    if not 0 < args.cpu_slack < float("inf"):
        faults.append(invalid(f"{at}cpuSlack", args.cpu_slack, "must be greater than 0"))
    if not 0 <= args.pressure_weight < float("inf"):
        faults.append(invalid(f"{at}pressureWeight", args.pressure_weight, "must be at least 0"))
    return faults


def _typical_faults(pods: tuple[TypicalPod, ...], at: str) -> list[str]:
    if not pods:
        return [f"{at}typicalPods: Required value: the kinds of pods that are expected"]
    faults = []
    for index, pod in enumerate(pods):
        where = f"{at}typicalPods[{index}]"
        if pod.cpu_milli < 0:
            faults.append(invalid(f"{where}.cpuMilli", pod.cpu_milli, "must be at least 0"))
        if not 0 <= pod.gpus <= _GPUS_MOST:
            faults.append(invalid(f"{where}.gpus", pod.gpus, f"must be 0 to {_GPUS_MOST}"))
        elif pod.gpus == 0 and pod.gpu_milli != 0:
            rule = "must be 0 for pods without GPUs"
            faults.append(invalid(f"{where}.gpuMilli", pod.gpu_milli, rule))
        elif pod.gpus == 1 and not 1 <= pod.gpu_milli <= WHOLE_GPU_MILLI:
            faults.append(invalid(f"{where}.gpuMilli", pod.gpu_milli, "must be 1 to 1000"))
        elif pod.gpus > 1 and pod.gpu_milli != WHOLE_GPU_MILLI:
            rule = "must be 1000 for more than one GPU"
            faults.append(invalid(f"{where}.gpuMilli", pod.gpu_milli, rule))
        if not 0 < pod.share < float("inf"):
            faults.append(invalid(f"{where}.share", pod.share, "must be greater than 0"))
    if not faults and not any(pod.gpus for pod in pods):
        faults.append(f"{at}typicalPods: Invalid value: no kind of pods has GPUs")
    return faults


GPU_ARGS_KINDS: Final[Mapping[str, ArgsKind]] = {
    "GpuShare": ArgsKind(GpuShareArgs, validate_gpu_share_args),
    "GpuFragmentation": ArgsKind(GpuFragmentationArgs, validate_gpu_fragmentation_args),
    "GpuLookahead": ArgsKind(GpuLookaheadArgs, validate_gpu_lookahead_args),
}
"""By plugin name; the other policies take no arguments."""
