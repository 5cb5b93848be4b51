"""How full a cluster is: counted, and written as tables and plain values."""

from __future__ import annotations

import pytest

from moorage_sandbox.cli.top.fullness import By, fullness
from moorage_sandbox.cli.top.text import plain, tables
from moorage_sandbox.testing.builders import node, pod

NODES = [node("n1", cpu="4", memory="8Gi", pods=10), node("n2", cpu="2", memory="8Gi", pods=10)]
PODS = [
    pod("a", cpu="500m", memory="2Gi", node_name="n1"),
    pod("b", cpu="2", memory="1Gi", node_name="n2", namespace="other"),
    pod("waits", cpu="1"),
]
TOTALS = """\
RESOURCE   USED    USED%   FREE     LARGEST FREE   STRANDED
cpu        2.5     41%     3.5      3.5            0
memory     3.0Gi   18%     13.0Gi   7.0Gi          7.0Gi
pods: 3 Pending

"""


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        pytest.param(
            "nodes",
            """\
NODE   PODS   CPU   %      MEMORY   %
n1     1      0.5   12%    2.0Gi    25%
n2     1      2     100%   1.0Gi    12%""",
            id="by node, with the share of the node",
        ),
        pytest.param(
            "pods",
            """\
POD         CPU   MEMORY
default/a   0.5   2.0Gi
other/b     2     1.0Gi""",
            id="by pod, only bound ones",
        ),
        pytest.param(
            "namespaces",
            """\
NAMESPACE   PODS   CPU   MEMORY
default     1      0.5   2.0Gi
other       1      2     1.0Gi""",
            id="by namespace",
        ),
    ],
)
def test_the_tables(by: By, rows: str) -> None:
    assert tables(fullness(NODES, PODS, (), by), by) == TOTALS + rows


def test_the_plain_values_of_one_resource() -> None:
    gib = 2.0**30
    assert plain(fullness(NODES, PODS, ("memory",), "namespaces"), "1:3") == {
        "nodes": 2,
        "autoscale": "1:3",
        "resources": [
            {
                "resource": "memory",
                "used": 3 * gib,
                "allocatable": 16 * gib,
                "free": 13 * gib,
                "largestFree": 7 * gib,
                "stranded": 7 * gib,
            }
        ],
        "phases": {"Pending": 3},
        "rows": [
            {
                "name": "default",
                "pods": 1,
                "used": {"cpu": 0.5, "memory": 2 * gib, "pods": 1},
                "allocatable": {},
            },
            {
                "name": "other",
                "pods": 1,
                "used": {"cpu": 2, "memory": gib, "pods": 1},
                "allocatable": {},
            },
        ],
    }


def test_an_empty_cluster() -> None:
    assert tables(fullness([], [], ("nvidia.com/gpu",), "nodes"), "nodes") == (
        "RESOURCE         USED   USED%   FREE   LARGEST FREE   STRANDED\n"
        "nvidia.com/gpu   0      -       0      0              0\n"
        "pods: none\n\n"
        "NODE   PODS   NVIDIA.COM/GPU   %"
    )
