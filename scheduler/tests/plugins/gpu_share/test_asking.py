"""What pods ask for: annotations, resources, and requests that are not understood."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.pod import Pod
from moorage.config.plugin_args_gpu import GpuShareArgs
from moorage.plugins.gpu_share.asking import Asking, GpuAsk
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.plugins.builders import pod

PREFIX = "alibabacloud.com/gpu-"
SHARES = "shares of several GPUs are not supported, ask for one or for whole GPUs"


def annotated(name: str = "p", *, requests: Any = None, **values: str) -> Pod:
    """Return a pod with annotations: count, milli, card_model, index."""
    made = pod(name, requests=requests)
    names = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in values.items()}
    metadata = msgspec.structs.replace(made.metadata, annotations=names)
    return msgspec.structs.replace(made, metadata=metadata)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(pod(), GpuAsk(), id="a pod without GPUs"),
        pytest.param(annotated(count="2", milli="1000"), GpuAsk(2, 1000), id="two whole GPUs"),
        pytest.param(annotated(count="1", milli="470"), GpuAsk(1, 470), id="a share of one GPU"),
        pytest.param(annotated(milli="470"), GpuAsk(1, 470), id="a share without a count"),
        pytest.param(annotated(count="4"), GpuAsk(4, 1000), id="a count without a share"),
        pytest.param(annotated(count="0", milli="0"), GpuAsk(), id="a count of 0"),
        pytest.param(
            annotated(count="1", card_model="T4||A10|T4"),
            GpuAsk(1, 1000, ("A10", "T4")),
            id="models named twice, and an empty name",
        ),
        pytest.param(pod(requests={"nvidia.com/gpu": "8"}), GpuAsk(8, 1000), id="a resource"),
        pytest.param(
            pod(requests={f"{PREFIX}milli": "250"}), GpuAsk(1, 250), id="a resource of shares"
        ),
        pytest.param(
            pod(requests={f"{PREFIX}milli": "3000"}), GpuAsk(3, 1000), id="whole GPUs as shares"
        ),
        pytest.param(
            annotated(count="1", milli="300", requests={"nvidia.com/gpu": "2"}),
            GpuAsk(1, 300),
            id="annotations come before resources",
        ),
        pytest.param(
            annotated(count="two"),
            GpuAsk(fault=f'annotation {PREFIX}count is "two", not a whole number'),
            id="a count in words",
        ),
        pytest.param(
            annotated(count="1", milli="1001"),
            GpuAsk(fault=f'annotation {PREFIX}milli is "1001", not 1 to 1000'),
            id="more than a whole GPU of each",
        ),
        pytest.param(
            annotated(count="2", milli="500"),
            GpuAsk(fault=f"2 GPUs of 500 milli: {SHARES}"),
            id="shares of two GPUs",
        ),
        pytest.param(
            pod(requests={f"{PREFIX}milli": "1500"}),
            GpuAsk(fault=f"{PREFIX}milli 1500: {SHARES}"),
            id="one and a half GPUs",
        ),
    ],
)
def test_what_a_pod_asks_for(asked, expected):
    assert Asking(GpuShareArgs()).gpu_ask_of(PodInfo(asked)) == expected


def test_names_are_configurable():
    names = GpuShareArgs(count_annotation="example.com/gpus", count_resources=("example.com/gpu",))
    asking = Asking(names)
    assert asking.gpu_ask_of(PodInfo(annotated(count="3"))) == GpuAsk()
    assert asking.gpu_ask_of(PodInfo(pod(requests={"example.com/gpu": "3"}))) == GpuAsk(3, 1000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0-3", (0, 3), id="two devices"),
        pytest.param("", None, id="no annotation"),
        pytest.param("0-x", None, id="not numbers"),
    ],
)
def test_devices_that_an_annotation_names(text, expected):
    assert Asking(GpuShareArgs()).devices_of(PodInfo(annotated(index=text))) == expected
