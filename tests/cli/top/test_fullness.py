"""How full a cluster is: counted, and written as tables and plain values."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.meta import OwnerReference
from moorage.api.pod import Pod
from moorage.cli.rows.text import Shown
from moorage_sandbox.cli.top.fullness import Kind, fullness
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


ALL = Shown("none")


@pytest.mark.parametrize(
    ("kind", "shown", "rows"),
    [
        pytest.param(
            "nodes",
            None,
            """\
NODE   PODS   CPU   %      MEMORY   %
n1     1      0.5   12%    2.0Gi    25%
n2     1      2     100%   1.0Gi    12%""",
            id="wide: by node, with the share of the node",
        ),
        pytest.param(
            "pods",
            None,
            """\
POD         CPU   MEMORY
default/a   0.5   2.0Gi
other/b     2     1.0Gi""",
            id="wide: by pod, only bound ones",
        ),
        pytest.param(
            "pods",
            ALL,
            """\
PODS  OWNER          CPU  MEMORY
   1  default/pod/a  0.5  2.0Gi
   1  other/pod/b    2    1.0Gi""",
            id="pod by pod",
        ),
        pytest.param(
            "namespaces",
            Shown(),
            """\
PODS  OWNER    CPU  MEMORY
   1  default  0.5  2.0Gi
   1  other    2    1.0Gi""",
            id="by namespace",
        ),
        pytest.param(
            "nodes",
            Shown(limit=1),
            """\
NODES  NODE  PODS  CPU  %    MEMORY  %
    1  n1    1     0.5  12%  2.0Gi   25%
1 more row is not shown; --limit shows more""",
            id="no more rows than were asked for",
        ),
    ],
)
def test_the_tables(kind: Kind, shown: Shown | None, rows: str) -> None:
    assert tables(fullness(NODES, PODS, (), kind), kind, shown) == TOTALS + rows


def _owned(each: Pod) -> Pod:
    owner = OwnerReference(kind="ReplicaSet", name="web", controller=True)
    metadata = msgspec.structs.replace(each.metadata, owner_references=[owner])
    return msgspec.structs.replace(each, metadata=metadata)


def test_nodes_that_are_equally_full_and_pods_of_one_owner_are_one_row() -> None:
    nodes = [node(f"n{number}", cpu="4") for number in range(3)]
    pods = [_owned(pod(f"p{n}", cpu="1", node_name=f"n{n}")) for n in range(3)]
    found = tables(fullness(nodes, pods, ("cpu",), "nodes"), "nodes", Shown())
    assert found.splitlines()[-1].split() == ["3", "n0,", "…", "1", "1", "25%"]
    found = tables(fullness(nodes, pods, ("cpu",), "pods"), "pods", Shown())
    assert found.splitlines()[-1].split() == ["3", "default/replicaset/web", "3"]


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
    assert tables(fullness([], [], ("nvidia.com/gpu",), "nodes"), "nodes", None) == (
        "RESOURCE         USED   USED%   FREE   LARGEST FREE   STRANDED\n"
        "nvidia.com/gpu   0      -       0      0              0\n"
        "pods: none\n\n"
        "NODE   PODS   NVIDIA.COM/GPU   %"
    )


def test_shares_of_gpus_are_counted() -> None:
    gpu = node("gpu", **{"nvidia.com/gpu": "2"})
    share = _with_share(pod("share", node_name="gpu"))
    (total,) = fullness([gpu], [share], ("nvidia.com/gpu",), "nodes").totals
    assert (total.used, total.free) == (460_000_000, 1_540_000_000)


def _with_share(each: Pod) -> Pod:
    prefix = "alibabacloud.com/gpu-"
    notes = {f"{prefix}milli": "460", f"{prefix}index": "0"}
    metadata = msgspec.structs.replace(each.metadata, annotations=notes)
    return msgspec.structs.replace(each, metadata=metadata)
