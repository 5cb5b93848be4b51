"""Random histories of a cluster, in any order of arrival, and a naive model of what is left."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.snapshot.shape import HostPort, host_ports
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.snapshot.builders import IMAGES, cluster, node, pod, port

NODE_NAMES = ("n0", "n1", "n2", "n3")
POD_NAMES = tuple(f"p{i}" for i in range(6))

_small = st.sampled_from(["0", "1", "3"])
_allocatable = st.fixed_dictionaries(
    {},
    optional={
        "cpu": _small,
        "memory": st.sampled_from(["1Gi", "4000Ti"]),
        "pods": _small,
        "example.com/gpu": _small,
    },
)
_taints = st.lists(
    st.sampled_from([{"key": k, "effect": e} for k in "kl" for e in ("NoSchedule", "NoExecute")]),
    max_size=2,
)
_images = st.lists(st.sampled_from(sorted(IMAGES)), unique=True, max_size=2)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    return node(
        name,
        labels=draw(st.dictionaries(st.sampled_from(["zone", "disk"]), st.sampled_from("ab"))),
        taints=draw(_taints),
        unschedulable=draw(st.booleans()),
        allocatable=draw(_allocatable),
        images=[{"names": [i], "sizeBytes": IMAGES[i]} for i in draw(_images)],
        declaredFeatures=draw(st.lists(st.sampled_from("FG"), unique=True)),
    )


_selectors = st.sampled_from(
    [
        {},
        {"matchLabels": {"app": "web"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
        {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]},
    ]
)
_terms = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(["zone", "disk"])},
    optional={
        "labelSelector": _selectors,
        "namespaces": st.lists(st.sampled_from("abc"), max_size=2),
        "namespaceSelector": _selectors,
    },
)
_wishes = st.lists(
    st.fixed_dictionaries({"weight": st.integers(1, 2), "podAffinityTerm": _terms}), max_size=1
)
_affinity = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.lists(_terms, max_size=2),
        "preferredDuringSchedulingIgnoredDuringExecution": _wishes,
    },
)
affinities = st.none() | st.fixed_dictionaries(
    {}, optional={"podAffinity": _affinity, "podAntiAffinity": _affinity}
)


@st.composite
def pods(draw: st.DrawFn, name: str) -> Pod:
    return pod(
        name,
        namespace=draw(st.sampled_from("abc")),
        labels=draw(st.dictionaries(st.just("app"), st.sampled_from(["web", "db"]))),
        requests=draw(
            st.fixed_dictionaries({}, optional={"cpu": _small, "example.com/gpu": _small})
        ),
        ports=draw(st.sampled_from([(), [port(80)], [port(80), port(443, ip="10.0.0.1")]])),
        deleted=draw(st.booleans()),
        affinity=draw(affinities),
    )


Event = tuple[str, Any, str]

node_events = st.sampled_from(NODE_NAMES).flatmap(
    lambda name: st.one_of(
        st.tuples(st.just("node"), nodes(name), st.just("")),
        st.tuples(st.just("node gone"), st.just(name), st.just("")),
    )
)
pod_events = st.sampled_from(POD_NAMES).flatmap(
    lambda name: st.one_of(
        st.tuples(st.just("pod"), pods(name), st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("pod gone"), st.just(name), st.just("")),
    )
)
looks = st.just(("look", None, ""))

# Most begin with every node there and some pods, so that removals find something to move.
_starts = st.tuples(*(st.tuples(st.just("node"), nodes(name), st.just("")) for name in NODE_NAMES))
histories = st.builds(
    lambda start, pods_, events: [*start, *pods_, *events],
    st.one_of(_starts, _starts, st.just(())),
    st.lists(pod_events, max_size=6),
    st.lists(st.one_of(node_events, pod_events, pod_events, looks), max_size=25),
)


class World:
    """A snapshot fed with events, beside plain dicts of what it should hold."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, tuple[str, Pod]] = {}
        self.ports: dict[str, set[HostPort]] = {}

    def apply(self, event: Event) -> None:
        """Do what happened; events about what is not there do nothing. "look" is the caller's."""
        kind, what, where = event
        if kind == "node":
            self._put_node(what)
        elif kind == "node gone" and what in self.nodes:
            del self.nodes[what], self.ports[what]
            self.snapshot.table.remove_node(what)
        elif kind == "pod":
            self._remove_pod(what.name)
            self.pods[what.name] = (where, what)
            self.snapshot.table.add_pod(what, where)
            if where in self.nodes:
                self.ports[where] |= set(host_ports(what))
        elif kind == "pod gone":
            self._remove_pod(what)

    def _put_node(self, what: Node) -> None:
        known = what.name in self.nodes
        self.nodes[what.name] = what
        if known:
            self.snapshot.table.update_node(what)
            return
        self.snapshot.table.add_node(what)
        self.ports[what.name] = {
            port
            for where, each in self.pods.values()
            if where == what.name
            for port in host_ports(each)
        }

    def _remove_pod(self, name: str) -> None:
        if name not in self.pods:
            return
        where, what = self.pods.pop(name)
        self.snapshot.table.remove_pod(f"uid-{name}")
        if where in self.nodes:
            self.ports[where] -= set(host_ports(what))

    def rebuilt(self) -> Snapshot:
        """A snapshot built from what is left."""
        placed: dict[str, list[Pod]] = {}
        for where, what in self.pods.values():
            placed.setdefault(where, []).append(what)
        return cluster(*self.nodes.values(), pods=placed)
