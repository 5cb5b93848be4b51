"""InterPodAffinity's hints, one event at a time."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.workloads import Namespace
from moorage.plugins.affinity.hints import AffinityHints
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.affinity.strategies import node
from scheduler.tests.plugins.builders import cluster, make

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def term(app: str = "x", key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def pod(
    name: str = "waiting",
    *,
    app: str = "",
    near: Any = (),
    away: Any = (),
    on: str = "",
    nominated: str = "",
    ns: str = "a",
) -> Pod:
    labels = {"app": app} if app else {}
    affinity = {"podAffinity": {REQUIRED: list(near)}, "podAntiAffinity": {REQUIRED: list(away)}}
    return from_dict(
        Pod,
        {
            "metadata": {"name": name, "namespace": ns, "uid": f"uid-{name}", "labels": labels},
            "spec": {"containers": [{"name": "c"}], "nodeName": on, "affinity": affinity},
            "status": {"nominatedNodeName": nominated},
        },
    )


def namespace(name: str, **labels: str) -> Namespace:
    return from_dict(Namespace, {"metadata": {"name": name, "labels": labels}})


def hints(*placed: Pod, nodes: list[Node] | None = None) -> AffinityHints:
    """Hints in a cluster with the namespaces a (dev) and b (prod)."""
    snapshot: Snapshot = cluster(*(nodes or []), pods={"n": list(placed)} if placed else {})
    for each in (namespace("a", env="dev"), namespace("b", env="prod")):
        snapshot.listers.namespaces.put(each)
    return AffinityHints(snapshot)


PROD: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"env": "prod"}}}
SELF = pod(app="x", near=[term()])
NEAR, AWAY = pod(near=[term()]), pod(away=[term()])
BOTH = pod(away=[term(), term("y")])
X, Y = pod("other", app="x", on="n"), pod("other", app="y", on="n")


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(
            NEAR,
            NEAR,
            pod(app="z", near=[term()]),
            True,
            id="the labels of the waiting pod changed",
        ),
        pytest.param(NEAR, None, X, True, id="a new pod matches the affinity"),
        pytest.param(NEAR, None, Y, False, id="a new pod matches no term"),
        pytest.param(AWAY, None, X, False, id="a new pod matches the anti-affinity"),
        pytest.param(NEAR, None, pod("other", app="x"), False, id="a new pod has no node"),
        pytest.param(
            NEAR,
            None,
            pod("other", app="x", nominated="n"),
            True,
            id="a new pod is nominated to a node",
        ),
        pytest.param(
            pod(near=[term(**PROD)]),
            None,
            pod("other", app="x", on="n", ns="b"),
            True,
            id="a new pod is in a namespace that the affinity selects",
        ),
        pytest.param(
            pod(near=[term(**PROD)]),
            None,
            pod("other", app="x", on="n"),
            False,
            id="a new pod is in a namespace that the affinity does not select",
        ),
        pytest.param(
            pod(near=[term(**PROD)]),
            None,
            pod("other", app="x", on="n", ns="unknown"),
            True,
            id="a new pod is in a namespace that is not known yet",
        ),
        pytest.param(
            pod(away=[term(**PROD)]),
            pod("other", app="x", on="n", ns="b"),
            None,
            True,
            id="a deleted pod was in a namespace that the anti-affinity selects",
        ),
        pytest.param(
            pod(app="w", ns="b"),
            pod("other", on="n", away=[term("w", **PROD)]),
            None,
            True,
            id="the anti-affinity of a deleted pod selects the namespace of the waiting pod",
        ),
        pytest.param(SELF, X, None, True, id="a deleted pod was a peer of a pod near itself"),
        pytest.param(SELF, X, Y, True, id="a relabelled pod was a peer of a pod near itself"),
        pytest.param(SELF, Y, None, False, id="a deleted pod was no peer of a pod near itself"),
        pytest.param(
            pod(app="x", near=[term(), term("y")]),
            X,
            None,
            False,
            id="a deleted pod matched one of two affinity terms",
        ),
        pytest.param(
            pod(near=[term(namespaceSelector={})]),
            None,
            pod("other", app="x", on="n", ns="b"),
            True,
            id="an empty namespace selector selects all namespaces",
        ),
        pytest.param(NEAR, Y, X, True, id="a relabelled pod newly matches the affinity"),
        pytest.param(NEAR, X, Y, False, id="a relabelled pod no longer matches the affinity"),
        pytest.param(AWAY, X, Y, True, id="a relabelled pod no longer matches the anti-affinity"),
        pytest.param(AWAY, Y, X, False, id="a relabelled pod newly matches the anti-affinity"),
        pytest.param(AWAY, X, None, True, id="a deleted pod matched the anti-affinity"),
        pytest.param(
            BOTH, X, None, True, id="a deleted pod matched one of two anti-affinity terms"
        ),
        pytest.param(BOTH, X, Y, True, id="a relabelled pod matches the other anti-affinity term"),
        pytest.param(NEAR, X, None, False, id="a deleted pod matched the affinity"),
        pytest.param(
            pod(app="w"),
            pod("other", on="n", away=[term("w")]),
            None,
            True,
            id="a deleted pod whose anti-affinity matches the waiting pod",
        ),
        pytest.param(
            pod(app="w"),
            pod("other", on="n", away=[term("w"), term("v")]),
            None,
            True,
            id="a deleted pod with two anti-affinity terms, one of which matches the waiting pod",
        ),
    ],
)
def test_pod_hint(waiting, old, new, expected):
    assert hints().pod_hint(waiting, old, new) is expected


def labelled(**labels: str) -> Node:
    return node("n", labels)


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(NEAR, None, labelled(zone="1"), True, id="a new node has the topology key"),
        pytest.param(NEAR, None, labelled(), False, id="a new node lacks the topology key"),
        pytest.param(
            AWAY, None, labelled(), True, id="anti-affinity: a new node lacks the topology key"
        ),
        pytest.param(pod(), None, labelled(zone="1"), False, id="the waiting pod has no terms"),
        pytest.param(
            NEAR, labelled(), labelled(zone="1"), True, id="affinity: a node gets the topology key"
        ),
        pytest.param(
            NEAR,
            labelled(zone="1"),
            labelled(),
            False,
            id="affinity: a node loses the topology key",
        ),
        pytest.param(
            NEAR,
            labelled(zone="1"),
            labelled(zone="2"),
            True,
            id="affinity: the value of the topology key changes",
        ),
        pytest.param(
            NEAR,
            labelled(zone="1"),
            labelled(zone="1", b=""),
            False,
            id="affinity: another label of a node changes",
        ),
        pytest.param(
            AWAY,
            labelled(),
            labelled(zone="1"),
            False,
            id="anti-affinity: a node gets the topology key",
        ),
        pytest.param(
            AWAY,
            labelled(zone="1"),
            labelled(),
            True,
            id="anti-affinity: a node loses the topology key",
        ),
        pytest.param(
            AWAY,
            labelled(zone="1"),
            labelled(zone="2"),
            True,
            id="anti-affinity: the value of the topology key changes",
        ),
    ],
)
def test_node_hint(waiting, old, new, expected):
    assert hints().node_hint(waiting, old, new) is expected


HATED = pod(app="w")
HATER = pod("hater", on="n", away=[term("w")])


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(
            HATED,
            labelled(zone="1"),
            labelled(zone="2"),
            True,
            id="a node changes the domain of an existing pod's anti-affinity",
        ),
        pytest.param(
            HATED, labelled(zone="1"), labelled(), True, id="a node leaves the domain altogether"
        ),
        pytest.param(HATED, labelled(zone="1"), None, True, id="a node of the domain is deleted"),
        pytest.param(HATED, None, labelled(zone="2"), True, id="a new node is in another domain"),
        pytest.param(HATED, labelled(), labelled(zone="1"), False, id="a node gets into a domain"),
        pytest.param(
            HATED,
            labelled(zone="1", rack="1"),
            labelled(zone="1", rack="2"),
            False,
            id="a node changes a label that the anti-affinity does not read",
        ),
        pytest.param(
            pod(app="other"),
            labelled(zone="1"),
            labelled(zone="2"),
            False,
            id="the existing pod's anti-affinity is about other pods",
        ),
        pytest.param(
            SELF, labelled(zone="1"), labelled(), True, id="a node with the last peer may lose it"
        ),
        pytest.param(
            NEAR,
            labelled(zone="1"),
            None,
            False,
            id="a node with a peer of another kind is deleted",
        ),
    ],
)
def test_node_hint_next_to_an_existing_pod(waiting, old, new, expected):
    here = hints(HATER, nodes=[node("n", {"zone": "1", "rack": "1"})])
    assert here.node_hint(waiting, old, new) is expected


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(
            pod(near=[term(**PROD)]),
            namespace("c"),
            namespace("c", env="prod"),
            True,
            id="the affinity selects the namespace now",
        ),
        pytest.param(
            pod(away=[term(**PROD)]),
            namespace("c", env="prod"),
            namespace("c"),
            True,
            id="the anti-affinity no longer selects the namespace",
        ),
        pytest.param(
            pod(away=[term(**PROD)]), namespace("c", env="prod"), None, True, id="deleted"
        ),
        pytest.param(pod(near=[term(**PROD)]), None, namespace("c", env="prod"), True, id="new"),
        pytest.param(
            pod(near=[term(**PROD)]), namespace("c"), namespace("c", x="y"), False, id="other label"
        ),
        pytest.param(NEAR, namespace("c"), namespace("c", env="prod"), False, id="no selector"),
        pytest.param(
            HATED, namespace("a"), namespace("a", env="prod"), True, id="the pod's own namespace"
        ),
        pytest.param(
            HATED, namespace("a", x="y"), namespace("a", x="y"), False, id="labels are the same"
        ),
    ],
)
def test_namespace_hint(waiting, old, new, expected):
    assert hints().namespace_hint(waiting, old, new) is expected


def test_the_events_that_may_help():
    plugin, _ = make("InterPodAffinity")
    assert [one.event for one in plugin.events_to_register()] == [
        ClusterEvent(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE),
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.DELETE),
        ClusterEvent(Resource.NAMESPACE, Action.ADD | Action.UPDATE | Action.DELETE),
    ]


MALFORMED = {
    "topologyKey": "zone",
    "labelSelector": {"matchExpressions": [{"key": "", "operator": "Exists"}]},
}


@pytest.mark.parametrize(
    ("waiting", "old", "new"),
    [
        pytest.param(pod(near=[MALFORMED]), None, X, id="an affinity term of the waiting pod"),
        pytest.param(pod(away=[MALFORMED]), X, None, id="an anti-affinity term of the waiting pod"),
        pytest.param(
            AWAY, pod("gone", app="z", away=[MALFORMED], on="n"), None, id="a term of a deleted pod"
        ),
    ],
)
def test_a_malformed_term_is_no_failure_and_the_pod_is_tried_again(
    waiting: Pod, old: Pod | None, new: Pod | None
) -> None:
    assert hints().pod_hint(waiting, old, new)


def test_a_malformed_affinity_of_a_deleted_pod_means_nothing() -> None:
    gone = pod("gone", app="z", near=[MALFORMED], on="n")
    assert not hints().pod_hint(AWAY, gone, None)


def test_a_malformed_term_is_no_failure_when_a_node_comes() -> None:
    assert hints().node_hint(pod(away=[MALFORMED]), None, labelled(zone="1"))
