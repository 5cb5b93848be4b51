"""Capabilities: what a plugin may declare, what stops the start, and what the profile makes of it.

What the capabilities of in-tree plugins promise is tested with those plugins.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import ConfigError
from moorage.framework.capabilities import NONE, TRAITS, Capabilities, Reads, capabilities_of
from moorage.snapshot.shape import LABELS, PORTS
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.framework.builders import Fake, answers, profile
from scheduler.tests.framework.outside import BOOM
from scheduler.tests.framework.outside import profile as outside

FILTER = {"filter": answers(None), "filter_reads": Reads.PODS, "shape_parts": ()}


def filter_row(state: Any, pod: Any, row: int, more: Any) -> tuple[int, int]:
    return 0, 0


def room(state: Any, pod: Any, view: Any) -> Any:
    raise AssertionError


def no_arguments() -> bool:
    return True


class Plain:
    name = "Plain"


class Method:
    name = "Method"
    score_node = None

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def capabilities(self) -> Capabilities:
        return Capabilities(score_reads=Reads.NODE, shape_parts=self._parts)


class Raising:
    name = "Raising"

    def capabilities(self) -> Capabilities:
        raise BOOM


def test_a_plugin_that_declares_nothing_has_no_capability():
    assert capabilities_of("Plain", Plain()) is NONE
    assert list(NONE.declared()) == []


def test_a_method_declares_capabilities_by_the_arguments_of_the_plugin():
    assert capabilities_of("Method", Method(LABELS)).shape_parts == (LABELS,)


def test_declared_capabilities_come_in_the_order_of_the_fields():
    declared = Capabilities(shape_parts=(PORTS,), pre_bind_parallel=True, filter_reads=Reads.PODS)
    assert list(declared.declared()) == ["filter_reads", "shape_parts", "pre_bind_parallel"]


def test_every_capability_says_what_it_means():
    assert list(TRAITS) == list(Capabilities.__struct_fields__)
    assert all(trait.meaning.endswith(".") for trait in TRAITS.values())
    assert {name for trait in TRAITS.values() for name in trait.beside} <= TRAITS.keys()


class Old:
    name = "P"
    filter_reads = Reads.NODE

    def filter(self, state, pod, view): ...


@pytest.mark.parametrize(
    ("plugin", "faults"),
    [
        pytest.param(
            Old(),
            ["filter_reads is a capability: declare it in capabilities"],
            id="an attribute of a capability's name that is not declared",
        ),
        pytest.param(Raising(), ["its capabilities: boom"], id="a declaration that raises"),
        pytest.param(
            Fake("P", filter=answers(None), filter_reads=Reads.NODE),
            ["capability filter_reads needs shape_parts beside it, () if the pod does not matter"],
            id="reusable answers, without the parts of the pod that they depend on",
        ),
        pytest.param(
            Fake("P", filter=answers(None), shape_parts=()),
            ["capability shape_parts needs filter_reads or score_reads beside it"],
            id="parts of the pod, without what else answers depend on",
        ),
        pytest.param(
            Fake("P", rejects_by_shape=True),
            ["capability rejects_by_shape needs the method post_filter"],
            id="a capability of an extension point that the plugin does not extend",
        ),
        pytest.param(
            Fake("P", **FILTER, filter_room=room),
            ["capability filter_room needs filter_reads to name sums, not pods or the cluster"],
            id="room, by a Filter that sees more than sums",
        ),
        pytest.param(
            Fake("P", filter=answers(None), filter_reads=Reads.CLUSTER, filter_row=filter_row),
            ["capability filter_row contradicts filter_reads, which names the cluster"],
            id="a form for one row, by a Filter that reads the cluster",
        ),
        pytest.param(
            Fake("P", **{**FILTER, "filter_reads": 1}),
            ["capability filter_reads: 1 is no Reads"],
            id="a number instead of Reads",
        ),
        pytest.param(
            Fake("P", **{**FILTER, "shape_parts": ("labels",)}),
            ["capability shape_parts: ('labels',) is no tuple of parts of a pod"],
            id="a text instead of a part",
        ),
        pytest.param(
            Fake("P", post_filter=answers(None), rejects_by_shape=1),
            ["capability rejects_by_shape: 1 is neither True nor False"],
            id="a number instead of True",
        ),
        pytest.param(
            Fake("P", own_metrics={"errors": 1}),
            ["capability own_metrics: {'errors': 1} is no PluginMetrics"],
            id="a dictionary instead of PluginMetrics",
        ),
        pytest.param(
            Fake("P", **FILTER, filter_row=True),
            ["capability filter_row: True is no function"],
            id="a flag instead of a function",
        ),
        pytest.param(
            Fake("P", never_reused=no_arguments),
            ["capability never_reused: takes no `pod`: it is called as never_reused(pod)"],
            id="a function that does not take what it is given",
        ),
    ],
)
def test_a_faulty_declaration_stops_the_start(plugin: Any, faults: list[str]):
    with pytest.raises(ConfigError) as caught:
        capabilities_of("P", plugin)
    assert list(caught.value.faults) == [f'plugin "P": {fault}' for fault in faults]


def test_only_a_capabilities_value_declares_capabilities():
    plugin = Plain()
    plugin.capabilities = {"filter_reads": Reads.NODE}  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="is no Capabilities"):
        capabilities_of("P", plugin)


def test_a_profile_is_not_built_with_a_faulty_declaration():
    with pytest.raises(ConfigError, match='plugin "P": filter_reads is a capability'):
        profile(Old())


def test_a_plugin_from_outside_may_not_declare_what_only_in_tree_plugins_may():
    with pytest.raises(ConfigError, match='"Mine": capability skips_spec is for in-tree plugins'):
        outside(pre_filter=None, skips_spec=True)


def test_the_profile_keeps_every_form_of_a_filter():
    made = profile(
        Fake("A", **FILTER, filter_row=filter_row),
        Fake("B", filter_node=answers(None)),
        Fake("C", filter=answers(None), filter_reads=Reads.NODE, shape_parts=(LABELS,)),
    )
    found = [(each.name, each.reads, each.reused, each.row_by_row) for each in made.filter_forms]
    assert found == [
        ("A", Reads.PODS, True, False),
        ("B", Reads.CLUSTER, False, True),
        ("C", Reads.NODE, True, False),
    ]
    assert [each.by_node for each in made.filter_forms] == [False, False, True]
    assert [each.judge_row for each in made.filter_forms] == [filter_row, None, None]


def test_filters_that_read_the_node_but_are_asked_afresh_leave_no_way_by_sums():
    """The Score of such a plugin reads the cluster, so none of its answers is kept."""
    sums = Fake("S", **{**FILTER, "filter_reads": Reads.SUMS})
    mixed = Fake(
        "M",
        filter=answers(None),
        filter_reads=Reads.NODE,
        shape_parts=(),
        score=answers(None),
        score_reads=Reads.CLUSTER,
    )
    made = profile(sums, mixed)
    assert made.filters_by_sums(frozenset()) is None
    assert made.filters_by_sums(frozenset({"M"})) == (0,)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(7, [7, 7], id="an epoch that is a number is passed on"),
        pytest.param(BOOM, [-1, -2], id="an epoch that raises counts as changed each time"),
        pytest.param("x", [-1, -2], id="an epoch that is no number counts as changed each time"),
    ],
)
def test_the_epoch_of_a_plugin_from_outside(answer: Any, expected: list[int]):
    made, _ = outside(filter=None, filter_reads=Reads.NODE, shape_parts=(), epoch=answer)
    epoch = made.capabilities["Mine"].epoch
    assert epoch is not None
    assert [epoch(Snapshot()) for _ in expected] == expected
