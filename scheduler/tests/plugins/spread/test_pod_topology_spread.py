"""PodTopologySpread by example: edge cases of the rules, defaults and errors.

What random clusters show better is in ``test_spread_against_reference.py``.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from moorage.config.plugin_args import PodTopologySpreadArgs
from moorage.framework.cycle_state import CycleState, StateMissingError
from moorage.framework.status import SKIP, error
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.plugins.builders import cluster, make, rejections, scores
from scheduler.tests.plugins.spread.strategies import HOSTNAME, ZONE, put

NAME = "PodTopologySpread"
REASON = "node(s) didn't match pod topology spread constraints"
SKEWED = ("Unschedulable", (REASON,))
NO_LABEL = ("UnschedulableAndUnresolvable", (f"{REASON} (missing required label)",))
WEB = {"app": "web"}
SELECT_WEB = {"matchLabels": WEB}


def a_node(name: str, zone: str | None, *, taint: str = "", **labels: str) -> Node:
    own = {HOSTNAME: name, **labels} | ({} if zone is None else {ZONE: zone})
    taints = [{"key": "k", "effect": taint}] if taint else []
    return from_dict(Node, {"metadata": {"name": name, "labels": own}, "spec": {"taints": taints}})


def a_pod(
    name: str,
    labels: dict[str, str] | None = None,
    *constraints: dict[str, Any],
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    base = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels or {}}
    full = {"containers": [{"name": "c"}], "topologySpreadConstraints": list(constraints), **spec}
    return from_dict(Pod, {"metadata": base | (metadata or {}), "spec": full})


def rule(key: str = ZONE, skew: int = 1, *, soft: bool = False, **fields: Any) -> dict[str, Any]:
    action = "ScheduleAnyway" if soft else "DoNotSchedule"
    base = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action}
    return base | {"labelSelector": SELECT_WEB} | fields


def webs(**count_by_node: int) -> dict[str, list[Pod]]:
    return {
        name: [a_pod(f"{name}-{i}", WEB) for i in range(count)]
        for name, count in count_by_node.items()
    }


NODES = [a_node("n1", "z1"), a_node("n2", "z1"), a_node("n3", "z2"), a_node("n4", None)]


@pytest.mark.parametrize(
    ("asked", "pods", "expected"),
    [
        pytest.param(
            a_pod("p", WEB, rule()),
            webs(n1=1),
            {"n1": SKEWED, "n2": SKEWED, "n4": NO_LABEL},
            id="the skew is exceeded in one zone, and a node has no zone",
        ),
        pytest.param(
            a_pod("p", WEB, rule(skew=2)), webs(n1=1), {"n4": NO_LABEL}, id="a skew of 2 is allowed"
        ),
        pytest.param(
            a_pod("p", {"app": "db"}, rule()),
            webs(n1=1),
            {"n4": NO_LABEL},
            id="a pod that its selector does not match adds 0 to the count",
        ),
        pytest.param(
            a_pod("p", WEB, rule(labelSelector=None)),
            webs(n1=5),
            {"n4": NO_LABEL},
            id="without a selector no pod is counted",
        ),
        pytest.param(
            a_pod("p", WEB, rule(labelSelector={})),
            webs(n1=5),
            {"n4": NO_LABEL},
            id="an empty selector counts only the pod itself",
        ),
        pytest.param(
            a_pod("p", WEB, rule(minDomains=3)),
            webs(n1=1, n3=1),
            {"n1": SKEWED, "n2": SKEWED, "n3": SKEWED, "n4": NO_LABEL},
            id="with fewer domains than minDomains the smallest count is 0",
        ),
        pytest.param(
            a_pod("p", WEB, rule(minDomains=2)),
            webs(n1=1, n3=1),
            {"n4": NO_LABEL},
            id="with minDomains domains the smallest count is used",
        ),
        pytest.param(
            a_pod("p", WEB, rule(HOSTNAME), rule(ZONE, 5)),
            webs(n1=1, n4=3),
            {"n1": SKEWED, "n4": NO_LABEL},
            id="pods on a node that lacks one key are not counted",
        ),
        pytest.param(
            a_pod("p", WEB, rule(HOSTNAME), nodeSelector={HOSTNAME: "n1"}),
            webs(n1=1),
            {},
            id="nodes that fail nodeSelector are no domains",
        ),
        pytest.param(
            a_pod("p", WEB, rule(HOSTNAME, nodeAffinityPolicy="Ignore"), nodeSelector={"a": "b"}),
            webs(n1=1),
            {"n1": SKEWED},
            id="with nodeAffinityPolicy Ignore, nodes that fail nodeSelector are domains",
        ),
        pytest.param(
            a_pod("p", WEB | {"ver": "2"}, rule(matchLabelKeys=["ver", "absent"])),
            webs(n1=3),
            {"n4": NO_LABEL},
            id="matchLabelKeys narrows the selector, absent labels are ignored",
        ),
        pytest.param(
            a_pod("p", WEB, rule(), metadata={"namespace": "other"}),
            webs(n1=3),
            {"n4": NO_LABEL},
            id="pods of other namespaces are not counted",
        ),
        pytest.param(
            a_pod("p", WEB, rule(soft=True)), webs(n1=9), {}, id="soft constraints never reject"
        ),
        pytest.param(a_pod("p", WEB), webs(n1=9), {}, id="no constraints"),
    ],
)
def test_filter(asked, pods, expected):
    assert rejections(NAME, cluster(*NODES, pods=pods), asked) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param("Ignore", {"n1": SKEWED}, id="by default a tainted node is a domain"),
        pytest.param("Honor", {}, id="with nodeTaintsPolicy Honor a tainted node is no domain"),
    ],
)
def test_taints(policy, expected):
    nodes = [a_node("n1", "z1"), a_node("n2", "z2", taint="NoExecute")]
    asked = a_pod("p", WEB, rule(nodeTaintsPolicy=policy))
    assert rejections(NAME, cluster(*nodes, pods=webs(n1=1)), asked) == expected


@pytest.mark.parametrize(
    ("as_upstream", "codes"),
    [
        pytest.param(True, [0, 2], id="upstream: zone z1 has -1"),
        pytest.param(False, None, id="a pod that was not counted makes no difference"),
    ],
)
def test_the_removal_of_a_terminating_pod(as_upstream, codes):
    leaving = a_pod("leaving", WEB, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    snapshot = cluster(a_node("n1", "z1"), a_node("n2", "z2"), pods={"n1": [leaving]})
    asked = PodInfo(a_pod("p", WEB, rule()))
    snapshot.nominated_everywhere = not as_upstream
    plugin, _ = make(NAME, snapshot)
    state = CycleState()
    plugin.pre_filter(state, asked, snapshot)
    assert plugin.filter(state, asked, snapshot.all()) is None
    plugin.remove_pod(state, asked, PodInfo(leaving), row=0)
    answer = plugin.filter(state, asked, snapshot.all())
    assert (answer.code_n.tolist() if answer is not None else None) == codes


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        pytest.param([], [0, 0, 2], id="no pod is moved"),
        pytest.param([("n2", +1)], [0, 2, 2], id="the smallest domain stays the smallest"),
        pytest.param(
            [("n1", +1)], [0, 0, 0], id="the smallest domain becomes as large as the next"
        ),
        pytest.param(
            [("n1", +1)] * 3, [2, 0, 0], id="the smallest domain becomes larger than the next"
        ),
        pytest.param(
            [("n3", -1)] * 2, [0, 0, 0], id="a large domain becomes as small as the smallest"
        ),
        pytest.param([("n2", -1)] * 3, [2, 0, 2], id="another domain becomes the smallest"),
        pytest.param([("n1", +1), ("n2", +1)], [0, 0, 0], id="two domains become larger"),
    ],
)
def test_added_and_removed_pods_change_the_smallest_count(moves, expected):
    nodes = [a_node("n1", "z1"), a_node("n2", "z2"), a_node("n3", "z3")]
    snapshot = cluster(*nodes, pods=webs(n2=1, n3=2))
    plugin, _ = make(NAME, snapshot)
    asked, state = PodInfo(a_pod("p", WEB, rule(skew=2))), CycleState()
    plugin.pre_filter(state, asked, snapshot)
    for name, step in moves:
        move = plugin.add_pod if step > 0 else plugin.remove_pod
        move(state, asked, PodInfo(a_pod("other", WEB)), row=snapshot.row_of(name))
    answer = plugin.filter(state, asked, snapshot.all())
    assert (answer.code_n.tolist() if answer is not None else [0] * 3) == expected
    for row, code in enumerate(expected):
        one = plugin.filter(state, asked, snapshot.rows([row]))
        assert (0 if one is None else int(one.code_n[0])) == code


# -- scores ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "pods", "expected"),
    [
        pytest.param(
            a_pod("p", WEB, rule(HOSTNAME, soft=True)),
            webs(n1=2, n2=1, n4=3),
            ([4, 2, 0, 5], [20, 60, 100, 0]),
            id="fewer matching pods score higher",
        ),
        pytest.param(
            a_pod("p", WEB, rule(HOSTNAME, 3, soft=True)),
            webs(n1=1, n2=1, n3=1, n4=1),
            ([4, 4, 4, 4], [100, 100, 100, 100]),
            id="equal counts score equally",
        ),
        pytest.param(
            a_pod("p", WEB, rule(ZONE, soft=True)),
            webs(n1=2, n4=7),
            ([3, 3, 0, 0], [0, 0, 100, 0]),
            id="a node without the key has the raw score and the score 0",
        ),
        pytest.param(
            a_pod("p", WEB, rule("rack", soft=True)),
            webs(n1=2),
            ([0, 0, 0, 0], [0, 0, 0, 0]),
            id="no node has the key",
        ),
        pytest.param(
            a_pod("p", WEB, rule(labelSelector={}, soft=True, skew=1)),
            webs(n1=2),
            ([0, 0, 0, 0], [100, 100, 100, 0]),
            id="an empty selector counts no pod",
        ),
        pytest.param(a_pod("p", WEB, rule()), webs(n1=2), None, id="hard constraints never score"),
    ],
)
def test_score(asked, pods, expected):
    assert scores(NAME, cluster(*NODES, pods=pods), asked) == expected


def test_weights_depend_on_domains_of_feasible_nodes_only():
    asked = a_pod("p", WEB, rule(ZONE, soft=True))
    snapshot = cluster(*NODES, pods=webs(n1=2))
    assert scores(NAME, snapshot, asked, rows=[0, 1]) == ([2, 2], [100, 100])  # 2 ln 3
    assert scores(NAME, snapshot, asked, rows=[2, 0]) == ([0, 3], [100, 0])  # 2 ln 4


# -- defaults ----------------------------------------------------------------------------------


def owned(kind: str, api_version: str = "apps/v1", *, controller: bool = True) -> Pod:
    reference = {"apiVersion": api_version, "kind": kind, "name": "o", "controller": controller}
    return a_pod("p", WEB, metadata={"ownerReferences": [reference]})


def named(kind: type[Any], selector: Any, name: str = "o", namespace: str = "default") -> Any:
    metadata = {"name": name, "namespace": namespace}
    return from_dict(kind, {"metadata": metadata, "spec": {"selector": selector}})


HARD_ZONE = PodTopologySpreadArgs(
    defaulting_type="List",
    default_constraints=(
        TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule"),
    ),
)
FULL = {"n1": SKEWED, "n2": SKEWED, "n4": NO_LABEL}


@pytest.mark.parametrize(
    ("asked", "known", "expected"),
    [
        pytest.param(a_pod("p", WEB), [], {}, id="no service or owner selects the pod"),
        pytest.param(a_pod("p", WEB), [named(Service, WEB)], FULL, id="a service selects the pod"),
        pytest.param(
            a_pod("p", WEB),
            [named(Service, {})],
            {},
            id="a service with an empty selector does not count",
        ),
        pytest.param(
            a_pod("p", WEB),
            [named(Service, None)],
            {},
            id="a service without selector does not count",
        ),
        pytest.param(
            a_pod("p", WEB), [named(Service, {"app": "db"})], {}, id="a service for other pods"
        ),
        pytest.param(
            a_pod("p", WEB),
            [named(Service, WEB, namespace="b")],
            {},
            id="a service of another namespace",
        ),
        pytest.param(
            a_pod("p", WEB, rule(soft=True)),
            [named(Service, WEB)],
            {},
            id="a pod with constraints gets no default constraints",
        ),
        pytest.param(owned("ReplicaSet"), [named(ReplicaSet, SELECT_WEB)], FULL, id="ReplicaSet"),
        pytest.param(
            owned("StatefulSet"), [named(StatefulSet, SELECT_WEB)], FULL, id="StatefulSet"
        ),
        pytest.param(
            owned("ReplicationController", "v1"),
            [named(ReplicationController, WEB)],
            FULL,
            id="ReplicationController",
        ),
        pytest.param(
            owned("ReplicationController", "v1"),
            [named(ReplicationController, {"app": "db"}), named(Service, WEB)],
            {"n4": NO_LABEL},
            id="the owner's labels replace equal labels of services",
        ),
        pytest.param(
            owned("ReplicaSet"),
            [named(ReplicaSet, {"matchLabels": {"ver": "2"}}), named(Service, WEB)],
            {"n4": NO_LABEL},
            id="the selector of a ReplicaSet is added to that of services",
        ),
        pytest.param(
            owned("ReplicaSet", controller=False),
            [named(ReplicaSet, SELECT_WEB)],
            {},
            id="an owner that is not the controller",
        ),
        pytest.param(
            owned("ReplicaSet", "apps/v1beta1"),
            [named(ReplicaSet, SELECT_WEB)],
            {},
            id="another version of the kind",
        ),
        pytest.param(owned("Job", "batch/v1"), [], {}, id="a Job"),
        pytest.param(owned("ReplicaSet"), [], {}, id="a deleted owner"),
        pytest.param(
            owned("ReplicaSet"), [named(ReplicaSet, None)], {}, id="an owner without selector"
        ),
        pytest.param(
            owned("ReplicaSet"),
            [named(ReplicaSet, {"matchExpressions": [{"key": "a", "operator": "Near"}]})],
            {},
            id="an owner with an invalid selector",
        ),
    ],
)
def test_default_constraints(asked, known, expected):
    snapshot = cluster(*NODES, pods=webs(n1=1))
    for obj in known:
        put(snapshot.listers, obj)
    assert rejections(NAME, snapshot, asked, args=HARD_ZONE) == expected


def test_system_defaults_score_nodes_without_zone_too():
    snapshot = cluster(*NODES, pods=webs(n1=2))
    asked = a_pod("p", WEB)
    assert scores(NAME, snapshot, asked) is None
    put(snapshot.listers, named(Service, WEB))
    # host: count * ln 6 + 2; zone, of three with "no zone": count * ln 5 + 4.
    assert scores(NAME, snapshot, asked) == ([13, 9, 6, 2], [15, 46, 69, 100])
    assert rejections(NAME, snapshot, asked) == {}


def test_listed_defaults_need_every_key():
    args = PodTopologySpreadArgs(
        defaulting_type="List",
        default_constraints=(
            TopologySpreadConstraint(
                max_skew=1, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"
            ),
        ),
    )
    snapshot = cluster(*NODES)
    put(snapshot.listers, named(Service, WEB))
    asked = a_pod("p", WEB)
    assert scores(NAME, snapshot, asked, args=args) == ([0] * 4, [100, 100, 100, 0])
    assert scores(NAME, snapshot, asked, args=PodTopologySpreadArgs(defaulting_type="List")) is None


def test_defaults_follow_services_and_owners():
    snapshot, asked = cluster(*NODES, pods=webs(n1=1)), PodInfo(owned("ReplicaSet"))
    plugin, _ = make(NAME, snapshot, args=HARD_ZONE)
    listers = snapshot.listers

    def failing() -> int:
        state = CycleState()
        if plugin.pre_filter(state, asked, snapshot)[1] == SKIP:
            return 0
        return int((plugin.filter(state, asked, snapshot.all()).code_n != 0).sum())

    service, owner = named(Service, WEB), named(ReplicaSet, SELECT_WEB)
    narrow = named(ReplicaSet, {"matchLabels": {"ver": "2"}})
    found = [failing()]
    changes: list[tuple[Any, Any]] = [
        (listers.services.put, service),
        (listers.replica_sets.put, narrow),
        (listers.services.remove, service),
        (listers.replica_sets.put, owner),
        (listers.replica_sets.remove, owner),
    ]
    for change, obj in changes:
        change(obj)
        found.append(failing())
    assert found == [0, 3, 1, 1, 3, 0]


# -- errors and half-enabled profiles ----------------------------------------------------------

BROKEN = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
NEAR = '"Near" is not a valid label selector operator'


def test_an_invalid_selector_fails_at_the_extension_point_that_needs_it():
    snapshot = cluster(*NODES)
    plugin, _ = make(NAME, snapshot)
    hard = PodInfo(a_pod("p", WEB, rule(labelSelector=BROKEN), rule(soft=True)))
    soft = PodInfo(a_pod("p", WEB, rule(), rule(labelSelector=BROKEN, soft=True)))
    text = f"obtaining pod's hard topology spread constraints: {NEAR}"
    assert plugin.pre_filter(CycleState(), hard, snapshot) == (None, error(text))
    assert plugin.pre_score(CycleState(), hard, snapshot.all()).ok
    assert plugin.pre_filter(CycleState(), soft, snapshot)[1].ok
    text = f"calculating preScoreState: obtaining pod's soft topology spread constraints: {NEAR}"
    assert plugin.pre_score(CycleState(), soft, snapshot.all()) == error(text)


def test_filter_and_score_without_pre_filter_and_pre_score_raise():
    plugin, _ = make(NAME, snapshot := cluster(*NODES))
    asked = PodInfo(a_pod("p", WEB, rule()))
    calls: list[Any] = [
        lambda state: plugin.filter(state, asked, snapshot.all()),
        lambda state: plugin.score(state, asked, snapshot.all()),
        lambda state: plugin.add_pod(state, asked, asked, row=0),
        lambda state: plugin.remove_pod(state, asked, asked, row=0),
    ]
    for call in calls:
        with pytest.raises(StateMissingError, match=r"^not found$"):
            call(CycleState())


def test_statefulset_pods_share_compiled_constraints():
    first, second = (
        PodInfo(
            a_pod(f"web-{i}", {**WEB, "statefulset.kubernetes.io/pod-name": f"web-{i}"}, rule())
        )
        for i in range(2)
    )
    plugin, _ = make(NAME)
    assert plugin._constraints(first) is plugin._constraints(second)
