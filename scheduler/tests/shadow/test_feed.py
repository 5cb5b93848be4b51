"""Watch events handed over one by one: starts of searches, PreEnqueue, and events out of order."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage.config.own import LoadedConfiguration
from moorage.plugins.from_outside import with_plugins
from moorage.shadow.comparison import Comparison, Outcome
from moorage.shadow.feed import Feed
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import ClusterObjects
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.shadow.clusters import config_of

PARTIAL = """
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    percentageOfNodesToScore: 10
"""


class Cluster:
    """A feed over nodes, and its comparisons."""

    def __init__(
        self, nodes: int, config: LoadedConfiguration | None = None, *plugins: str
    ) -> None:
        self.found: list[Comparison] = []
        self.clock = ManualClock()
        known = with_plugins(config or LoadedConfiguration(), plugins)
        inputs = ClusterInputs(
            objects=ClusterObjects(),
            registry=known.registry,
            config=known.config,
            now_ns=self.clock.now_ns(),
        )
        self.feed = Feed(inputs, self.clock, configuration="test", on_comparison=self.found.append)
        for number in range(nodes):
            self.feed.nodes.on_add(node(f"n{number:03d}"))
        self._version = 0

    def begin(self) -> None:
        self.feed.begin_comparing({})

    def bind(self, new: Pod, node_name: str) -> None:
        """Let a pod appear, and be bound a while later."""
        self.feed.pods.on_add(new)
        self.clock.advance(0.01)
        self.bind_late(new, node_name)

    def bind_late(self, new: Pod, node_name: str) -> None:
        spec = msgspec.structs.replace(new.spec, node_name=node_name)
        self._version += 1
        metadata = msgspec.structs.replace(new.metadata, resource_version=str(self._version))
        self.feed.pods.on_update(new, msgspec.structs.replace(new, spec=spec, metadata=metadata))

    def outcomes(self) -> list[tuple[str, Outcome, str]]:
        """Let differences become old, and return pod, outcome and reason."""
        self.clock.advance(5.0)
        self.feed.tick()
        return [(each.pod, each.outcome, each.reason) for each in self.found]


def test_a_node_that_another_start_of_the_search_would_take_is_equally_good() -> None:
    cluster = Cluster(150, config_of(PARTIAL))
    cluster.feed.pods.on_add(pod("full", cpu="3", node_name="n140"))
    cluster.begin()

    cluster.bind(pod("a", cpu="1"), "n120")
    assert cluster.outcomes() == [("default/a", Outcome.EQUAL, "")]

    cluster.bind(pod("b", cpu="1"), "n140")
    name, outcome, reason = cluster.outcomes()[-1]
    assert (name, outcome) == ("default/b", Outcome.OTHER_NODE)
    assert reason.startswith("NodeResourcesFit scores n")


@pytest.mark.parametrize("scored", ["all nodes", "a part of the nodes"])
def test_a_node_that_is_worse_is_told_with_the_node_of_the_configuration(scored: str) -> None:
    config = config_of(PARTIAL) if scored == "a part of the nodes" else None
    cluster = Cluster(3, config)
    cluster.feed.pods.on_add(pod("full", cpu="3", node_name="n001"))
    cluster.begin()
    cluster.bind(pod("a", cpu="1"), "n001")
    assert [outcome for _, outcome, _ in cluster.outcomes()] == [Outcome.OTHER_NODE]


def test_a_pod_that_a_plugin_keeps_out_of_the_queue_would_not_be_bound(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from moorage import plugin\n\n@plugin.pre_enqueue\ndef hold(pod):\n    return 'not yet'\n"
    )
    cluster = Cluster(2, None, f"{file}:hold")
    cluster.begin()
    cluster.bind(pod("a", cpu="1"), "n001")
    assert cluster.outcomes() == [
        ("default/a", Outcome.NOT_PLACED, "Hold keeps it out of the queue: not yet")
    ]


def test_a_node_that_changed_a_moment_before_makes_a_difference_not_comparable() -> None:
    cluster = Cluster(2)
    cluster.feed.pods.on_add(pod("full", cpu="3", node_name="n001"))
    cluster.begin()
    cluster.feed.nodes.on_update(node("n001"), node("n001", cpu="5"))
    cluster.bind(pod("a", cpu="1"), "n001")
    why = "a node changed at about the same time"
    assert cluster.outcomes() == [("default/a", Outcome.NOT_COMPARABLE, why)]


def test_a_pod_on_a_node_that_is_not_known_is_not_comparable() -> None:
    cluster = Cluster(2)
    cluster.begin()
    cluster.bind(pod("a", cpu="1"), "n009")
    cluster.feed.pods.on_add(pod("b", node_name="n001"))
    assert cluster.outcomes() == [
        ("default/a", Outcome.NOT_COMPARABLE, "its node was not known yet"),
        ("default/b", Outcome.NOT_COMPARABLE, "it had a node when it was first seen"),
    ]


@pytest.mark.parametrize(
    ("names", "outcome"),
    [
        pytest.param(("q", "p"), Outcome.SAME, id="the older pod counts first, though seen later"),
        pytest.param(("p", "q"), Outcome.OTHER_NODE, id="a younger pod explains nothing"),
    ],
)
def test_bindings_are_compared_in_the_order_of_the_queue(
    names: tuple[str, str], outcome: Outcome
) -> None:
    cluster = Cluster(2)
    cluster.feed.pods.on_add(pod("full", cpu="1", node_name="n001"))
    cluster.begin()
    pods = {name: pod(name, cpu="2") for name in names}
    for each in pods.values():
        cluster.feed.pods.on_add(each)
    cluster.bind_late(pods["p"], "n001")
    cluster.bind_late(pods["q"], "n000")
    outcomes = {name: found for name, found, _ in cluster.outcomes()}
    assert outcomes["default/p"] is outcome
