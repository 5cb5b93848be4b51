"""Smaller demands of GPUs, for explanations: fewer or smaller devices, another model.

Only amounts that some node has free are offered, because any other amount fits no better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from moorage.api.patch_operations import Operation, escaped, put
from moorage.config.plugin_args_gpu import GpuShareArgs
from moorage.framework.insight.relaxations import Ladder, Relaxation
from moorage.plugins.gpu_share.asking import GpuAsk
from moorage.plugins.gpu_share.devices import DeviceColumns

_KIND: Final = "gpu"
_MODELS_MOST: Final = 4  # each is a try of an explanation; a guess


def smaller_asks(ask: GpuAsk, names: GpuShareArgs, devices: DeviceColumns) -> Iterator[Ladder]:
    """Yield fewer GPUs or smaller shares, and each further model.

    Parameters
    ----------
    ask
        The demand, which annotations of the pod state.
    names
        The names of the annotations.
    devices
        The devices, up to date.
    """
    if ask.gpus > 1:
        counts = _free(devices.whole_n.tolist(), ask.gpus)
        yield tuple(_fewer(ask, names, count) for count in counts)
    elif ask.gpus:
        parts = _free(devices.largest_n.tolist(), ask.milli)
        yield tuple(_smaller(ask, names, milli) for milli in parts)
    if ask.models:
        for model in _others(ask, devices):
            models = "|".join((*ask.models, model))
            patch = _set(names.model_annotation, models)
            yield (Relaxation(kind=_KIND, text=f"admit GPUs of model {model} too", patch=patch),)


def _free(amounts: Iterable[int], wanted: int) -> list[int]:
    """Return the amounts that are less than wanted, the greatest first."""
    return sorted({each for each in amounts if 0 < each < wanted}, reverse=True)


def _others(ask: GpuAsk, devices: DeviceColumns) -> list[str]:
    """Return some models that the pod does not admit, those with the most idle GPU first."""
    idle_m = np.bincount(devices.model_n, devices.idle_n, len(devices.models)).tolist()
    models = [
        (-idle, model)
        for idle, model in zip(idle_m, devices.models, strict=True)
        if idle and model and model not in ask.models
    ]
    return [model for _, model in sorted(models)[:_MODELS_MOST]]


def _fewer(ask: GpuAsk, names: GpuShareArgs, count: int) -> Relaxation:
    return Relaxation(
        kind=_KIND,
        text=f"ask for {count} GPU{'' if count == 1 else 's'} instead of {ask.gpus}",
        patch=_set(names.count_annotation, str(count)),
        given_up=1 - count / ask.gpus,
    )


def _smaller(ask: GpuAsk, names: GpuShareArgs, milli: int) -> Relaxation:
    before = str(ask.milli) if ask.is_share else "a whole GPU"
    return Relaxation(
        kind=_KIND,
        text=f"ask for {milli} thousandths of a GPU instead of {before}",
        patch=_set(names.milli_annotation, str(milli)),
        given_up=1 - milli / ask.milli,
    )


def _set(annotation: str, value: str) -> tuple[Operation, ...]:
    return (put(f"/metadata/annotations/{escaped(annotation)}", value),)
