"""Random clusters, pods and owners for spreading: few domains and labels, so that they collide."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from moorage.snapshot.listers import Listers

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
KEYS = (HOSTNAME, ZONE, "rack")
NODE_NAMES = tuple(f"n{i}" for i in range(7))
OWNERS = {
    "ReplicationController": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
}

labels = st.fixed_dictionaries(
    {},
    optional={
        "app": st.sampled_from(["web", "db"]),
        "ver": st.sampled_from(["1", "2"]),
        "tier": st.just("x"),
    },
)
namespaces = st.sampled_from(("a", "a", "a", "b"))

expressions = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["app", "ver"]),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from(["web", "1", "2"]), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["app", "ver"]),
            "operator": st.sampled_from(["Exists", "DoesNotExist"]),
        }
    ),
)
selectors = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.dictionaries(st.just("app"), st.sampled_from(["web", "db"]), min_size=1),
        "matchExpressions": st.lists(expressions, max_size=2),
    },
)
pairs = st.dictionaries(st.sampled_from(["app", "ver"]), st.sampled_from(["web", "1"]), max_size=2)


ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


def constraints(
    *, selected: bool = True, actions: tuple[str, ...] = ACTIONS
) -> st.SearchStrategy[dict[str, Any]]:
    optional: dict[str, Any] = {
        "minDomains": st.integers(1, 4),
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
    }
    if selected:
        optional["labelSelector"] = selectors
        optional["matchLabelKeys"] = st.lists(st.sampled_from(["ver", "tier"]), max_size=2)
    return st.fixed_dictionaries(
        {
            "maxSkew": st.sampled_from([1, 1, 2, 4]),
            "topologyKey": st.sampled_from(KEYS),
            "whenUnsatisfiable": st.sampled_from(actions),
        },
        optional=optional,
    )


default_lists = st.lists(
    constraints(selected=False),
    min_size=1,
    max_size=3,
    unique_by=lambda item: (item["topologyKey"], item["whenUnsatisfiable"]),
).map(lambda items: tuple(from_dict(TopologySpreadConstraint, item) for item in items))


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    own = draw(
        st.fixed_dictionaries(
            {},
            optional={
                HOSTNAME: st.just(name),
                ZONE: st.sampled_from(["z1", "z2", "z3", ""]),
                "rack": st.sampled_from(["r1", "r2"]),
                "disk": st.sampled_from(["ssd", "hdd"]),
            },
        )
    )
    if draw(st.integers(0, 3)):  # mostly whole
        own = {HOSTNAME: name, ZONE: "z1", "rack": "r1", **own}
    taint = {"key": "k", "effect": draw(st.sampled_from(["NoSchedule", "PreferNoSchedule"]))}
    return from_dict(
        Node,
        {
            "metadata": {"name": name, "labels": own},
            "spec": {"taints": [taint] if draw(st.booleans()) else []},
            "status": {"allocatable": {"cpu": "4", "pods": "110"}},
        },
    )


@st.composite
def placed(draw: st.DrawFn, name: str) -> Pod:
    metadata = {
        "name": name,
        "namespace": draw(namespaces),
        "uid": f"uid-{name}",
        "labels": draw(labels),
    }
    if draw(st.integers(0, 4)) == 0:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return from_dict(Pod, {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}})


@st.composite
def asking(draw: st.DrawFn, *, explicit: bool = True, actions: tuple[str, ...] = ACTIONS) -> Pod:
    spec: dict[str, Any] = {"containers": [{"name": "c"}]}
    if explicit:
        rules = st.lists(constraints(actions=actions), min_size=1, max_size=3)
        spec["topologySpreadConstraints"] = draw(rules)
    if draw(st.booleans()):
        spec["nodeSelector"] = {"disk": "ssd"}
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    owners = []
    if draw(st.booleans()):
        kind = draw(st.sampled_from(sorted(OWNERS)))
        name = draw(st.sampled_from(["o1", "o2"]))
        owners = [{"apiVersion": OWNERS[kind], "kind": kind, "name": name, "controller": True}]
    metadata = {
        "name": "asked",
        "namespace": draw(namespaces),
        "uid": "uid-asked",
        "labels": draw(labels),
        "ownerReferences": owners,
    }
    return from_dict(Pod, {"metadata": metadata, "spec": spec})


@st.composite
def clusters(draw: st.DrawFn) -> list[tuple[Node, list[Pod]]]:
    """Return one to seven nodes, each with the pods on it."""
    return [
        (
            draw(nodes(NODE_NAMES[row])),
            [draw(placed(f"p{row}-{i}")) for i in range(draw(st.integers(0, 4)))],
        )
        for row in range(draw(st.integers(1, 7)))
    ]


@st.composite
def services(draw: st.DrawFn) -> Service:
    metadata = {"name": draw(st.sampled_from(["s1", "s2"])), "namespace": draw(namespaces)}
    selector = draw(st.none() | pairs)
    return from_dict(Service, {"metadata": metadata, "spec": {"selector": selector}})


@st.composite
def owning(draw: st.DrawFn) -> ReplicationController | ReplicaSet | StatefulSet:
    metadata = {"name": draw(st.sampled_from(["o1", "o2"])), "namespace": draw(namespaces)}
    kind: Any = draw(st.sampled_from([ReplicationController, ReplicaSet, StatefulSet]))
    selector = draw(st.none() | (pairs if kind is ReplicationController else selectors))
    owner: ReplicationController | ReplicaSet | StatefulSet
    owner = from_dict(kind, {"metadata": metadata, "spec": {"selector": selector}})
    return owner


def put(listers: Listers, obj: object) -> None:
    """Put a service or an owner where it belongs."""
    if isinstance(obj, Service):
        listers.services.put(obj)
    elif isinstance(obj, ReplicationController):
        listers.replication_controllers.put(obj)
    elif isinstance(obj, ReplicaSet):
        listers.replica_sets.put(obj)
    else:
        assert isinstance(obj, StatefulSet)
        listers.stateful_sets.put(obj)
