"""The node table under single events: rows, hidden pods, labels, sets, images, sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.snapshot.builders import cluster, node, pod, port, taint_names, validate

TAINTED = [{"key": "k", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("removed", "names"),
    [
        pytest.param(["n1"], ["n3", "n2"], id="the last row moves into the hole"),
        pytest.param(["n3"], ["n1", "n2"], id="removing the last row moves nothing"),
        pytest.param(["n2", "n1"], ["n3"], id="a moved row can move again"),
        pytest.param(["n1", "n2", "n3"], [], id="the table can become empty"),
    ],
)
def test_rows_stay_dense(removed, names):
    snapshot = cluster(
        node("n1", allocatable={"cpu": "1"}),
        node("n2", allocatable={"cpu": "2"}, taints=TAINTED),
        node("n3", allocatable={"cpu": "3"}, labels={"zone": "z3"}),
        pods={name: [pod(f"p-{name}", requests={"cpu": "100m"})] for name in ("n1", "n2", "n3")},
    )
    snapshot.label_column("zone")
    for name in removed:
        snapshot.table.remove_node(name)
    validate(snapshot)
    assert list(snapshot.names) == names
    assert snapshot.allocatable("cpu").tolist() == [1000 * int(name[1]) for name in names]
    assert snapshot.requested("cpu").tolist() == [100 for _ in names]
    assert [bool(taints) for taints in taint_names(snapshot).values()] == [
        name == "n2" for name in names
    ]
    zones = snapshot.label_column("zone")
    assert [zones.lookup("z3") == i for i in zones.ids] == [name == "n3" for name in names]
    assert [[p.name for p in snapshot.pods(row)] for row in range(len(names))] == [
        [f"p-{name}"] for name in names
    ]


def test_a_new_row_after_a_removal_starts_empty():
    snapshot = cluster(
        node("n1", taints=TAINTED, unschedulable=True, images=[{"names": ["app:1"]}]),
        pods={"n1": [pod("p", requests={"cpu": "1"}, ports=[port(80)])]},
    )
    snapshot.image_presence("app:1")
    snapshot.table.remove_node("n1")
    snapshot.table.add_node(node("n2"))
    validate(snapshot)
    assert snapshot.requested("cpu").tolist() == [0]
    assert snapshot.nonzero_requested("cpu").tolist() == [0]
    assert snapshot.pod_count.tolist() == [0]
    assert snapshot.unschedulable.tolist() == [False]
    assert snapshot.image_presence("app:1").tolist() == [False]
    assert snapshot.taint_sets.at(0) == ()
    assert snapshot.port_sets.at(0) == frozenset()


def test_many_nodes_outgrow_the_first_capacity():
    snapshot = cluster(*(node(f"n{i}", labels={"zone": f"z{i % 3}"}) for i in range(200)))
    zones = snapshot.label_column("zone")
    for i in range(200, 300):
        snapshot.table.add_node(node(f"n{i}", labels={"zone": f"z{i % 3}"}))
    assert [zones.values[i] for i in zones.ids] == [f"z{i % 3}" for i in range(300)]
    assert snapshot.allocatable("cpu").tolist() == [4000] * 300


def test_pods_of_an_unknown_node_are_hidden_until_it_comes():
    snapshot = cluster(node("n1"), pods={"n2": [pod("early", requests={"cpu": "1"})]})
    table = snapshot.table
    assert snapshot.requested("cpu").tolist() == [0]
    assert (list(table.hidden_nodes), table.pod_total) == (["n2"], 1)
    assert table.node_of_pod("uid-early") == "n2"
    found = table.pod_info("uid-early")
    assert found is not None
    assert found.name == "early"
    table.add_node(node("n2"))
    assert snapshot.requested("cpu").tolist() == [0, 1000]
    assert list(table.hidden_nodes) == []


def test_pods_outlive_their_node_and_count_again_when_it_returns():
    staying = pod("staying", requests={"cpu": "1"}, ports=[port(80)])
    snapshot = cluster(node("n1"), pods={"n1": [staying, pod("leaving", requests={"cpu": "2"})]})
    table = snapshot.table
    table.remove_node("n1")
    assert (snapshot.num_nodes, table.pod_total, list(table.hidden_nodes)) == (0, 2, ["n1"])
    table.remove_pod("uid-leaving")
    table.add_node(node("n1"))
    validate(snapshot)
    assert snapshot.requested("cpu").tolist() == [1000]
    assert snapshot.port_sets.at(0) == frozenset({("0.0.0.0", "TCP", 80)})
    table.remove_node("n1")
    table.remove_pod("uid-staying")
    assert (list(table.hidden_nodes), table.pod_total) == ([], 0)


def test_unknown_names_are_refused_or_none():
    snapshot = cluster(node("n1"), pods={"n1": [pod("p")]})
    table = snapshot.table
    with pytest.raises(KeyError):
        table.remove_node("n2")
    with pytest.raises(KeyError):
        table.remove_pod("uid-q")
    with pytest.raises(AssertionError, match="pod a/p is on a node already"):
        table.add_pod(pod("p"), "n1")
    assert (table.row_of("n2"), table.pod_info("uid-q"), table.node_of_pod("uid-q")) == (None,) * 3


def test_adding_a_known_node_updates_and_updating_an_unknown_node_adds():
    snapshot = cluster(node("n1", allocatable={"cpu": "1"}))
    snapshot.table.add_node(node("n1", allocatable={"cpu": "2"}))
    snapshot.table.update_node(node("n2", allocatable={"cpu": "3"}))
    assert snapshot.allocatable("cpu").tolist() == [2000, 3000]
    validate(snapshot)


def test_an_update_replaces_everything_the_node_said():
    snapshot = cluster(
        node(
            "n1",
            labels={"zone": "a", "gen": "7"},
            taints=TAINTED,
            unschedulable=True,
            allocatable={"cpu": "4", "example.com/gpu": "2", "pods": "5", "odd": "3"},
            declaredFeatures=["F"],
        )
    )
    zones, generations = snapshot.label_column("zone"), snapshot.label_column("gen")
    assert (zones.lookup("a"), zones.lookup("b"), generations.ids.tolist()) == (0, -1, [0])
    assert snapshot.allocatable("example.com/gpu").tolist() == [2]
    snapshot.table.update_node(node("n1", labels={"zone": "b"}, allocatable={"memory": "1Ki"}))
    assert [zones.values[i] for i in zones.ids] == ["b"]
    assert generations.ids.tolist() == [-1]
    assert snapshot.taint_sets.at(0) == ()
    assert snapshot.feature_sets.at(0) == frozenset()
    assert snapshot.unschedulable.tolist() == [False]
    assert snapshot.allowed_pods.tolist() == [0]
    for resource, amount in {"cpu": 0, "example.com/gpu": 0, "odd": 0, "memory": 1024}.items():
        assert snapshot.allocatable(resource).tolist() == [amount], resource
        assert snapshot.allocatable_float(resource).tolist() == [float(amount)], resource
    validate(snapshot)


def test_a_number_label_is_an_integer_by_value_id():
    snapshot = cluster(
        *(node(f"n{i}", labels={"gen": v}) for i, v in enumerate(["7", "x", "-007"]))
    )
    column = snapshot.label_column("gen")
    numbers, parsed = column.ints()
    assert (numbers.tolist(), parsed.tolist(), column.size) == ([7, 0, -7], [True, False, True], 3)


def test_equal_sets_share_an_id_and_a_free_id_gets_a_new_meaning_loudly():
    snapshot = cluster(node("n1", taints=TAINTED), node("n2", taints=TAINTED), node("n3"))
    sets = snapshot.taint_sets
    assert sets.ids.tolist() == [1, 1, 0]
    version = sets.version
    snapshot.table.update_node(node("n1"))
    assert (sets.ids.tolist(), list(sets.live()), sets.version) == ([0, 1, 0], [0, 1], version)
    snapshot.table.update_node(node("n2"))
    assert list(sets.live()) == [0]
    with pytest.raises(AssertionError, match="set id 1 of taints is not in use"):
        sets.item(1)
    snapshot.table.update_node(node("n3", taints=[{"key": "new", "effect": "NoExecute"}]))
    assert (sets.ids.tolist(), sets.size) == ([0, 0, 1], 2)
    assert sets.version > version
    validate(snapshot)


@pytest.mark.parametrize(
    ("pods", "removed", "left"),
    [
        pytest.param(
            {"p": [port(80)], "q": [port(443)]}, ["p"], {443}, id="a pod takes its ports along"
        ),
        pytest.param(
            {"p": [port(80)], "q": [port(80)]},
            ["p"],
            set(),
            id="a shared port is freed by the first",
        ),
        pytest.param(
            {"p": [port(80)], "q": [port(80)]},
            ["p", "q"],
            set(),
            id="removing both pods is no error",
        ),
        pytest.param({"p": [port(0)], "q": []}, [], set(), id="port 0 is no host port"),
    ],
)
def test_host_ports_in_use(pods, removed, left):
    snapshot = cluster(node("n1"), pods={"n1": [pod(n, ports=p) for n, p in pods.items()]})
    for name in removed:
        snapshot.table.remove_pod(f"uid-{name}")
    assert {number for _, _, number in snapshot.port_sets.at(0)} == left
    validate(snapshot)


def images(*named: tuple[str, int]) -> list[dict[str, object]]:
    return [{"names": [name], "sizeBytes": size} for name, size in named]


def test_image_states_count_nodes_and_keep_the_first_size():
    snapshot = cluster(node("n1", images=images(("app:1", 10))), node("n2"))
    table = snapshot.table
    assert snapshot.image_presence("app:1").tolist() == [True, False]
    table.update_node(node("n2", images=images(("app:1", 99), ("base:latest", 5))))
    assert (snapshot.image_state("app:1"), snapshot.image_state("base:latest")) == ((10, 2), (5, 1))
    assert snapshot.image_presence("app:1").tolist() == [True, True]
    table.update_node(node("n1"))
    assert snapshot.image_state("app:1") == (10, 1)
    table.remove_node("n2")
    assert snapshot.image_state("app:1") is None
    assert snapshot.image_presence("app:1").tolist() == [False]
    table.update_node(node("n1", images=images(("app:1", 99))))
    assert snapshot.image_state("app:1") == (99, 1)


def test_an_image_listed_twice_or_without_names():
    listed = [*images(("app:1", 10), ("app:1", 99)), {"sizeBytes": 7}, {"names": None}]
    snapshot = cluster(node("n1", images=listed))
    assert snapshot.image_state("app:1") == (10, 1)


def test_the_image_epoch_rises_only_when_images_or_nodes_do():
    snapshot = cluster(node("n1", images=images(("app:1", 10))))
    epochs = [snapshot.image_epoch]

    def after(change: Callable[[], object]) -> bool:
        change()
        epochs.append(snapshot.image_epoch)
        return epochs[-1] > epochs[-2]

    table = snapshot.table
    relabelled = node("n1", labels={"a": "b"}, images=images(("app:1", 10)))
    assert not after(lambda: table.update_node(relabelled))
    assert not after(lambda: table.add_pod(pod("p"), "n1"))
    assert after(lambda: table.update_node(node("n1")))
    assert after(lambda: table.add_node(node("n2")))
    assert after(lambda: table.remove_node("n2"))


def test_sums_with_and_without_defaults():
    snapshot = cluster(
        node("n1"),
        pods={
            "n1": [
                pod("none"),
                pod("cpu-only", requests={"cpu": "250m"}),
                pod("both", requests={"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}),
            ]
        },
    )
    mib = 2**20
    assert snapshot.requested("cpu").tolist() == [1250]
    assert snapshot.requested("memory").tolist() == [1024 * mib]
    assert snapshot.requested("example.com/gpu").tolist() == [1]
    assert snapshot.nonzero_requested("cpu").tolist() == [100 + 250 + 1000]
    assert snapshot.nonzero_requested("memory").tolist() == [(200 + 200 + 1024) * mib]
    for name in ("none", "cpu-only", "both"):
        snapshot.table.remove_pod(f"uid-{name}")
    assert snapshot.nonzero_requested("memory").tolist() == [0]
    assert snapshot.requested("cpu").tolist() == [0]


LIMIT = 2**53 // 100


@pytest.mark.parametrize(
    ("amount", "exact"),
    [
        pytest.param(LIMIT - 1, True, id="just below the limit"),
        pytest.param(LIMIT, False, id="at the limit"),
        pytest.param(2**62, False, id="far above"),
    ],
)
def test_exact_float_says_when_float_division_may_be_used(amount, exact):
    snapshot = cluster(node("small"), node("big", allocatable={"memory": str(amount)}))
    assert snapshot.exact_float("memory") is exact
    assert snapshot.exact_float("nobody.has/it") is True
    assert snapshot.allocatable("memory").tolist() == [8 * 2**30, amount]


def test_where_exact_float_holds_float_division_equals_integer_division():
    capacity = np.array([LIMIT - 1, LIMIT - 2, 2**46, 3, 7, 999_983], np.int64)
    for percent in range(101):
        for step in (-1, 0, 1):
            used = np.clip(capacity * percent // 100 + step, 0, capacity)
            by_float = np.floor(used * 100 / capacity.astype(np.float64)).astype(np.int64)
            assert by_float.tolist() == [
                u * 100 // c for u, c in zip(used.tolist(), capacity.tolist(), strict=True)
            ]


def test_node_info_reads_the_same_columns():
    snapshot = cluster(
        node("n1", allocatable={"cpu": "2", "pods": "3"}),
        pods={"n1": [pod("p", requests={"cpu": "1500m", "memory": "1Mi"})]},
    )
    info = snapshot.node_info(0)
    assert (info.name, info.node.name, repr(info)) == ("n1", "n1", "NodeInfo(n1)")
    amounts = [
        (info.allocatable(name), info.requested(name), info.free(name))
        for name in ("cpu", "memory", "x.io/y")
    ]
    assert amounts == [(2.0, 1.5, 0.5), (0, 2**20, -(2**20)), (0, 0, 0)]
    assert (info.pod_count, info.allowed_pods, [p.key for p in info.pods]) == (1, 3, ["a/p"])


def test_views_name_rows_in_their_order():
    snapshot = cluster(*(node(f"n{i}", allocatable={"cpu": str(i)}) for i in range(4)))
    whole, some = snapshot.all(), snapshot.rows([3, 1])
    assert (len(whole), whole.is_all, whole.row_numbers().tolist()) == (4, True, [0, 1, 2, 3])
    assert (len(some), some.is_all, some.size_of_all) == (2, False, 4)
    assert some.take_rows(snapshot.allocatable("cpu")).tolist() == [3000, 1000]
    assert whole.take_rows(snapshot.allocatable("cpu")) is snapshot.allocatable("cpu")


def test_an_empty_snapshot_answers_with_nothing():
    snapshot = Snapshot()
    assert (snapshot.num_nodes, len(snapshot.all()), snapshot.allocatable("cpu").tolist()) == (
        0,
        0,
        [],
    )
    assert snapshot.label_column("zone").ids.tolist() == []
    assert snapshot.image_presence("app:1").tolist() == []


def test_the_column_of_an_image_goes_with_its_last_node():
    with_image = {"images": [{"names": ["app:1"], "sizeBytes": 7}]}
    snapshot = cluster(node("n1", **with_image), node("n2", **with_image))
    columns = snapshot.table.columns
    assert snapshot.image_presence("app:1").tolist() == [True, True]
    snapshot.table.update_node(node("n1"))
    assert snapshot.image_presence("app:1").tolist() == [False, True]
    snapshot.table.remove_node("n2")
    assert (columns.has(("image", "app:1")), snapshot.image_state("app:1")) == (False, None)
    snapshot.table.add_node(node("n3", **with_image))
    assert snapshot.image_presence("app:1").tolist() == [False, True]


def test_pods_are_counted_right_before_and_after_the_arrays_grew():
    snapshot = cluster(node("n0"), pods={"n0": [pod("before", requests={"cpu": "1"})]})
    for number in range(1, 200):
        snapshot.table.add_node(node(f"n{number}"))
        snapshot.table.add_pod(pod(f"p{number}", requests={"cpu": "1"}), f"n{number}")
    snapshot.table.remove_pod("uid-before")
    validate(snapshot)
    assert snapshot.requested("cpu").tolist() == [0] + [1000] * 199
    assert snapshot.pod_count.tolist() == [0] + [1] * 199


def test_sums_beyond_an_integer_wrap_and_come_back():
    huge = 2**62
    snapshot = cluster(node("n1"), pods={"n1": [pod("p1", requests={"memory": f"{huge}"})]})
    for name in ("p2", "p3"):
        snapshot.table.add_pod(pod(name, requests={"memory": f"{huge}"}), "n1")
    assert snapshot.requested("memory").tolist() == [3 * huge - 2**64]
    for name in ("p1", "p2"):
        snapshot.table.remove_pod(f"uid-{name}")
    assert snapshot.requested("memory").tolist() == [huge]
