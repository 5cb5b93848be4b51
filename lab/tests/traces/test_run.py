"""One run: pods come, are placed, end, are evicted, give up and come again, each at its time."""

from __future__ import annotations

import pytest

from lab.tests.traces.scenes import column, nodes, once, pods
from moorage.base.digests import digest
from moorage.base.errors import ConfigError, UsageError
from moorage_lab.traces.in_python import simulate

_TIMES = ("name", "node", "arrived", "placed", "ended", "outcome")


def test_pods_come_run_and_end_at_their_times() -> None:
    source = pods(
        "3",
        count=3,
        arrivals={"kind": "spaced", "every": "10s"},
        runTime={"kind": "fixed", "mean": "15s"},
    )
    run = once({"nodes": [nodes()], "pods": [source]})
    # A pod starts a second after its binding, and a binding takes 2 ms. The second pod waits until
    # the first one ends at 16.002 s.
    assert column(run, *_TIMES) == [
        ("pod-1", "node-01", 0.0, 0.002, 16.002, "completed"),
        ("pod-2", "node-01", 10.0, 16.004, 32.004, "completed"),
        ("pod-3", "node-01", 20.0, 32.006, 48.006, "completed"),
    ]
    assert run.digest == digest((f"default/pod-{n}", "node-01") for n in (1, 2, 3))


def test_a_pod_that_fits_nowhere_is_pending_with_its_reason() -> None:
    run = once({"nodes": [nodes(2)], "pods": [pods("8")]})
    reason = (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert column(run, "name", "node", "placed", "outcome", "reason") == [
        ("pod-1", "", None, "pending", reason)
    ]


def test_a_pod_of_higher_priority_evicts_and_the_victim_comes_again() -> None:
    low = pods("3", name="low", resubmitted=True, spec={"priority": 1})
    low["template"]["spec"]["terminationGracePeriodSeconds"] = 5
    high = pods(
        "3",
        name="high",
        arrivals={"after": "1m"},
        runTime={"kind": "fixed", "mean": "1m"},
        spec={"priority": 9},
    )
    run = once({"nodes": [nodes()], "pods": [low, high]})
    found = column(run, "name", "outcome", "evictedBy")
    assert found == [
        ("low-1", "evicted", "default/high-1"),
        ("high-1", "completed", ""),
        ("low-1", "running", ""),
    ]
    assert run.totals["evicted"] == 1


def test_the_successor_of_an_evicted_pod_of_an_owner_runs_as_long() -> None:
    low = pods("3", name="low", runTime={"kind": "fixed", "mean": "1h"}, spec={"priority": 1})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "u"}
    low["template"]["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    high = pods("3", name="high", arrivals={"after": "1m"}, spec={"priority": 9})
    high["runTime"] = {"kind": "fixed", "mean": "1m"}
    run = once({"nodes": [nodes()], "pods": [low, high]})
    assert column(run, "outcome") == [("evicted",), ("completed",), ("completed",)]
    ended, placed = run.pods["ended"][2], run.pods["placed"][2]
    assert round(ended - placed) == 3601


def test_a_pod_gives_up_after_its_time_and_frees_its_place_in_the_queue() -> None:
    source = pods("3", count=2, giveUpAfter="30s", runTime={"kind": "fixed", "mean": "1m"})
    run = once({"nodes": [nodes()], "pods": [source]})
    assert column(run, *_TIMES) == [
        ("pod-1", "node-01", 0.0, 0.002, 61.002, "completed"),
        ("pod-2", "", 0.0, None, 30.0, "gaveUp"),
    ]


def test_pods_of_a_node_that_fails_are_lost_unless_they_come_again() -> None:
    stay = pods("1", name="stay", resubmitted=True)
    go = pods("1", name="go")
    run = once(
        {
            "nodes": [nodes()],
            "pods": [stay, go],
            "failures": [{"node": "node-01", "at": "1m", "for": "2m"}],
        }
    )
    found = column(run, "name", "outcome", "node")
    assert found == [
        ("stay-1", "lost", "node-01"),
        ("go-1", "lost", "node-01"),
        ("stay-1", "running", "node-01"),
    ]
    assert run.pods["placed"][2] > 180


def test_nodes_fail_at_random_alike_for_the_same_seed() -> None:
    scenario = {
        "nodes": [nodes(4)],
        "pods": [pods("1", count=8, resubmitted=True)],
        "randomFailures": {"every": "1h", "for": "5m", "until": "5h"},
        "seeds": [1, 1_000],
    }
    one, other = simulate(scenario).of_runs
    again = simulate(scenario).of_runs
    assert [each.digest for each in again] == [one.digest, other.digest]
    assert one.digest != other.digest
    assert one.totals["lost"] > 0


def test_a_run_ends_at_its_end_with_what_is_there() -> None:
    run = once({"nodes": [nodes()], "pods": [pods(arrivals={"after": "2h"})], "until": "1h"})
    assert (run.totals["pods"], run.totals["endSeconds"]) == (0, 3600.0)


def test_a_pod_that_waited_five_minutes_is_tried_again() -> None:
    """The flush looks every 30 seconds, and takes pods that waited for more than five minutes."""
    tried = [
        once({"nodes": [nodes()], "pods": [pods("8", giveUpAfter=end)]}).totals["attempts"]
        for end in ("329s", "331s", "659s", "691s")
    ]
    assert tried == [1, 2, 2, 3]


def test_series_tell_use_by_cluster_domain_and_namespace() -> None:
    source = pods("2", runTime={"kind": "fixed", "mean": "59s"})
    run = once(
        {
            "nodes": [nodes(2)],
            "pods": [source],
            "every": "30s",
            "domain": "kubernetes.io/hostname",
        }
    )
    names = ("seconds", "metric", "scope", "of", "resource", "value")
    rows = zip(*(run.series[name] for name in names), strict=True)
    cpu = [row for row in rows if row[1] == "utilisation" and row[4] == "cpu" and row[0] == 30.0]
    node = run.pods["node"][0]
    empty = {"node-01": "node-02", "node-02": "node-01"}[node]
    shares = {node: 0.5, empty: 0.0}
    assert cpu == [
        (30.0, "utilisation", "cluster", "", "cpu", 0.25),
        (30.0, "utilisation", "domain", "node-01", "cpu", shares["node-01"]),
        (30.0, "utilisation", "domain", "node-02", "cpu", shares["node-02"]),
        (30.0, "utilisation", "namespace", "default", "cpu", 0.25),
    ]


def test_free_room_that_the_usual_pod_cannot_use_is_fragmented() -> None:
    """Each node of 4 cores holds a pod of 3: the fourth core is of no use to such a pod."""
    run = once({"nodes": [nodes(2)], "pods": [pods("3", count=2)]})
    assert run.totals["fragmentationEnd/cpu"] == 1.0
    empty = once(
        {"nodes": [nodes(2)], "pods": [pods("3", arrivals={"after": "1m"})], "until": "1s"}
    )
    assert empty.totals["fragmentationEnd/cpu"] == 0.0


def test_configurations_and_grids_see_the_same_pods() -> None:
    found = simulate(
        {
            "nodes": [nodes(4)],
            "pods": [pods("1", count=4, arrivals={"kind": "poisson", "every": "10s"})],
            "configurations": [
                {"name": "plain"},
                {"name": "light", "weights": {"ImageLocality": 5}},
            ],
            "grid": {"NodeResourcesFit.scoringStrategy.type": ["LeastAllocated", "MostAllocated"]},
        }
    )
    assert found.configurations == [
        "plain NodeResourcesFit.scoringStrategy.type=LeastAllocated",
        "plain NodeResourcesFit.scoringStrategy.type=MostAllocated",
        "light NodeResourcesFit.scoringStrategy.type=LeastAllocated",
        "light NodeResourcesFit.scoringStrategy.type=MostAllocated",
    ]
    used = [int(each.totals["nodesUsed"]) for each in found.of_runs]
    assert used == [4, 1, 4, 1]
    arrived = [each.pods["arrived"] for each in found.of_runs]
    assert arrived == [arrived[0]] * 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"configurations": [{"name": "a", "file": "nowhere.yaml"}]},
            "nowhere.yaml: cannot read the file: No such file or directory",
            id="a configuration that is not there",
        ),
        pytest.param(
            {"grid": {"NodeResourcesFit.foo": [1]}},
            'configuration default NodeResourcesFit.foo=1: unknown field '
            '"profiles[0].pluginConfig[0].args.foo"',
            id="an argument that a plugin does not have",
        ),
        pytest.param(
            {"failures": [{"node": "node-9", "at": "1s"}]},
            "failures: there is no node node-9",
            id="a failing node that is not there",
        ),
        pytest.param(
            {"pods": [{"file": "nowhere.yaml"}]},
            "cannot read nowhere.yaml: No such file or directory",
            id="a file that is not there",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(changes: dict[str, object], message: str) -> None:
    scenario = {"nodes": [nodes()], "pods": [pods()], **changes}
    with pytest.raises((UsageError, ConfigError)) as error:
        simulate(scenario)
    assert str(error.value) == message
