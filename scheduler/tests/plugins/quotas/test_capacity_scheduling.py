"""CapacityScheduling: bounds as a quota is written, what is said, who may preempt, the books."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Nomination
from moorage.engine.select_node import smallest_name
from moorage.framework.effects import NoEffects
from moorage.framework.handle import Handle
from moorage.framework.status import ReasonTable
from moorage.plugins.quotas.capacity_scheduling import STILL_COUNTED
from moorage.plugins.quotas.elastic_quotas import QuotaBooks, request_of
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.plugins.builders import make
from scheduler.tests.plugins.quotas.builders import profile_with, quota

NO_CLAIMS = "no new claims to deallocate, "
MAX = "Pod a/asking is rejected in PreFilter because ElasticQuota a is more than Max"
MIN = "Pod a/asking is rejected in PreFilter because total ElasticQuota used is more than min"


class Told(NoEffects):
    """Remembers the notes of Events."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def emit(self, pod: Pod, **said: Any) -> None:
        self.notes.append(f"{pod.name} {said['kind']} {said['reason']}: {said['note']}")


def cluster(*pods: tuple[Pod, str], nodes: int = 1, cpu: str = "8") -> Snapshot:
    snapshot = Snapshot()
    for i in range(nodes):
        snapshot.table.add_node(node(f"n{i}", cpu=cpu, memory="16Gi", ephemeral_storage="100Gi"))
    for each, where in pods:
        snapshot.table.add_pod(each, where)
    return snapshot


def decide(snapshot: Snapshot, asking: Pod, told: Told | None = None) -> Decision:
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
        effects=told or Told(),
    )
    profile = profile_with("CapacityScheduling", handle)
    return Cycle(profile, snapshot, smallest_name).decide(PodInfo(asking))


def asking(cpu: str = "1", *, namespace: str = "a", **fields: Any) -> Pod:
    return pod("asking", namespace=namespace, cpu=cpu, **fields)


def running(name: str, namespace: str, cpu: str = "2", **fields: Any) -> Pod:
    return pod(name, namespace=namespace, cpu=cpu, **fields)


def terminating(given: Pod) -> Pod:
    metadata = msgspec.structs.replace(given.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return msgspec.structs.replace(given, metadata=metadata)


def nominated(given: Pod, node_name: str) -> Pod:
    status = msgspec.structs.replace(given.status, nominated_node_name=node_name)
    return msgspec.structs.replace(given, status=status)


@pytest.mark.parametrize(
    ("minimum", "maximum", "asked", "refused"),
    [
        pytest.param({"cpu": 4}, {"cpu": 4}, {"cpu": "2"}, "", id="within both bounds"),
        pytest.param({"cpu": 9}, {"cpu": "3500m"}, {"cpu": "2"}, MAX, id="above the maximum"),
        pytest.param({"cpu": 3}, {"cpu": 9}, {"cpu": "2"}, MIN, id="above all minimums together"),
        pytest.param({"cpu": 9}, None, {"cpu": "2"}, "", id="without a maximum any use is allowed"),
        pytest.param(None, None, {"cpu": "2"}, MIN, id="without a minimum nothing is guaranteed"),
        pytest.param(
            {"cpu": 9, "memory": "9Gi"},
            {"cpu": 9},
            {"cpu": "1", "memory": "1"},
            MAX,
            id="a maximum without memory allows no memory",
        ),
        pytest.param(
            {"cpu": 9, "ephemeral-storage": "9Gi"},
            {"cpu": 9},
            {"ephemeral-storage": "1"},
            MAX,
            id="a maximum without ephemeral storage allows no ephemeral storage",
        ),
        pytest.param(
            {"cpu": 9, "hugepages-2Mi": "4Mi"},
            {"cpu": 9},
            {"hugepages-2Mi": "0"},
            "",
            id="a maximum without another resource does not bound it",
        ),
        pytest.param(
            {"cpu": 9, "pods": 1},
            {"cpu": 9, "pods": 1},
            {"cpu": "1"},
            "",
            id="pods are not counted",
        ),
        pytest.param(
            {"cpu": 2}, {"cpu": 1}, {}, MAX, id="a maximum below the present use admits no pod"
        ),
        pytest.param({}, None, {}, MIN, id="minimums below the present use admit no pod"),
    ],
)
def test_pre_filter_against_quotas(
    minimum: Mapping[str, Any] | None,
    maximum: Mapping[str, Any] | None,
    asked: dict[str, str],
    refused: str,
):
    """Two cpus are used in the namespace."""
    snapshot = cluster((running("r", "a"), "n0"))
    snapshot.listers.elastic_quotas.put(quota("a", minimum, maximum))
    main = {"name": "main", "resources": {"requests": asked}}
    decision = decide(snapshot, pod("asking", namespace="a", containers=[main]))
    assert decision.message.partition(".")[0].removeprefix("0/1 nodes are available: ") == refused


def test_a_namespace_borrows_at_most_the_unused_minimums():
    snapshot = cluster((running("r", "a", "4"), "n0"))
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 2}, {"cpu": 9}))
    snapshot.listers.elastic_quotas.put(quota("b", {"cpu": 4}))
    assert decide(snapshot, asking("2")).node_name == "n0"
    told = Told()
    assert decide(snapshot, asking("2500m"), told).message.startswith(
        f"0/1 nodes are available: {MIN}."
    )
    assert told.notes == [
        "asking Warning ElasticQuotaExceeded: all ElasticQuotas together: "
        "cpu 4000m used and 2500m asked, 6000m guaranteed"
    ]


def test_a_quota_lowered_below_its_use_rejects_with_figures():
    snapshot = cluster((running("r", "a", "4"), "n0"))
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 9}, {"cpu": 3}))
    told = Told()
    decision = decide(snapshot, asking("1"), told)
    assert decision.message == (
        f"0/1 nodes are available: {MAX}. {NO_CLAIMS}0/1 nodes are available: "
        "1 No victims found on node n0 for preemptor pod asking."
    )
    assert told.notes == [
        "asking Warning ElasticQuotaExceeded: "
        "ElasticQuota a/quota: cpu 4000m used and 1000m asked, 3000m at most"
    ]


def test_a_borrower_loses_only_the_borrowed_amount_least_important_pods_first():
    borrowers = [(running(f"b{i}", "b", "2", priority=i), "n0") for i in range(4)]
    snapshot = cluster(*borrowers)
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 4}))
    snapshot.listers.elastic_quotas.put(quota("b", {"cpu": 4}))
    decision = decide(snapshot, asking("4"))
    assert decision.nomination is not None
    assert decision.nomination.node_name == "n0"
    assert [each.name for each in decision.victims] == ["b1", "b0"]
    assert decide(snapshot, asking("5")).victims == ()  # more than a is guaranteed


def test_a_borrowing_preemptor_evicts_only_in_its_own_namespace():
    residents = [
        (running("less", "a", "4", priority=-1), "n0"),
        (running("other", "b", "4", priority=-9), "n0"),
    ]
    snapshot = cluster(*residents)
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 2}))
    snapshot.listers.elastic_quotas.put(quota("b", {"cpu": 6}))
    assert [each.name for each in decide(snapshot, asking("4")).victims] == ["less"]


def test_a_preemptor_without_a_quota_evicts_no_pods_with_one():
    residents = [
        (running("quotaed", "a", "4", priority=-9), "n0"),
        (running("free", "free", "4", priority=-1), "n0"),
    ]
    snapshot = cluster(*residents)
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 8}))
    decision = decide(snapshot, asking("3", namespace="other"))
    assert [each.name for each in decision.victims] == ["free"]


@pytest.mark.parametrize(
    ("namespace", "leaving", "refused"),
    [
        pytest.param(
            "a",
            running("l", "a", priority=-1),
            True,
            id="a terminating pod of lower priority in the namespace",
        ),
        pytest.param(
            "a",
            running("l", "a", priority=5),
            False,
            id="a terminating pod of higher priority in the namespace",
        ),
        pytest.param(
            "a",
            running("l", "b", priority=5),
            True,
            id="a terminating pod of a borrowing namespace, of any priority",
        ),
        pytest.param(
            "a", running("l", "free", priority=-1), False, id="a terminating pod without a quota"
        ),
        pytest.param(
            "free",
            running("l", "free", priority=-1),
            True,
            id="preemptor and terminating pod without a quota",
        ),
        pytest.param(
            "free",
            running("l", "a", priority=-1),
            False,
            id="preemptor without a quota, terminating pod with a quota",
        ),
    ],
)
def test_no_further_eviction_while_victims_terminate_on_the_nominated_node(
    namespace: str, leaving: Pod, *, refused: bool
):
    snapshot = cluster((terminating(leaving), "n0"), (running("b", "b", "6"), "n0"))
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 8}))
    snapshot.listers.elastic_quotas.put(quota("b", {"cpu": 1}))
    decision = decide(snapshot, nominated(asking("2", namespace=namespace), "n0"))
    waits = "not eligible due to a terminating pod on the nominated node." in decision.message
    assert waits is refused


@pytest.mark.parametrize(
    ("stops", "cpu", "victims"),
    [
        pytest.param(running("l", "b"), "2", [], id="without a borrower that stops, quotas hold"),
        pytest.param(running("l", "a"), "2", [], id="without a pod of its namespace, quotas hold"),
        pytest.param(running("l", "b"), "3", ["stays"], id="the quotas are exceeded all the same"),
        pytest.param(running("l", "free"), "3", ["stays"], id="the pod that stops has no quota"),
    ],
)
def test_a_nominated_pod_waits_for_pods_on_other_nodes_that_count_in_the_quotas(
    stops: Pod, cpu: str, victims: list[str]
):
    """The preemptor's node is free. What it lacks is a share that pods on n1 use."""
    asks = nominated(asking(cpu), "n0")
    snapshot = cluster((running("stays", "b", "6"), "n1"), (terminating(stops), "n1"), nodes=2)
    snapshot.nominations = {"n0": [PodInfo(asks)]}
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 8}))
    snapshot.listers.elastic_quotas.put(quota("b", {}))
    decision = decide(snapshot, asks)
    waits = decision.message.endswith(f"{NO_CLAIMS}{STILL_COUNTED}")
    assert ([each.name for each in decision.victims], waits) == (victims, not victims)


@pytest.mark.parametrize(
    ("stops", "cpu", "on_n0", "outcome"),
    [
        pytest.param(running("l", "b"), "2", "0", ("n0", []), id="a node is free: it is held"),
        pytest.param(
            running("l", "b"), "2", "7", ("n1", ["stays"]), id="no node is free: one pod goes"
        ),
        pytest.param(
            running("l", "b"),
            "3",
            "0",
            ("n1", ["stays"]),
            id="the quotas are exceeded all the same",
        ),
        pytest.param(
            running("l", "free"), "3", "0", ("n1", ["stays"]), id="the pod that stops has no quota"
        ),
    ],
)
def test_a_pod_that_lacks_only_the_share_of_stopping_pods_is_nominated_where_there_is_room(
    stops: Pod, cpu: str, on_n0: str, outcome: tuple[str, list[str]]
):
    """Nobody is nominated: the preemptor of the pod that stops lost its node."""
    snapshot = cluster(
        (running("other", "free", on_n0), "n0"),
        (running("stays", "b", "6"), "n1"),
        (terminating(stops), "n1"),
        nodes=2,
    )
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 8}))
    snapshot.listers.elastic_quotas.put(quota("b", {}))
    decision = decide(snapshot, asking(cpu))
    victims = [each.name for each in decision.victims]
    assert decision.nomination is not None
    assert (decision.nomination.node_name, victims) == outcome
    assert decision.message.endswith(f"{NO_CLAIMS}{STILL_COUNTED}") is (not victims)


def test_a_pod_whose_nominated_node_was_cordoned_is_nominated_to_another_one():
    """PreFilter rejects the pod, so no Filter says in the search that n1 is cordoned."""
    asks = nominated(asking("2"), "n1")
    snapshot = cluster(
        (running("stays", "b", "6"), "n0"),
        (running("other", "free", "2"), "n0"),
        (terminating(running("l", "b")), "n1"),
    )
    snapshot.table.add_node(node("n1", cpu="8", unschedulable=True))
    snapshot.table.add_node(node("n2", cpu="8"))
    snapshot.nominations = {"n1": [PodInfo(asks)]}
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 8}))
    snapshot.listers.elastic_quotas.put(quota("b", {}))
    decision = decide(snapshot, asks)
    assert decision.nomination == Nomination("n2")
    assert decision.message.endswith(f"{NO_CLAIMS}{STILL_COUNTED}")


def test_preemption_policy_never_prevents_preemption():
    snapshot = cluster((running("b", "b", "8"), "n0"))
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 8}))
    snapshot.listers.elastic_quotas.put(quota("b", {"cpu": 1}))
    decision = decide(snapshot, asking("2", preemptionPolicy="Never"))
    assert decision.message.endswith(f"{NO_CLAIMS}not eligible due to preemptionPolicy=Never.")


def test_an_invalid_quantity_rejects_pods_of_its_namespace_only():
    snapshot = cluster()
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": "much"}))
    decision = decide(snapshot, asking())
    assert "ElasticQuota a/quota: spec.min[cpu]: " in decision.message
    assert "; fix the quota" in decision.message
    assert decide(snapshot, asking(namespace="b")).node_name == "n0"


def test_of_several_quotas_in_a_namespace_the_first_counts():
    snapshot = cluster()
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 4}, name="first"))
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 0}, name="second"))
    assert decide(snapshot, asking()).node_name == "n0"


def test_the_events_that_make_room_in_a_quota():
    plugin, _ = make("CapacityScheduling")
    assert [(each.event, each.hint) for each in plugin.events_to_register()] == [
        (ClusterEvent(Resource.POD, Action.DELETE), None),
        (ClusterEvent("elasticquotas.v1alpha1.scheduling.x-k8s.io", Action.ALL), None),
    ]


changes = st.lists(
    st.tuples(
        st.sampled_from(["pod", "pod", "pod", "gone", "node", "no node", "trial"]),
        st.integers(0, 5),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["1", "2500m", "0"]),
    ),
    max_size=25,
)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(steps=changes)
def test_kept_sums_equal_the_sum_over_all_pods(steps: list[tuple[str, int, str, str]]):
    """Pods come and go, nodes as well, pods on unknown nodes count, and so do those on trial."""
    snapshot = cluster(nodes=0)
    table = snapshot.table
    for namespace in ("a", "b"):
        snapshot.listers.elastic_quotas.put(quota(namespace, {}))
    books = QuotaBooks(snapshot.listers.elastic_quotas, table)
    pods: dict[str, Pod] = {}

    def check(*further: Pod) -> None:
        usage = books.usage()
        for namespace in ("a", "b"):
            mine = [each for each in (*pods.values(), *further) if each.namespace == namespace]
            expected = sum(request_of(PodInfo(each)).get("cpu", 0) for each in mine)
            assert usage.used(namespace).get("cpu", 0) == expected
        assert usage.total.get("cpu", 0) == sum(
            usage.used(namespace).get("cpu", 0) for namespace in ("a", "b")
        )

    for index, (kind, number, namespace, cpu) in enumerate(steps):
        name = f"n{number}"
        if kind == "pod":
            made = running(f"p{index}", namespace, cpu)
            pods[made.uid] = made
            table.add_pod(made, name)
        elif kind == "gone" and pods:
            uid = sorted(pods)[number % len(pods)]
            table.remove_pod(uid)
            del pods[uid]
        elif kind == "node":
            table.add_node(node(name))
        elif kind == "no node" and table.has_node(name):
            table.remove_node(name)
        elif kind == "trial" and table.has_node(name):
            tried = running("tried", namespace, cpu)
            with snapshot.trial() as trial:
                row = table.row_of(name)
                assert row is not None
                trial.add_pod(PodInfo(tried), row)
                check(tried)
        check()


@pytest.mark.parametrize(("cpu", "message"), [("4", ""), ("5", MIN)])
def test_a_nominated_member_that_is_on_a_node_on_trial_counts_once(cpu: str, message: str):
    member = nominated(running("member", "a", "4"), "n1")
    snapshot = cluster((running("b", "b", "8"), "n0"), nodes=2)
    snapshot.nominations = {"n1": [PodInfo(member)]}
    snapshot.listers.elastic_quotas.put(quota("a", {"cpu": 16}))
    snapshot.listers.elastic_quotas.put(quota("b", {}))
    trial = snapshot.trial()
    trial.add_pod(PodInfo(member), 1)
    decision = decide(snapshot, asking(cpu))
    assert decision.message.partition(".")[0].removeprefix("0/2 nodes are available: ") == message
    trial.undo()
