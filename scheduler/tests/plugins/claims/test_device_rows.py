"""The kept answers for rows equal a fresh search on each node, whatever changes in between.

What a search finds is tested in `devices`; here is what is kept from one attempt to the next.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import to_dict
from moorage.api.devices import ResourceClaim
from moorage.base.clock import ManualClock
from moorage.base.rng import Random, Streams
from moorage.framework.handle import Handle
from moorage.plugins.claims.attempt import with_allocation
from moorage.plugins.claims.books import Books, holdings_of
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.allocator import INVALID_POOLS, Allocator
from moorage.plugins.claims.devices.contract import (
    AllocationError,
    AllocationTimeoutError,
    NodeAllocationError,
    NodeFacts,
)
from moorage.plugins.claims.devices.grouping import Signatures
from moorage.plugins.claims.devices.inventory import Inventory
from moorage.plugins.claims.devices.pools import NodeView
from moorage.plugins.claims.devices.search import NodeSearch
from moorage.plugins.claims.rows import ALLOCATED, INVALID_POOL
from moorage.snapshot.claim_table import allocation_of
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import handle, node
from scheduler.tests.plugins.claims.devices.builders import (
    allocation,
    claim,
    class_,
    device,
    exactly,
    slice_,
)
from scheduler.tests.plugins.claims.devices.worlds import ZONE_A, World

NODES = [f"n{i}" for i in range(4)]


def plain(results) -> list[dict[str, Any]]:
    """Allocations without the ids of shares, which are drawn."""
    dicts = [to_dict(result) for result in results]
    for each in dicts:
        for device_ in each["devices"].get("results", ()):
            device_["shareID"] = "shareID" in device_
    return dicts


class Cluster:
    """Nodes, slices and claims that change at random, and the books that follow them."""

    def __init__(self, seed: int) -> None:
        self.rng: Random = Streams(seed).stream("changes")
        self.world = World(seed)
        self.snapshot = Snapshot()
        self.listers = self.snapshot.listers
        self.listers.device_classes.put(class_())
        for name in NODES:
            self.snapshot.table.add_node(node(name, labels={"zone": "ab"[int(name[1]) % 2]}))
        for each in self.world.slices:
            self.listers.resource_slices.put(each)
        self.handle: Handle = handle(self.snapshot)
        self.books = Books(self.handle, filter_timeout_seconds=0)
        self.made = 0

    # -- changes -------------------------------------------------------------------------------

    def change(self) -> None:
        changes = (self._slices, self._node, self._hold, self._hold, self._hold, self._free)
        self.rng.choice(changes)()

    def _slices(self) -> None:
        lister = self.listers.resource_slices
        for each in list(lister.all()):
            if self.rng.randrange(3) == 0:
                lister.remove(each)
        for each in self.world.draw_slices():
            if self.rng.randrange(2) == 0:
                lister.put(each)

    def _node(self) -> None:
        table, name = self.snapshot.table, self.rng.choice(NODES)
        there = table.has_node(name)
        if there and self.snapshot.num_nodes > 1 and self.rng.randrange(2) == 0:
            table.remove_node(name)
            return
        changed = node(name, labels={"zone": self.rng.choice("ab")})
        if there:
            table.update_node(changed)
        else:
            table.add_node(changed)

    def _hold(self) -> None:
        """Allocate a claim: shown by the watch, known from a write, or under way."""
        wanted = claim(exactly(count=self.rng.choice([1, 2])), name=f"held-{self.made}")
        metadata = msgspec.structs.replace(
            wanted.metadata, uid=f"uid-{self.made}", resource_version="1"
        )
        wanted = msgspec.structs.replace(wanted, metadata=metadata)
        self.made += 1
        allocator = self.fresh()
        row = self.rng.randrange(self.snapshot.num_nodes)
        try:
            results = allocator.allocate(self.facts(row), [wanted])
        except (AllocationError, NodeAllocationError):
            return
        if results is None:
            return
        held = with_allocation(wanted, results[0])
        newer = msgspec.structs.replace(metadata, resource_version="2")
        held = msgspec.structs.replace(held, metadata=newer)
        how = self.rng.randrange(4)
        if how == 0:
            self.listers.resource_claims.put(held)
        elif how == 1:
            self.listers.resource_claims.put(wanted)
            self.snapshot.claims.assume(held)
        else:
            if how == 2:
                self.listers.resource_claims.put(wanted)
            self.snapshot.claims.begin_allocation(f"uid-{self.made}", held)

    def _free(self) -> None:
        """End allocations: by the watch, after a write, or by giving up."""
        for uid in list(self.snapshot.claims.under_way_uids()):
            match self.rng.randrange(4):
                case 0:
                    self.snapshot.claims.give_up(uid)
                case 1:
                    under_way = self.snapshot.claims.find_under_way(uid)
                    assert under_way is not None
                    self.listers.resource_claims.put(under_way.claim)
                case 2:
                    self.snapshot.claims.end_allocation(uid)
        for each in list(self.listers.resource_claims.all()):
            if self.rng.randrange(3) == 0:
                self.listers.resource_claims.remove(each)

    # -- answers -------------------------------------------------------------------------------

    def facts(self, row: int) -> NodeFacts:
        found = self.snapshot.node(row)
        return NodeFacts(found.name, found.metadata.labels)

    def fresh(self) -> Allocator:
        """An allocator that follows nothing: everything is read anew."""
        table = self.snapshot.claims
        held = [each for each in table.all_claims() if each.status.allocation is not None]
        names = {(each.namespace, each.name) for each in held}
        held += [each for each in table.under_way() if (each.namespace, each.name) not in names]
        return Allocator(
            AllocatedState(map(allocation_of, held)),
            Inventory(self.listers.resource_slices.all()),
            self.listers.device_classes.get,
            rng=Streams(1).stream("shares"),
            clock=ManualClock(),
        )

    def one_by_one(self, wanted: list[ResourceClaim], rows: list[int]) -> list[object]:
        allocator = self.fresh()
        answers: list[object] = []
        for row in rows:
            answer: object
            try:
                results = allocator.allocate(self.facts(row), wanted)
            except NodeAllocationError as error:
                answer = str(error)
            except AllocationError as error:
                return [str(error)]
            else:
                answer = None if results is None else plain(results)
            answers.append(answer)
        return answers

    def kept(self, wanted: list[ResourceClaim], rows: list[int]) -> list[object]:
        allocator = self.books.allocator()
        try:
            demands = allocator.compile(wanted)
            found = self.books.rows.answers(allocator, demands, np.array(rows, np.int64))
        except AllocationError as error:
            return [str(error)]
        return [
            plain(allocator.results(self.facts(row), demands, found.solutions[number]))
            if outcome == ALLOCATED
            else INVALID_POOLS
            if outcome == INVALID_POOL
            else None
            for row, number, outcome in zip(
                rows, found.number_n.tolist(), found.outcome_n.tolist(), strict=True
            )
        ]

    def ask(self) -> None:
        """Ask about some claims on some rows, and compare."""
        wanted = [self.rng.choice(self.world.claims)]
        if self.rng.randrange(3) == 0:
            wanted = list(self.world.claims)
        rows = list(range(self.snapshot.num_nodes))
        self.rng.shuffle(rows)
        rows = rows[: self.rng.randint(1, len(rows))]
        assert self.kept(wanted, rows) == self.one_by_one(wanted, rows)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_kept_answers_equal_a_fresh_search_on_each_node(seed: int) -> None:
    cluster = Cluster(seed)
    cluster.ask()
    for _ in range(20):
        cluster.change()
        cluster.ask()


def test_answers_are_found_again_when_the_limits_are_small(monkeypatch) -> None:
    rows, inventory = "moorage.plugins.claims.rows", "moorage.plugins.claims.devices.inventory"
    for limit in ("_QUESTIONS_MAX", "_SHAPES_MAX", "_NUMBERS_MAX"):
        monkeypatch.setattr(f"{rows}.{limit}", 1)
    monkeypatch.setattr(f"{rows}._NUMBERS_OF_A_ROW_MAX", 0)
    monkeypatch.setattr(f"{inventory}._SIGNATURES_MAX", 2)
    monkeypatch.setattr(f"{inventory}._SIGNATURES_OF_A_VIEW_MAX", 0)
    for seed in range(5):
        cluster = Cluster(seed)
        for _ in range(20):
            cluster.change()
            cluster.ask()


def test_replicas_share_solutions_and_rows_that_become_equal_too(monkeypatch) -> None:
    runs: list[NodeSearch] = []
    real = NodeSearch.run

    def counting(search: NodeSearch):
        runs.append(search)
        return real(search)

    monkeypatch.setattr(NodeSearch, "run", counting)
    cluster = Cluster(1)
    lister = cluster.listers.resource_slices
    for each in list(lister.all()):
        lister.remove(each)
    for name in NODES:
        lister.put(slice_(name, device("d0"), device("d1"), pool=name, nodeName=name))
    every, searched = list(range(len(NODES))), []
    for index in range(4):
        runs.clear()
        found = cluster.kept([claim(exactly(), name=f"c{index}")], every)
        assert None not in found
        searched.append(len(runs))
        held = claim(exactly(), name=f"of-{index}")
        results = cluster.fresh().allocate(cluster.facts(index), [held])
        assert results is not None
        lister_of_claims = cluster.listers.resource_claims
        lister_of_claims.put(with_allocation(held, results[0]))
    # All rows are equal, then one row has a device less; more such rows need no search.
    assert searched == [1, 1, 0, 0]


def test_a_node_that_gets_other_labels_is_read_again() -> None:
    cluster = Cluster(1)
    for each in list(cluster.listers.resource_slices.all()):
        cluster.listers.resource_slices.remove(each)
    cluster.listers.resource_slices.put(slice_("s", device("d"), nodeSelector=ZONE_A))
    wanted, (row,) = [claim(exactly())], [cluster.snapshot.row_of("n0")]
    assert row is not None
    found = []
    for zone in "aba":
        cluster.snapshot.table.update_node(node("n0", labels={"zone": zone}))
        found.append(cluster.kept(wanted, [row]) != [None])
    assert found == [True, False, True]


def test_a_node_that_comes_or_goes_lets_no_other_row_be_read_again(monkeypatch) -> None:
    """A new node is one row, and the node that moves into a hole is known."""
    read: list[str] = []
    real = Signatures.signature_of

    def noting(signatures: Signatures, view: NodeView, check_time) -> tuple[object, ...]:
        read.extend(pool.id.pool for pool in view.pools)
        return real(signatures, view, check_time)

    monkeypatch.setattr(Signatures, "signature_of", noting)
    cluster = Cluster(1)
    for each in list(cluster.listers.resource_slices.all()):
        cluster.listers.resource_slices.remove(each)
    for name in (*NODES, "n4"):
        cluster.listers.resource_slices.put(slice_(name, device("d"), pool=name, nodeName=name))
    table = cluster.snapshot.table
    first = table.nodes[0]

    def asked() -> list[str]:
        read.clear()
        rows = list(range(cluster.snapshot.num_nodes))
        wanted = [claim(exactly())]
        found = cluster.kept(wanted, rows)
        told = list(read)
        assert found == cluster.one_by_one(wanted, rows)
        return told

    assert asked() == NODES
    table.add_node(node("n4"))
    assert asked() == ["n4"]
    table.remove_node("n0")  # n4 moves into its row
    assert asked() == []
    table.add_node(first)
    assert asked() == ["n0"]


def test_a_node_that_is_again_what_it_was_is_read_again() -> None:
    """The row was read while the node had another label, and moved afterwards."""
    cluster = Cluster(1)
    for each in list(cluster.listers.resource_slices.all()):
        cluster.listers.resource_slices.remove(each)
    cluster.listers.resource_slices.put(slice_("s", device("d"), nodeSelector=ZONE_A))
    table, wanted = cluster.snapshot.table, [claim(exactly())]
    before = table.nodes[0]
    assert cluster.kept(wanted, [0]) != [None]
    table.update_node(node("n0", labels={"zone": "b"}))
    assert cluster.kept(wanted, [0]) == [None]
    table.update_node(before)
    table.remove_node("n3")
    assert cluster.kept(wanted, [0]) != [None]


class Ticking(ManualClock):
    """A clock that goes on by a second whenever it is read."""

    def monotonic_ns(self) -> int:
        self.advance(1)
        return super().monotonic_ns()


def test_the_time_limit_holds_while_selectors_are_evaluated() -> None:
    """Each device is of a kind of its own, and no device is ever chosen."""
    cluster = Cluster(1)
    lister = cluster.listers.resource_slices
    for each in list(lister.all()):
        lister.remove(each)
    uids = [device(f"d{i}", attributes={"uid": f"u{i}"}) for i in range(20)]
    lister.put(slice_("s", *uids, pool="n0", nodeName="n0"))
    ticking = msgspec.structs.replace(cluster.handle, clock=Ticking())
    wanted = [claim(exactly("r", 1, 'device.attributes["gpu.example.com"].uid == "none"'))]
    for limit_seconds in (10.0, 100.0):
        books = Books(ticking, filter_timeout_seconds=limit_seconds)
        allocator = books.allocator()
        demands, rows = allocator.compile(wanted), np.array([0])
        if limit_seconds > len(uids):
            assert books.rows.answers(allocator, demands, rows).outcome_n.tolist() != [ALLOCATED]
            continue
        with pytest.raises(AllocationTimeoutError, match="node n0: timed out"):
            books.rows.answers(allocator, demands, rows)
        with pytest.raises(AllocationTimeoutError, match="node n0: timed out"):
            allocator.allocate(cluster.facts(0), wanted)


def test_an_allocation_decided_then_written_then_shown_changes_its_pool_once() -> None:
    cluster = Cluster(1)
    table, lister = cluster.snapshot.claims, cluster.listers.resource_claims
    holdings = holdings_of(table, consumable_capacity=True)
    wanted = claim(exactly(), name="c")
    lister.put(wanted)
    state = holdings.now()
    before = state.log.position
    decided = with_allocation(wanted, allocation({"device": "a"}))
    newer = msgspec.structs.replace(decided.metadata, resource_version="9")
    written = msgspec.structs.replace(decided, metadata=newer)
    steps = (
        lambda: table.begin_allocation("c", decided),
        lambda: table.assume(written),
        lambda: table.end_allocation("c"),
        lambda: lister.put(written),
    )
    for step in steps:
        step()
        assert holdings.now() is state
        assert state.log.position == before + 1
    lister.remove(written)
    assert holdings.now().log.position == before + 2
