"""Registry and profile: what exists, what is constructed, in which order and with what weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.config.merge import ProfileSpec
from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration
from moorage.framework.profile import Profile
from moorage.framework.registry import POINT_METHODS, POINT_TYPES, PluginEntry, Registry
from moorage.framework.roles import Role
from moorage.framework.status import SUCCESS
from moorage.snapshot.shape import LABELS, PORTS, TOLERATIONS
from scheduler.tests.framework.builders import Fake, answers, handle, profile


class Recorded:
    """A plugin class that remembers what its factory was given."""

    name = "?"

    def __init__(self, args: Any, given: Handle) -> None:
        self.args = args
        self.handle = given


class Filterer(Recorded):
    name = "Filterer"

    def filter_node(self, state, pod, node):
        return SUCCESS

    def score_node(self, state, pod, node):
        return 0


class Scorer(Recorded):
    name = "Scorer"
    capabilities = Capabilities(score_reads=Reads.NODE, shape_parts=())

    def score(self, state, pod, view):
        return np.zeros(len(view), np.int64)

    def normalize(self, state, pod, raw_n):
        return raw_n


def spec(points: dict[str, tuple[str, ...]], **args: Any) -> ProfileSpec:
    return ProfileSpec("mine", points, {"Filterer": 3, "Scorer": 7}, args)


REGISTRY = Registry([PluginEntry("Scorer", Scorer), PluginEntry("Filterer", Filterer)])


def test_each_plugin_is_made_once_with_its_arguments():
    given = handle()
    points = {"filter": ("Filterer",), "score": ("Scorer", "Filterer")}
    made = Profile(spec(points, Scorer="its args"), REGISTRY, given)
    assert list(made.plugins) == ["Filterer", "Scorer"]
    filterer, scorer = made.plugins["Filterer"], made.plugins["Scorer"]
    assert (scorer.args, filterer.args, scorer.handle) == ("its args", None, given)
    assert made.points["score"] == (scorer, filterer)
    assert made.points["filter"] == (filterer,)
    assert [plugin.name for plugin in made.scores] == ["Scorer", "Filterer"]
    assert made.scores[0] is scorer
    assert (made.name, made.weights) == ("mine", {"Filterer": 3, "Scorer": 7})
    normalizer: object = made.normalizer(made.scores[0])
    assert normalizer is scorer
    assert made.normalizer(made.scores[1]) is None


def test_only_enabled_plugins_are_made():
    made = Profile(spec({"filter": ("Filterer",)}), REGISTRY, handle())
    assert list(made.plugins) == ["Filterer"]
    assert made.scores == ()


def test_every_point_keeps_its_order():
    points = {
        "preEnqueue": "pre_enqueue",
        "preFilter": "pre_filter",
        "postFilter": "post_filter",
        "preScore": "pre_score",
        "reserve": "reserve",
        "permit": "permit",
        "preBind": "pre_bind",
        "bind": "bind",
        "postBind": "post_bind",
    }
    methods = {method: answers(None) for method in points.values()}
    extra = {"unreserve": answers(None)}
    made = profile(Fake("B", **methods, **extra), Fake("A", **methods, **extra))
    by_point = (
        made.pre_enqueue,
        made.pre_filters,
        made.post_filters,
        made.pre_scores,
        made.reserves,
        made.permits,
        made.pre_binds,
        made.binds,
        made.post_binds,
    )
    assert [[p.name for p in plugins] for plugins in by_point] == [["B", "A"]] * len(points)
    assert profile(Fake("Sort", sort_key=answers(()))).queue_sort.name == "Sort"


def test_a_second_plugin_of_a_name_is_refused():
    registry = Registry([PluginEntry("X", Filterer)])
    with pytest.raises(ValueError, match="a plugin named X already exists"):
        registry.register(PluginEntry("X", Scorer))
    assert [entry.name for entry in registry] == ["X"]
    assert registry.find("Y") is None


@pytest.mark.parametrize(
    ("name", "points"),
    [
        pytest.param("Filterer", {"filter", "score"}, id="the scalar forms count"),
        pytest.param("Scorer", {"score"}, id="the vector form counts"),
        pytest.param("Nobody", set(), id="an unknown plugin extends nothing"),
    ],
)
def test_methods_say_which_points_a_plugin_extends(name, points):
    assert {point for point in POINT_METHODS if REGISTRY.extends(name, point)} == points


def test_points_are_called_as_kube_scheduler_calls_them():
    assert POINT_TYPES["queueSort"] == "QueueSortPlugin"
    assert POINT_TYPES["preBind"] == "PreBindPlugin"


READ = {"shape_parts": (PORTS, LABELS)}


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        pytest.param(
            Fake("A", filter_node=answers(SUCCESS)), True, id="the plugin declares nothing"
        ),
        pytest.param(
            Fake("A", filter=answers(None), filter_reads=Reads.NODE, **READ),
            False,
            id="the plugin reads the node",
        ),
        pytest.param(
            Fake("A", score=answers(None), score_reads=Reads.NODE | Reads.CLUSTER, **READ),
            True,
            id="the plugin reads other rows",
        ),
        pytest.param(
            Fake("A", filter=answers(None), score=answers(None), score_reads=Reads.NODE, **READ),
            True,
            id="the plugin declares the reads of Score, but not of Filter",
        ),
        pytest.param(
            Fake("A", filter_node=answers(SUCCESS), filter_reads=Reads.PODS, **READ),
            False,
            id="the plugin has the scalar form",
        ),
        pytest.param(
            Fake("A", pre_filter=answers(None)), True, id="the plugin has only a PreFilter"
        ),
    ],
)
def test_which_plugins_are_asked_afresh(plugin, expected):
    assert (profile(plugin).asked_afresh == {"A"}) is expected


def test_shape_kinds_are_those_of_reusable_plugins_once_each():
    made = profile(
        Fake("A", filter=answers(None), filter_reads=Reads.NODE, shape_parts=(PORTS, LABELS)),
        Fake("B", filter=answers(None), filter_reads=Reads.CLUSTER, shape_parts=(TOLERATIONS,)),
        Fake("C", filter=answers(None), filter_reads=Reads.PODS, shape_parts=(LABELS,)),
    )
    assert made.shape_kinds == (PORTS, LABELS)


def test_events_of_plugins_that_may_reject():
    event = EventRegistration(ClusterEvent(Resource.NODE, Action.ADD))
    registers = {"events_to_register": answers((event,))}
    made = profile(
        Fake("Score", score=answers(None), **registers),
        Fake("Permit", permit=answers((SUCCESS, 0.0)), **registers),
        Fake("Filter", filter_node=answers(SUCCESS), pre_filter=answers(None), **registers),
        Fake("Silent", filter_node=answers(SUCCESS)),
        Fake("Never", pre_enqueue=answers(SUCCESS), events_to_register=answers(())),
    )
    assert made.registrations() == {"Never": (), "Filter": (event,), "Permit": (event,)}


def test_extensions_are_prefilter_plugins_that_follow_trials():
    both = {"add_pod": answers(None), "remove_pod": answers(None)}
    made = profile(
        Fake("A", pre_filter=answers(None), **both),
        Fake("B", pre_filter=answers(None)),
        Fake("C", filter_node=answers(SUCCESS), **both),
    )
    assert [plugin.name for plugin in made.extensions] == ["A"]


class Evicting(Recorded):
    name = "Evicting"
    roles = Role.PREEMPTS

    def post_filter(self, state, pod, node_to_status):
        raise NotImplementedError


class Looking(Recorded):
    name = "Looking"

    def post_filter(self, state, pod, node_to_status):
        raise NotImplementedError


class Holding(Recorded):
    name = "Holding"

    def permit(self, state, pod, node_name):
        raise NotImplementedError


def test_the_plugins_that_preempt_are_those_that_declare_it():
    registry = Registry([PluginEntry("Looking", Looking), PluginEntry("Evicting", Evicting)])
    given = spec({"postFilter": ("Looking", "Evicting")})
    assert Profile(given, registry, handle()).preempting == ("Evicting",)


def test_the_holder_of_a_group_source_is_the_first_enabled_permit_plugin_that_opens_it():
    registry = Registry(
        [
            PluginEntry("Holding", Holding, group_sources=("custom",)),
            PluginEntry("Second", type("Second", (Holding,), {}), group_sources=("custom", "api")),
            PluginEntry("Off", type("Off", (Holding,), {}), group_sources=("labels",)),
        ]
    )
    made = Profile(spec({"permit": ("Holding", "Second")}), registry, handle())
    assert made.group_holders == {"custom": "Holding", "api": "Second"}
