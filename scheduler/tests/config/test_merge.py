"""Merging plugin lists and expanding multiPoint: order, weights, start-up errors.

Plugins here are invented; that the expansion equals kube-scheduler's for the real ones is checked
by the recordings (lab/tests/conformance).
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from moorage.base.errors import ConfigError
from moorage.config.defaults import DEFAULT_MULTI_POINT
from moorage.config.load import config_from_values
from moorage.config.merge import POINTS, ProfileSpec, expand_profiles, merge_plugins
from moorage.config.types import PluginRef, Plugins, PluginSet
from moorage.plugins.in_tree import in_tree_registry


class Entry(msgspec.Struct, frozen=True):
    points: tuple[str, ...]
    args_type: type[Any] | None = None


class ForeignArgs(msgspec.Struct, frozen=True, rename="camel"):
    how_many: int = 1


class RequiringArgs(msgspec.Struct, frozen=True, rename="camel"):
    how_many: int


class Known:
    """Plugins A, B, C at filter and score, a sorter, a binder, one with arguments of its own."""

    entries: ClassVar[dict[str, Entry]] = {
        **{name: Entry(("filter", "score")) for name in "ABC"},
        "Sort": Entry(("queueSort",)),
        "Sort2": Entry(("queueSort", "filter")),
        "Bind": Entry(("bind",)),
        "Foreign": Entry(("filter",), ForeignArgs),
        "Requiring": Entry(("filter",), RequiringArgs),
        "NodeAffinity": Entry(("filter",)),
    }

    def find(self, name: str) -> Entry | None:
        return self.entries.get(name)

    def extends(self, name: str, point: str) -> bool:
        return point in self.entries[name].points


def refs(*names: Any) -> list[dict[str, Any]]:
    return [{"name": n} if isinstance(n, str) else {"name": n[0], "weight": n[1]} for n in names]


def expand(plugins: Any, *, config: Any = ()) -> tuple[ProfileSpec, ...]:
    base = {"multiPoint": {"disabled": refs("*"), "enabled": refs("Sort", "Bind")}}
    profile = {
        "schedulerName": "a",
        "plugins": {**base, **plugins},
        "pluginConfig": list(config),
    }
    values = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return expand_profiles(config_from_values(values), Known())


def multi(*names: Any) -> dict[str, Any]:
    return {"disabled": refs("*"), "enabled": refs("Sort", "Bind", *names)}


def test_default_plugins_keep_their_place_and_lose_their_weight_when_enabled_again():
    user = Plugins(
        multi_point=PluginSet(
            enabled=[PluginRef(name="Mine"), PluginRef(name="NodeAffinity")],
            disabled=[PluginRef(name="ImageLocality"), PluginRef(name="SchedulingGates")],
        )
    )
    expected = [
        PluginRef(name="NodeAffinity") if ref.name == "NodeAffinity" else ref
        for ref in DEFAULT_MULTI_POINT
        if ref.name not in ("ImageLocality", "SchedulingGates")
    ]
    assert merge_plugins(user).multi_point.enabled == [*expected, PluginRef(name="Mine")]


def test_a_plugin_disabled_and_enabled_moves_to_the_end():
    ref = PluginRef(name="NodeName")
    merged = merge_plugins(Plugins(multi_point=PluginSet(enabled=[ref], disabled=[ref])))
    assert [r.name for r in merged.multi_point.enabled][-2:] == ["NodeDeclaredFeatures", "NodeName"]


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param(
            {"multiPoint": multi("A", "B", "C")}, ("A", "B", "C"), id="multiPoint in its order"
        ),
        pytest.param(
            {"multiPoint": multi("A", "B"), "filter": {"enabled": refs("B", "C")}},
            ("B", "A", "C"),
            id="named in both first, then multiPoint, then the specific rest",
        ),
        pytest.param(
            {"multiPoint": multi("A", "B"), "filter": {"disabled": refs("A")}},
            ("B",),
            id="disabled at the point",
        ),
        pytest.param(
            {
                "multiPoint": multi("A", "B"),
                "filter": {"enabled": refs("B"), "disabled": refs("*")},
            },
            ("B",),
            id="a star leaves only the specific list",
        ),
        pytest.param(
            {
                "multiPoint": multi("A", "B"),
                "filter": {"enabled": refs("A"), "disabled": refs("A")},
            },
            ("B", "A"),
            id="disabled and enabled at a point: the specific entry stays, last",
        ),
    ],
)
def test_expansion_order(plugins, expected):
    (spec,) = expand(plugins)
    assert spec.points["filter"] == expected
    assert set(spec.points) == set(POINTS)


def test_the_score_list_decides_the_weight_then_multi_point_and_zero_is_one():
    (spec,) = expand(
        {
            "multiPoint": multi(("A", 5), ("B", 7), "C"),
            "score": {"enabled": refs(("B", 2), ("C", 0))},
        }
    )
    assert spec.points["score"] == ("B", "C", "A")
    assert spec.score_weights == {"A": 5, "B": 2, "C": 1}


def test_arguments_are_read_as_the_plugins_own_type_and_defaulted():
    config = [{"name": "Foreign", "args": {"howMany": 3}}]
    (spec,) = expand({"multiPoint": multi("Foreign")}, config=config)
    assert spec.plugin_args == {"Foreign": ForeignArgs(3)}
    (spec,) = expand({"multiPoint": multi("Foreign", "NodeAffinity")})
    assert spec.plugin_args["Foreign"] == ForeignArgs(1)
    assert type(spec.plugin_args["NodeAffinity"]).__name__ == "NodeAffinityArgs"


PREFIX = "creating profile for scheduler name a: "


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param(
            {"filter": {"enabled": refs("None", "Bind", "A", "A")}},
            [
                'FilterPlugin "None" does not exist',
                'plugin "Bind" does not extend FilterPlugin plugin',
                'plugin "A" already registered as "FilterPlugin"',
            ],
            id="a point names unknown, unfit and repeated plugins",
        ),
        pytest.param(
            {"multiPoint": multi("None")},
            ['PreFilterPlugin "None" does not exist'],
            id="multiPoint names an unknown plugin",
        ),
        pytest.param(
            {"multiPoint": multi("A", "A")},
            [
                'plugin "A" already registered as "FilterPlugin"',
                'plugin "A" already registered as "ScorePlugin"',
            ],
            id="multiPoint repeats a plugin",
        ),
        pytest.param(
            {"multiPoint": {"disabled": refs("*"), "enabled": refs("Sort", "Sort2")}},
            [
                "only one queue sort plugin required for profile with scheduler name "
                '"a", but got 2',
                'at least one bind plugin is needed for profile with scheduler name "a"',
            ],
            id="two sorters and no binder",
        ),
        pytest.param(
            {"score": {"enabled": refs(("A", -1))}, "multiPoint": multi("B")},
            ["score plugins: total score of Score plugins could overflow"],
            id="a negative weight before another plugin",
        ),
        pytest.param(
            {
                "score": {"enabled": refs(("A", -1)), "disabled": refs("*")},
                "multiPoint": multi("B"),
            },
            ["score plugins: total score of Score plugins could overflow"],
            id="a negative weight before a plugin of multiPoint that score disables",
        ),
    ],
)
def test_start_up_errors_are_all_told(plugins, expected):
    with pytest.raises(ConfigError) as caught:
        expand(plugins)
    assert list(caught.value.faults) == [PREFIX + text for text in expected]


def test_wrong_arguments_of_a_foreign_plugin_are_told():
    config = [{"name": "Foreign", "args": {"howmany": "x"}}]
    with pytest.raises(ConfigError, match='initializing plugin "Foreign": unknown field'):
        expand({"multiPoint": multi("Foreign")}, config=config)


@pytest.mark.parametrize(
    ("config", "advice"),
    [
        pytest.param((), "; pluginConfig has no entry for the plugin", id="no entry at all"),
        pytest.param([{"name": "Requiring", "args": {}}], "", id="an entry without the argument"),
    ],
)
def test_a_required_argument_of_a_foreign_plugin_is_missing(config, advice):
    with pytest.raises(ConfigError) as caught:
        expand({"multiPoint": multi("Requiring")}, config=config)
    fault = f'initializing plugin "Requiring": args.howMany: Required value{advice}'
    assert list(caught.value.faults) == [PREFIX + fault]


def test_profiles_must_sort_alike_even_when_multi_point_brings_the_sorter():
    values = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": "a", "plugins": {"multiPoint": multi()}},
            {
                "schedulerName": "b",
                "plugins": {
                    "multiPoint": {"disabled": refs("*"), "enabled": refs("Sort2", "Bind")}
                },
            },
        ],
    }
    with pytest.raises(ConfigError) as caught:
        expand_profiles(config_from_values(values), Known())
    assert list(caught.value.faults) == [
        'different queue sort plugins for profile "b": "Sort2", first: "Sort"'
    ]


@pytest.mark.parametrize(
    ("everywhere", "own", "expected"),
    [
        pytest.param(None, None, 100, id="unset: every node"),
        pytest.param(30, None, 30, id="for all profiles"),
        pytest.param(30, 60, 60, id="the profile's own"),
        pytest.param(30, 0, 0, id="the profile's own, even 0"),
        pytest.param(0, None, 0, id="adaptive for all"),
        pytest.param(None, 100, 100, id="every node, said so"),
    ],
)
def test_how_many_nodes_are_searched(everywhere, own, expected):
    key = "percentageOfNodesToScore"
    values = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "a"} | ({} if own is None else {key: own})],
    } | ({} if everywhere is None else {key: everywhere})
    (spec,) = expand_profiles(config_from_values(values), in_tree_registry())
    assert spec.percentage_of_nodes_to_score == expected
