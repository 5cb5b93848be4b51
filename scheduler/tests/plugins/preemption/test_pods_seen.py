"""Rows are tried at once although Filters see some pods as more than sums: as one by one.

Random histories, the real default profile, pods with claims, disks and host ports: two cycles try
many rows at once, one with reuse and one without; the third tries each row by itself. Volumes of
two drivers count against attach limits, some as attached already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.volume import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.engine.filters import nominated
from moorage.framework.capabilities import Capabilities
from moorage.framework.pods_seen import PodsSeen
from moorage.framework.profile import Profile
from moorage.plugins.preemption.dry_runs import DryRuns
from moorage.plugins.volumes.volume_restrictions import VolumeRestrictions
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.volume_pods import volumes_of
from moorage_sandbox.testing.builders import node
from moorage_sandbox.testing.builders import pod as typed_pod
from scheduler.tests.plugins.preemption.histories import HistoryWorld
from scheduler.tests.plugins.preemption.reference import Budget
from scheduler.tests.plugins.preemption.test_against_reference import budget_of

DRIVER = "d.example"
OTHER_DRIVER = "e.example"
NODES = tuple(f"n{i}" for i in range(9))
CLAIMS = ("bound", "other", "elsewhere", "alone", "late", "third", "fourth")


class OneByOne(Profile):
    """A profile that does not know which pods its Filters see."""

    def pods_seen(self, skipped: frozenset[str]) -> PodsSeen | None:
        return None


class Has(NamedTuple):
    """The parts of a pod that a Filter may see."""

    claims: tuple[str, ...] = ()
    disk: bool = False
    port: bool = False
    broken: bool = False
    """Whether an ephemeral volume's claim belongs to another pod."""


NOTHING = Has()


class World(HistoryWorld):
    """A cluster with volumes, decided about by three cycles."""

    def __init__(self, percentage: int = 100, absolute: int = 1) -> None:
        super().__init__(percentage, absolute)
        self.reusing = self.cycle(reuse=True)
        self.plain = self.cycle(reuse=False)
        self.one_by_one = self.cycle(OneByOne, reuse=False)
        self._claims()

    def _claims(self) -> None:
        late = {"metadata": {"name": "late"}, "provisioner": "kubernetes.io/no-provisioner"}
        late["volumeBindingMode"] = "WaitForFirstConsumer"
        self.snapshot.listers.storage_classes.put(from_dict(StorageClass, late))
        for name in CLAIMS:
            self._claim(name)

    def _claim(self, name: str) -> None:
        spec: dict[str, Any] = {
            "resources": {"requests": {"storage": "1Gi"}},
            "accessModes": ["ReadWriteOncePod" if name == "alone" else "ReadWriteOnce"],
            "storageClassName": "late",
        }
        annotations = {}
        if name != "late":
            spec["volumeName"] = f"pv-{name}"
            annotations["pv.kubernetes.io/bind-completed"] = "yes"
        meta = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
        claim = from_dict(PersistentVolumeClaim, {"metadata": meta, "spec": spec})
        self.snapshot.listers.persistent_volume_claims.put(claim)
        half = {"matchExpressions": [{"key": "half", "operator": "In", "values": ["a"]}]}
        volume = {
            "metadata": {"name": f"pv-{name}"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": spec["accessModes"],
                "storageClassName": "late",
                "csi": {
                    "driver": OTHER_DRIVER if name == "fourth" else DRIVER,
                    "volumeHandle": name,
                },
                "nodeAffinity": {"required": {"nodeSelectorTerms": [half]}}
                if name in ("elsewhere", "late")
                else None,
            },
            "status": {"phase": "Available"},
        }
        self.snapshot.listers.persistent_volumes.put(from_dict(PersistentVolume, volume))

    def node(self, name: str, cpu: int, limit: int | None) -> None:
        """Add or change a node: limit -1 is a CSINode without limit, None is no CSINode."""
        half = "a" if int(name[1:]) % 2 else "b"
        self.snapshot.table.add_node(node(name, cpu=str(cpu), pods="6", labels={"half": half}))
        drivers = [
            {"name": each, "allocatable": {"count": limit} if limit != -1 else None}
            for each in (DRIVER, OTHER_DRIVER)
        ]
        made = from_dict(CSINode, {"metadata": {"name": name}, "spec": {"drivers": drivers}})
        if limit is None:
            self.snapshot.listers.csi_nodes.remove(made)
        else:
            self.snapshot.listers.csi_nodes.put(made)

    def attach_all(self, name: str) -> None:
        """Attach the volumes of a node's pods to the node; detach those that are attached."""
        row = self.snapshot.row_of(name)
        for pod in () if row is None else self.snapshot.pods(row):
            for claim in volumes_of(pod).claims:
                if not claim.ephemeral:
                    self.attach(name, claim.claim_name)

    def attach(self, name: str, claim: str) -> None:
        """Attach the volume of a claim to a node, or detach it."""
        attachments, key = self.snapshot.listers.volume_attachments, f"{claim}-{name}"
        there = attachments.get(key)
        if there is not None:
            attachments.remove(there)
            return
        spec = {
            "attacher": OTHER_DRIVER if claim == "fourth" else DRIVER,
            "nodeName": name,
            "source": {"persistentVolumeName": f"pv-{claim}"},
        }
        attachments.put(from_dict(VolumeAttachment, {"metadata": {"name": key}, "spec": spec}))

    def pod(
        self, cpu: int, priority: int, has: Has, *, started: int | None = None, uid: str = ""
    ) -> PodInfo:
        self.serial += 1
        name = uid or f"p{self.serial}"
        volumes: list[dict[str, Any]] = [
            {"name": each, "persistentVolumeClaim": {"claimName": each}} for each in has.claims
        ]
        if has.disk:
            volumes.append({"name": "disk", "iscsi": {"iqn": "x"}})
        if has.broken:
            volumes.append({"name": "e", "ephemeral": {}})
            meta = {"name": f"{name}-e", "namespace": "default", "uid": f"{name}-e"}
            claim = from_dict(PersistentVolumeClaim, {"metadata": meta, "spec": {}})
            self.snapshot.listers.persistent_volume_claims.put(claim)
        made = typed_pod(
            name,
            cpu=str(cpu),
            labels={"a": "x"} if cpu == 1 else {},
            priority=priority,
            host_ports=[80] if has.port else [],
            volumes=volumes,
        )
        at = None if started is None else rfc3339(self.clock.now_ns() + started * NS_PER_SECOND)
        status = msgspec.structs.replace(made.status, start_time=at)
        return PodInfo(msgspec.structs.replace(made, status=status))

    def budget(self, allowed: int) -> None:
        self.snapshot.listers.pod_disruption_budgets.put(budget_of(0, Budget("a", allowed)))

    def preempt(self, cpu: int, priority: int, has: Has, *, follow: bool) -> None:
        info = self.pod(cpu, priority, has)
        cycles = (self.one_by_one, self.reusing, self.plain)
        self.decide_alike(info, cycles, follow=follow)


def full(world: World, has: Sequence[Has] = (NOTHING,), *, nodes: int = len(NODES)) -> World:
    """Fill nodes with two pods each; what the pods have goes round."""
    for index in range(nodes):
        world.node(f"n{index}", 4, (None, -1, 1, 2)[index % 4])
        for step in range(2):
            started = -1 if index % 3 else None
            pod = world.pod(2, step - 1, has[(index + step) % len(has)], started=started)
            world.place(f"n{index}", pod)
    return world


parts = st.builds(
    Has,
    claims=st.one_of(
        st.sampled_from([(), (), *((each,) for each in CLAIMS)]),
        st.lists(st.sampled_from(CLAIMS), min_size=2, max_size=3, unique=True).map(tuple),
    ),
    disk=st.sampled_from([False, False, False, True]),
    port=st.sampled_from([False, False, True]),
    broken=st.sampled_from([False] * 19 + [True]),
)
names = st.sampled_from(NODES)
preempting = st.tuples(
    st.just("preempt"), st.integers(1, 3), st.integers(0, 2), parts, st.booleans()
)
steps = st.one_of(
    preempting,
    preempting,
    preempting,
    st.tuples(st.just("place"), names, st.integers(1, 3), st.integers(-1, 2), parts),
    st.tuples(st.just("take away"), st.integers(0, 99)),
    st.tuples(st.just("begin leaving"), st.integers(0, 99)),
    st.tuples(st.just("nominate"), names, st.integers(1, 3), st.integers(0, 2), parts),
    st.tuples(st.just("node"), names, st.integers(2, 5), st.sampled_from([None, -1, 0, 1, 2])),
    st.tuples(st.just("attach"), names, st.sampled_from(CLAIMS)),
    st.tuples(st.just("attach all"), names),
    st.tuples(st.just("budget"), st.integers(0, 2)),
)


def apply(world: World, step: tuple[Any, ...]) -> None:
    what, *args = step
    if what == "preempt":
        cpu, priority, has, follow = args
        world.preempt(cpu, priority, has, follow=follow)
    elif what in ("place", "nominate"):
        name, cpu, priority, has = args
        pod = world.pod(cpu, priority, has)
        (world.place if what == "place" else world.nominate)(name, pod)
    elif what == "take away":
        world.take_away(*args)
    elif what == "begin leaving":
        world.begin_leaving(*args)
    elif what == "node":
        world.node(*args)
    elif what == "attach":
        world.attach(*args)
    elif what == "attach all":
        world.attach_all(*args)
    else:
        world.budget(*args)


@settings(max_examples=80, deadline=None)
@given(
    percentage=st.sampled_from([0, 50, 100]),
    absolute=st.sampled_from([1, 3]),
    residents=st.lists(parts, min_size=1, max_size=5),
    guests=st.lists(st.tuples(names, st.integers(1, 2), st.integers(0, 2), parts), max_size=4),
    attached=st.lists(names, unique=True),
    history=st.lists(steps, max_size=25),
)
def test_decisions_equal_those_of_rows_tried_one_by_one(
    percentage: int,
    absolute: int,
    residents: list[Has],
    guests: list[tuple[str, int, int, Has]],
    attached: list[str],
    history: list[tuple[Any, ...]],
) -> None:
    world = full(World(percentage, absolute), [NOTHING, *residents])
    for guest in guests:
        apply(world, ("nominate", *guest))
    for name in attached:
        world.attach_all(name)
    for step in history:
        apply(world, step)


def test_a_replica_leaves_no_state_of_plugins_that_a_broken_claim_keeps_from_being_asked() -> None:
    world = full(World())
    world.preempt(1, 0, NOTHING, follow=False)
    world.preempt(1, 0, Has(broken=True), follow=False)


def test_outcomes_are_not_kept_for_a_preemptor_with_other_claims() -> None:
    world = World()
    world.node("n0", 4, 1)
    world.place("n0", world.pod(4, 0, NOTHING))
    both = world.reusing.decide(world.pod(3, 1, Has(claims=("bound", "other"))))
    one = world.reusing.decide(world.pod(3, 1, Has(claims=("bound",))))
    assert [len(each.victims) for each in (both, one)] == [0, 1]


def test_a_volume_of_a_nominated_pod_counts_where_the_row_has_room_for_both() -> None:
    world = World()
    world.node("n0", 4, 1)
    world.place("n0", world.pod(4, 0, NOTHING))
    world.nominate("n0", world.pod(1, 2, Has(claims=("other",))))
    world.preempt(3, 1, Has(claims=("bound",)), follow=True)
    assert [each.name for each in world.nominations["n0"]] == ["p2"]
    world.node("n0", 4, 2)
    world.preempt(3, 1, Has(claims=("bound",)), follow=True)
    assert [each.name for each in world.nominations["n0"]] == ["p2", "p4"]


@pytest.mark.parametrize("attached", [False, True])
def test_a_volume_that_is_attached_counts_after_its_pod_has_left(attached: bool) -> None:
    world = World()
    for index in range(9):
        world.node(f"n{index}", 4, 1)
        world.place(f"n{index}", world.pod(2, 0, Has(claims=("other",))))
        world.place(f"n{index}", world.pod(2, 0, NOTHING))
        if attached:
            world.attach_all(f"n{index}")
    world.preempt(2, 1, CLAIMING, follow=False)
    with counted() as rows:
        decision = world.plain.decide(world.pod(2, 1, CLAIMING))
    assert rows["tried"] == []
    assert len(decision.victims) == (not attached)


def test_a_volume_counts_until_the_last_pod_that_uses_it_has_left() -> None:
    world = World()
    world.node("n0", 4, 1)
    for _ in range(2):
        world.place("n0", world.pod(1, 0, Has(claims=("other",))))
    world.preempt(1, 1, CLAIMING, follow=True)
    assert world.placed == []


@pytest.mark.parametrize("change", ["another pod comes", "its volume is attached"])
def test_what_a_pod_frees_is_found_again_when_its_node_changes(change: str) -> None:
    """A pod that comes has a rank above, so that the pod with the volume gets another."""
    world = World()
    for name in NODES:
        world.node(name, 4, 1)
        world.place(name, world.pod(1, 0, NOTHING))
        world.place(name, world.pod(1, 0, Has(claims=("other",))))
    world.preempt(1, 2, CLAIMING, follow=False)
    for name in NODES:
        if change == "another pod comes":
            world.place(name, world.pod(1, 1, NOTHING))
        else:
            world.attach_all(name)
    world.preempt(1, 2, CLAIMING, follow=False)


def test_a_broken_claim_of_a_victim_is_an_error_until_the_victim_has_left() -> None:
    world = World()
    world.node("n0", 4, 1)
    world.place("n0", world.pod(2, 1, NOTHING))
    world.place("n0", world.pod(2, 0, Has(broken=True)))
    world.preempt(2, 1, CLAIMING, follow=True)
    assert len(world.placed) == 1


def test_a_disk_of_a_victim_counts() -> None:
    world = full(World(), [NOTHING, Has(disk=True)], nodes=1)
    world.preempt(1, 1, Has(disk=True), follow=True)
    assert list(world.nominations) == ["n0"]


@contextmanager
def counted() -> Iterator[dict[str, list[int]]]:
    """Note the rows that are tried alone, and those judged alone beside nominated pods."""
    rows: dict[str, list[int]] = {"tried": [], "beside": []}
    try_one, beside = DryRuns._try_one, nominated.filter_beside

    def tried(self: DryRuns, row: int) -> Any:
        rows["tried"].append(row)
        return try_one(self, row)

    def judged(attempt: Any, row: int, added: Any) -> Any:
        rows["beside"].append(row)
        return beside(attempt, row, added)

    with (
        mock.patch.object(DryRuns, "_try_one", tried),
        mock.patch.object(nominated, "filter_beside", judged),
    ):
        yield rows


CLAIMING = Has(claims=("bound",))
ALONE = Has(claims=("alone",))
SEEN = {
    "a claim, and victims without volumes": (CLAIMING, NOTHING, []),
    "a claim, and a victim with one": (CLAIMING, Has(claims=("other",)), []),
    "a claim, and a victim with the same": (CLAIMING, CLAIMING, [3]),
    "a claim of one pod, and a victim with it": (ALONE, ALONE, [3]),
    "a disk, and a victim with one": (Has(disk=True), Has(disk=True), []),
    "a disk, and a victim with a claim": (Has(disk=True), CLAIMING, []),
    "a claim, and a victim with a host port": (CLAIMING, Has(port=True), []),
    "a host port, and a victim with one": (Has(port=True), Has(port=True), []),
    "a host port, and a victim with a claim": (Has(port=True), Has(claims=("other",)), []),
}


@pytest.mark.parametrize(("preemptor", "resident", "alone"), SEEN.values(), ids=SEEN)
def test_only_rows_where_volumes_of_a_victim_count_together_are_tried_alone(
    preemptor: Has, resident: Has, alone: list[int]
) -> None:
    world = full(World(), nodes=50)
    world.node("n3", 4, 1)
    world.take_away(7)
    world.place("n3", world.pod(2, 0, resident))
    with counted() as rows:
        decision = world.plain.decide(world.pod(3, 1, preemptor))
    assert decision.victims
    assert rows["tried"] == alone


@pytest.fixture
def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a Filter say which pods it sees, and not what they count."""

    def declared(self: VolumeRestrictions) -> Capabilities:
        return Capabilities(skips_spec=self.skips_spec, filter_sees_pod=self.sees_pod)

    monkeypatch.delattr(VolumeRestrictions, "filter_counts")
    monkeypatch.setattr(VolumeRestrictions, "capabilities", declared)


@pytest.mark.usefixtures("uncounted")
def test_only_rows_with_a_victim_that_a_filter_sees_are_tried_alone() -> None:
    world = full(World(), nodes=50)
    world.take_away(7)
    world.place("n3", world.pod(2, 0, Has(disk=True)))
    with counted() as rows:
        decision = world.plain.decide(world.pod(3, 1, Has(disk=True)))
    assert decision.victims
    assert rows["tried"] == [3]


@pytest.mark.parametrize(
    ("resident", "lots"),
    [
        pytest.param(NOTHING, 1, id="at once, where victims have no volume"),
        pytest.param(CLAIMING, 30, id="one after another until enough, where all have one"),
    ],
)
@pytest.mark.usefixtures("uncounted")
def test_rows_are_tried_at_once_unless_the_victims_of_most_are_seen(
    resident: Has, lots: int
) -> None:
    world = full(World(10, 1), [resident], nodes=300)
    tried = []

    def noted(self: DryRuns, rows: Sequence[int]) -> None:
        tried.append(len(rows))
        trying(self, rows)

    trying = DryRuns._try
    with mock.patch.object(DryRuns, "_try", noted):
        world.plain.decide(world.pod(3, 1, Has(disk=True)))
    assert len(tried) == lots


BESIDE = {
    "they take the room: an earlier Filter decides": (3, CLAIMING, []),
    "they leave room and have no volume": (1, NOTHING, []),
    "they leave room and have a volume": (1, Has(claims=("other",)), [0, 1, 2, 3]),
}


@pytest.mark.parametrize(("cpu", "has", "alone"), BESIDE.values(), ids=BESIDE)
def test_only_rows_that_nominated_pods_may_decide_otherwise_are_judged_alone(
    cpu: int, has: Has, alone: list[int]
) -> None:
    world = World()
    for index in range(4):
        world.node(f"n{index}", 4, 2)
        world.nominate(f"n{index}", world.pod(cpu, 2, has))
    with counted() as rows:
        world.plain.decide(world.pod(3, 1, CLAIMING))
    assert rows["beside"] == alone
