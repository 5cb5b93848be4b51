"""InterPodAffinity against its scalar reference, in trials, and rule by rule.

Not covered: its hints (`test_hints`) and the index of existing terms (snapshot room).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.workloads import Namespace
from moorage.base.errors import ConfigError
from moorage.config.plugin_args import InterPodAffinityArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import SKIP, SUCCESS, error, unresolvable
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_lab.fault_sim.reference import pod_affinity as reference
from moorage_lab.fault_sim.reference.pod_affinity import AFFINITY, ANTI, EXISTING
from scheduler.tests.plugins.affinity.strategies import clusters, namespaces, node, pods
from scheduler.tests.plugins.builders import cluster, make, rejections, scores

NAME = "InterPodAffinity"
MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def label(snapshot: Snapshot, known: dict[str, dict[str, str]]) -> Snapshot:
    for name, labels in known.items():
        snapshot.listers.namespaces.put(
            from_dict(Namespace, {"metadata": {"name": name, "labels": labels}})
        )
    return snapshot


def build(random_cluster: reference.Cluster, known: dict[str, dict[str, str]]) -> Snapshot:
    placed = {node.name: list(pods) for node, pods in random_cluster}
    return label(cluster(*(node for node, _ in random_cluster), pods=placed), known)


def skips_filter(asked: Pod, random_cluster: reference.Cluster, known) -> bool:
    """Return whether no rule concerns the pod, so that PreFilter says Skip."""
    existing, _, _ = reference.counts(asked, random_cluster, known)
    terms = (*reference.required(reference.near(asked)), *reference.required(reference.away(asked)))
    return not existing and not terms


def expected_rejections(asked: Pod, random_cluster: reference.Cluster, known):
    if skips_filter(asked, random_cluster, known):
        return {}
    found = {
        n.name: reference.rejection(asked, n, random_cluster, known) for n, _ in random_cluster
    }
    return {name: rejection for name, rejection in found.items() if rejection is not None}


@MANY
@given(random_cluster=clusters(), asked=pods(), known=namespaces)
def test_filter_equals_reference(random_cluster, asked, known):
    snapshot = build(random_cluster, known)
    expected = expected_rejections(asked, random_cluster, known)
    assert rejections(NAME, snapshot, asked) == expected
    last = snapshot.num_nodes - 1
    only = {k: v for k, v in expected.items() if k == snapshot.names[last]}
    assert rejections(NAME, snapshot, asked, rows=[last]) == only


@MANY
@given(random_cluster=clusters(), asked=pods(), known=namespaces, data=st.data())
def test_a_row_must_pass_with_nominated_pods_counted_on_their_nodes_and_without(
    random_cluster, asked, known, data
):
    """Any pod of the random cluster may be nominated instead of placed."""
    placed: list[tuple[Node, list[Pod]]] = []
    nominated: dict[str, list[PodInfo]] = {}
    for one, its_pods in random_cluster:
        waiting = [each for each in its_pods if data.draw(st.booleans())]
        placed.append((one, [each for each in its_pods if each not in waiting]))
        if waiting:
            nominated[one.metadata.name] = [PodInfo(each) for each in waiting]
    snapshot = build(placed, known)
    snapshot.nominations = nominated
    without = expected_rejections(asked, placed, known)
    expected = {**without, **expected_rejections(asked, random_cluster, known)}
    assert rejections(NAME, snapshot, asked) == expected
    kubernetes = Snapshot(
        snapshot.table, snapshot.listers, nominations=nominated, nominated_everywhere=False
    )
    assert rejections(NAME, kubernetes, asked) == without


@MANY
@given(random_cluster=clusters(), asked=pods(), known=namespaces)
def test_filter_is_skipped_exactly_when_no_rule_concerns_the_pod(random_cluster, asked, known):
    snapshot = build(random_cluster, known)
    plugin, _ = make(NAME, snapshot)
    _, status = plugin.pre_filter(CycleState(), PodInfo(asked), snapshot)
    assert (status == SKIP) == skips_filter(asked, random_cluster, known)


@MANY
@given(
    random_cluster=clusters(),
    asked=pods(),
    known=namespaces,
    hard=st.sampled_from([0, 1, 50]),
    ignore=st.booleans(),
)
def test_scores_equal_reference(random_cluster, asked, known, hard, ignore):
    args = InterPodAffinityArgs(
        hard_pod_affinity_weight=hard, ignore_preferred_terms_of_existing_pods=ignore
    )
    expected = reference.scores(asked, random_cluster, known, hard, ignore=ignore)
    assert scores(NAME, build(random_cluster, known), asked, args=args) == expected


def answers(plugin: Any, state: CycleState, info: PodInfo, snapshot: Snapshot):
    answer = plugin.filter(state, info, snapshot.all())
    return None if answer is None else (answer.code_n.tolist(), answer.reason_n.tolist())


@MANY
@given(random_cluster=clusters(), asked=pods(), other=pods("other"), known=namespaces)
def test_add_pod_and_remove_pod_equal_a_new_pre_filter(random_cluster, asked, other, known):
    snapshot = build(random_cluster, known)
    plugin, _ = make(NAME, snapshot)
    info, added, state = PodInfo(asked), PodInfo(other), CycleState()
    _, status = plugin.pre_filter(state, info, snapshot)
    if status == SKIP:
        return
    before = answers(plugin, state, info, snapshot)
    removed = next(iter(snapshot.pods(0)), None)
    with snapshot.trial() as trial:
        changed = state.copy()
        trial.add_pod(added, snapshot.num_nodes - 1)
        plugin.add_pod(changed, info, added, row=snapshot.num_nodes - 1)
        if removed is not None:
            trial.remove_pod(removed.uid)
            plugin.remove_pod(changed, info, removed, row=0)
        fresh = CycleState()
        _, status = plugin.pre_filter(fresh, info, snapshot)
        expected = None if status == SKIP else answers(plugin, fresh, info, snapshot)
        assert answers(plugin, changed, info, snapshot) == expected
        if removed is not None:
            plugin.add_pod(changed, info, removed, row=0)
        plugin.remove_pod(changed, info, added, row=snapshot.num_nodes - 1)
    assert answers(plugin, changed, info, snapshot) == before
    assert answers(plugin, state, info, snapshot) == before
    assert rejections(NAME, snapshot, asked) == expected_rejections(asked, random_cluster, known)


# -- rule by rule ----------------------------------------------------------------------------------

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(key: str = "zone", app: str = "x", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def away(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def pod(name: str = "asked", app: str = "", *, ns: str = "a", affinity: Any = None) -> Pod:
    labels = {"app": app} if app else {}
    metadata = {"name": name, "namespace": ns, "uid": f"uid-{name}", "labels": labels}
    return from_dict(
        Pod, {"metadata": metadata, "spec": {"containers": [{"name": "c"}], "affinity": affinity}}
    )


def zones(placed: dict[str, list[Pod]]) -> Snapshot:
    """Nodes n1 (zone 1), n2 (zone 2), n3 (no zone)."""
    found = [node("n1", {"host": "n1", "zone": "1"}), node("n2", {"host": "n2", "zone": "2"})]
    return cluster(*found, node("n3", {"host": "n3"}), pods=placed)


NOT_IN = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["test"]}]}


@pytest.mark.parametrize(
    ("asked", "placed", "expected"),
    [
        pytest.param(
            pod(affinity=near(term())),
            {"n1": [pod("p", "x")]},
            {"n2": AFFINITY, "n3": AFFINITY},
            id="affinity allows only domains with a matching pod",
        ),
        pytest.param(
            pod(app="x", affinity=near(term())),
            {},
            {"n3": AFFINITY},
            id="without a matching pod, a pod that matches itself may go to any labelled node",
        ),
        pytest.param(
            pod(app="x", affinity=near(term())),
            {"n3": [pod("p", "x")]},
            {"n3": AFFINITY},
            id="a matching pod on a node without the label does not count",
        ),
        pytest.param(
            pod(app="y", affinity=near(term())),
            {},
            dict.fromkeys(("n1", "n2", "n3"), AFFINITY),
            id="without a matching pod, a pod that does not match itself goes nowhere",
        ),
        pytest.param(
            pod(affinity=near(term("zone"), term("host", "y"))),
            {"n1": [pod("p", "x"), pod("q", "y")]},
            dict.fromkeys(("n1", "n2", "n3"), AFFINITY),
            id="affinity counts only pods that match all terms",
        ),
        pytest.param(
            pod(affinity=away(term())),
            {"n1": [pod("p", "x")], "n3": [pod("q", "x")]},
            {"n1": ANTI},
            id="anti-affinity allows nodes without the label",
        ),
        pytest.param(
            pod(app="x", affinity=away(term())),
            {},
            {},
            id="anti-affinity that matches the pod itself does not reject the pod",
        ),
        pytest.param(
            pod(app="x"),
            {"n1": [pod("p", affinity=away(term()))], "n3": [pod("q", affinity=away(term()))]},
            {"n1": EXISTING},
            id="anti-affinity of an existing pod rejects a matching pod",
        ),
        pytest.param(
            pod(app="x", ns="b"),
            {"n1": [pod("p", affinity=away(term()))]},
            {},
            id="a term without namespaces selects the pod's own namespace",
        ),
        pytest.param(
            pod(app="x", affinity={**near(term("host", "z")), **away(term(app="w"))}),
            {
                "n1": [pod("p", "w", affinity=away(term()))],
                "n2": [pod("q", "z", affinity=away(term()))],
            },
            {"n1": AFFINITY, "n2": EXISTING, "n3": AFFINITY},
            id="reasons: affinity before anti-affinity before anti-affinity of existing pods",
        ),
        pytest.param(
            pod(affinity=away(term(namespaces=["b"]))),
            {"n1": [pod("p", "x")], "n2": [pod("q", "x", ns="b")]},
            {"n2": ANTI},
            id="listed namespaces replace the pod's own namespace",
        ),
        pytest.param(
            pod(affinity=away(term(namespaceSelector={"matchLabels": {"env": "prod"}}))),
            {"n1": [pod("p", "x")], "n2": [pod("q", "x", ns="b")]},
            {"n2": ANTI},
            id="a namespace selector selects namespaces by label",
        ),
        pytest.param(
            pod(affinity=away(term(namespaceSelector=NOT_IN))),
            {"n1": [pod("p", "x", ns="c")], "n2": [pod("q", "x", ns="b")]},
            {"n1": ANTI, "n2": ANTI},
            id="a namespace selector with only negative conditions matches every namespace",
        ),
        pytest.param(
            pod(app="x", ns="c"),
            {"n1": [pod("p", affinity=away(term(namespaceSelector=NOT_IN)))]},
            {},
            id="an existing pod's namespace selector is matched with the incoming pod's namespace",
        ),
        pytest.param(
            pod(affinity=away({"topologyKey": "zone"})),
            {"n1": [pod("p", "x")]},
            {},
            id="a term without a label selector matches no pod",
        ),
    ],
)
def test_filter(asked, placed, expected):
    snapshot = label(zones(placed), {"a": {}, "b": {"env": "prod"}, "c": {"env": "test"}})
    assert rejections(NAME, snapshot, asked) == expected


def test_a_relabelled_namespace_is_seen_at_once():
    snapshot = zones(
        {
            "n1": [
                pod("p", "x", ns="b"),
                pod(
                    "q",
                    affinity=away(
                        term("host", "y", namespaceSelector={"matchLabels": {"env": "prod"}})
                    ),
                ),
            ]
        }
    )
    plugin, _ = make(NAME, snapshot)
    selecting = pod(affinity=away(term(namespaceSelector={"matchLabels": {"env": "prod"}})))
    outsider = pod("outsider", "y", ns="b")
    for env, expected in (("test", None), ("prod", [2, 0, 0]), ("test", None)):
        label(snapshot, {"b": {"env": env}})
        for asked in (selecting, outsider):
            state, info = CycleState(), PodInfo(asked)
            _, status = plugin.pre_filter(state, info, snapshot)
            answer = None if status == SKIP else plugin.filter(state, info, snapshot.all())
            assert (None if answer is None else answer.code_n.tolist()) == expected


def test_removing_the_last_match_lets_a_self_matching_pod_start_its_group():
    match = pod("p", "x")
    snapshot = zones({"n1": [match]})
    plugin, _ = make(NAME, snapshot)
    state, info = CycleState(), PodInfo(pod(app="x", affinity=near(term())))
    assert plugin.pre_filter(state, info, snapshot) == (None, SUCCESS)
    second = snapshot.rows([1])
    assert plugin.filter(state, info, second).code_n.tolist() == [3]
    with snapshot.trial() as trial:
        trial.remove_pod(match.uid)
        plugin.remove_pod(state, info, PodInfo(match), row=0)
        assert plugin.filter(state, info, second) is None


def wish(weight: int, **more: Any) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": term(**more)}


def wishing(*wishes: dict[str, Any], kind: str = "podAffinity") -> dict[str, Any]:
    return {kind: {PREFERRED: list(wishes)}}


@pytest.mark.parametrize(
    ("asked", "placed", "args", "expected"),
    [
        pytest.param(pod(), {"n1": [pod("p", "x")]}, {}, None, id="no pod has a preferred term"),
        pytest.param(
            pod(affinity=wishing(wish(7))),
            {"n1": [pod("p", "x"), pod("q", "x")], "n3": [pod("r", "x")]},
            {},
            ([14, 0, 0], [100, 0, 0]),
            id="each matching pod adds the weight to its labelled domain",
        ),
        pytest.param(
            pod(affinity=wishing(wish(7), kind="podAntiAffinity")),
            {"n1": [pod("p", "x")]},
            {},
            ([-7, 0, 0], [0, 100, 100]),
            id="preferred anti-affinity subtracts the weight",
        ),
        pytest.param(
            pod(affinity={**wishing(wish(5)), **wishing(wish(5), kind="podAntiAffinity")}),
            {"n1": [pod("p", "x")]},
            {},
            ([0, 0, 0], [0, 0, 0]),
            id="weights that add up to 0 are still scored",
        ),
        pytest.param(
            pod(affinity={**wishing(wish(5), wish(4)), **wishing(wish(2), kind="podAntiAffinity")}),
            {"n1": [pod("p", "x")]},
            {},
            ([7, 0, 0], [100, 0, 0]),
            id="equal preferred terms add up",
        ),
        pytest.param(
            pod(app="x"),
            {"n1": [pod("p", affinity=near(term()))]},
            {"hard_pod_affinity_weight": 3},
            ([3, 0, 0], [100, 0, 0]),
            id="required affinity of existing pods has the weight in the arguments",
        ),
        pytest.param(
            pod(app="x"),
            {"n1": [pod("p", affinity=near(term()))]},
            {"hard_pod_affinity_weight": 0},
            None,
            id="required affinity of existing pods with weight 0 does not score",
        ),
        pytest.param(
            pod(app="x"),
            {"n1": [pod("p", affinity=near(term()))]},
            {"ignore_preferred_terms_of_existing_pods": True},
            None,
            id="ignorePreferredTermsOfExistingPods ignores required terms too",
        ),
        pytest.param(
            pod(app="x", affinity=wishing(wish(1, app="none"))),
            {"n1": [pod("p", affinity=wishing(wish(9)))]},
            {"ignore_preferred_terms_of_existing_pods": True},
            ([9, 0, 0], [100, 0, 0]),
            id="ignorePreferredTermsOfExistingPods has no effect on a pod with preferred terms",
        ),
        pytest.param(
            pod(affinity=wishing(wish(29, key="host"), wish(71, key="host", app="y"))),
            {"n1": [pod("p", "x")], "n2": [pod("q", "x"), pod("r", "y")]},
            {},
            ([29, 100, 0], [28, 100, 0]),
            id="a score of 29 becomes 28 by float64 truncation",
        ),
    ],
)
def test_score(asked, placed, args, expected):
    snapshot = zones(placed)
    assert scores(NAME, snapshot, asked, args=InterPodAffinityArgs(**args)) == expected


BROKEN = {
    "topologyKey": "zone",
    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]},
}
LIKE = '"Like" is not a valid label selector operator'


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        pytest.param(near(BROKEN), f"requiredAffinityTerms: {LIKE}", id="affinity"),
        pytest.param(
            wishing({"weight": 1, "podAffinityTerm": BROKEN}, kind="podAntiAffinity"),
            f"preferredAntiAffinityTerms: {LIKE}",
            id="anti-affinity",
        ),
        pytest.param(
            {**near(BROKEN), **away(BROKEN)},
            f"[requiredAffinityTerms: {LIKE}, requiredAntiAffinityTerms: {LIKE}]",
            id="affinity and anti-affinity",
        ),
    ],
)
def test_invalid_terms_reject_the_pod(affinity, message):
    snapshot = zones({})
    plugin, _ = make(NAME, snapshot)
    info = PodInfo(pod(affinity=affinity))
    found = plugin.pre_filter(CycleState(), info, snapshot)
    assert found == (None, unresolvable(f"parsing pod: {message}"))
    status = plugin.pre_score(CycleState(), info, snapshot.all())
    assert status == error(f"failed to parse pod: {message}")


def test_invalid_terms_of_an_existing_pod_count_as_absent():
    neighbour = pod("p", affinity={**away(term(), BROKEN), **wishing(wish(4))})
    snapshot = zones({"n1": [neighbour]})
    assert rejections(NAME, snapshot, pod(app="x")) == {}
    assert scores(NAME, snapshot, pod(app="x")) == ([4, 0, 0], [100, 0, 0])


def test_invalid_arguments_are_refused():
    with pytest.raises(ConfigError, match="hardPodAffinityWeight"):
        make(NAME, args=InterPodAffinityArgs(hard_pod_affinity_weight=101))


def test_every_domain_of_a_large_cluster_is_counted_through_an_array():
    rows = 120
    members = [pod(f"p{i}", "x", affinity=away(term("host"))) for i in range(rows)]
    snapshot = cluster(*(node(f"n{i}", {"host": f"n{i}"}) for i in range(rows)))
    for i in range(0, rows, 2):
        snapshot.table.add_pod(members[i], f"n{i}")
    plugin, _ = make(NAME, snapshot)

    def failing() -> list[int]:
        state, info = CycleState(), PodInfo(pod(app="x"))
        plugin.pre_filter(state, info, snapshot)
        answer = plugin.filter(state, info, snapshot.all())
        return [] if answer is None else [row for row in range(rows) if answer.code_n[row]]

    assert failing() == list(range(0, rows, 2))
    snapshot.table.add_pod(members[1], "n1")
    snapshot.table.remove_pod(members[2].uid)
    snapshot.table.add_node(node("new", {"host": "new"}))
    snapshot.table.add_pod(pod("late", affinity=away(term("host"))), "new")
    found = rejections(NAME, snapshot, pod(app="x"))
    assert found == {f"n{i}": EXISTING for i in (0, 1, *range(4, rows, 2))} | {"new": EXISTING}
