"""The pools that a node sees: their slices and generations, and unusable pools."""

from __future__ import annotations

import pytest

from moorage.plugins.claims.devices.contract import Features, NodeFacts
from scheduler.tests.plugins.claims.devices.builders import (
    N1,
    N2,
    allocator,
    claim,
    device,
    exactly,
    found,
    slice_,
)

ZONE_A = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    ]
}
BAD_SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Near"}]}]}
INVALID = "invalid resource pools were encountered"


@pytest.mark.parametrize(
    ("spec", "node", "sees"),
    [
        pytest.param({"nodeName": "n1"}, N1, True, id="a slice of the node"),
        pytest.param({"nodeName": "n1"}, N2, False, id="a slice of another node"),
        pytest.param({"allNodes": True}, N2, True, id="a slice for all nodes"),
        pytest.param({"nodeSelector": ZONE_A}, N1, True, id="a slice whose selector matches"),
        pytest.param(
            {"nodeSelector": ZONE_A}, N2, False, id="a slice whose selector does not match"
        ),
        pytest.param(
            {"nodeSelector": {"nodeSelectorTerms": []}},
            N1,
            False,
            id="a selector without terms matches no node",
        ),
        pytest.param(
            {"sharedCounters": []}, N1, False, id="a slice that names no nodes matches no node"
        ),
    ],
)
def test_nodes_that_reach_a_slice(spec, node, sees):
    expected = [["r=a"]] if sees else None
    assert (
        found(allocator([slice_("s1", device("a"), **spec)]), claim(exactly()), node=node)
        == expected
    )


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(
            N1, [["r=a", "r=c", "r=d"]], id="devices by node name, for all nodes, and by labels"
        ),
        pytest.param(N2, [["r=b", "r=c"]], id="each device selects its own nodes"),
    ],
)
def test_devices_with_their_own_node_selection(node, expected):
    split = slice_(
        "s1",
        device("a", nodeName="n1"),
        device("b", nodeName="n2"),
        device("c", allNodes=True),
        device("d", nodeSelector=ZONE_A),
        device("e"),
        perDeviceNodeSelection=True,
    )
    wanted = claim(exactly(mode="All"))
    assert found(allocator([split]), wanted, node=node) == expected
    off = allocator([split], features=Features(partitionable_devices=False))
    assert found(off, wanted, node=node) is None


def test_an_invalid_node_selector_ends_the_cycle():
    text = found(
        allocator([slice_("s1", device("a"), nodeSelector=BAD_SELECTOR)]), claim(exactly())
    )
    assert text == (
        'gather pool information: node selector: "Near" is not a valid node selector operator'
    )


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param(
            [
                slice_("s1", device("old"), generation=1),
                slice_("s2", device("new"), generation=2),
                slice_("s3", device("older"), generation=0),
            ],
            [["r=new"]],
            id="only the highest generation counts",
        ),
        pytest.param(
            [slice_("s1", device("a"), count=2)], None, id="a pool with missing slices is not used"
        ),
        pytest.param(
            [slice_("s1", device("a"), count=2), slice_("s2", device("b"), count=2, nodeName="n2")],
            [["r=a"]],
            id="slices of other nodes make a pool complete",
        ),
        pytest.param(
            [
                slice_("s1", device("a"), count=2),
                slice_("s2", device("b"), count=2, generation=2, nodeName="n2"),
            ],
            None,
            id="a pool that is being replaced elsewhere is left out",
        ),
        pytest.param(
            [slice_("s1", device("a"), count=2), slice_("s2", device("b"), pool="p2")],
            [["r=b"]],
            id="another pool is used instead of an incomplete one",
        ),
        pytest.param(
            [
                slice_("s1", device("a"), count=2),
                slice_("s2", device("b"), count=2, driver="nic.example.com"),
            ],
            None,
            id="slices of another driver's pool with the same name do not count",
        ),
        pytest.param(
            [slice_("s1", device("a"), count=2), slice_("s2", device("a"), count=2)],
            INVALID,
            id="two devices of one name make a pool invalid",
        ),
        pytest.param(
            [
                slice_("s1", device("a"), device("a")),
                slice_("s2", device("b"), pool="p2"),
            ],
            [["r=b"]],
            id="an invalid pool does no harm where another pool suffices",
        ),
        pytest.param(
            [slice_("s1", device("a", capacity={"memory": "much"}))],
            INVALID,
            id="an invalid quantity makes a pool invalid",
        ),
    ],
)
def test_pools(slices, expected):
    assert found(allocator(slices), claim(exactly())) == expected


def test_a_node_without_slices_sees_the_slices_for_all_nodes():
    everywhere = slice_("s1", device("a"), allNodes=True)
    assert found(allocator([everywhere]), claim(exactly()), node=NodeFacts("new", {})) == [["r=a"]]


def test_an_invalid_slice_is_reported_and_other_slices_are_used(caplog):
    unreadable = slice_("s1", device("a", capacity={"memory": "much"}))
    other = slice_("s2", device("b"), pool="p2")
    assert found(allocator([unreadable, other]), claim(exactly())) == [["r=b"]]
    assert [record.getMessage() for record in caplog.records] == [
        "resource slice s1: quantities must match the regular expression "
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'; "
        "nothing of pool gpu.example.com/p1 is given out"
    ]
