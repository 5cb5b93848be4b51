"""The machine that drives queue and cache against a naive model: one dict, one place a pod.

The model knows nothing of heaps, markers or files: a pod is a record with the name of its place and
its own list of what happened while it was in flight. After every step both must agree on where each
pod is, on every gauge, and on every internal invariant; and whoever waits for a pod must have been
woken when there is one. Second copies of a pod are left to test_in_flight and test_lifecycle.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moorage.api.changes import ClusterEvent
from moorage.state.cache import Cache
from moorage.state.queue_version import V1_36, QueueVersion
from moorage.state.queued_pod import QueuedPod
from scheduler.tests.state.build import (
    NODE_ADD,
    NODE_LABEL,
    POD_DELETE,
    SECOND,
    Table,
    World,
    node,
    pod,
)
from scheduler.tests.state.model import (
    AFTER,
    EVENTS,
    HINTS,
    NAMES,
    NOW,
    OWN,
    PLACES,
    PLUGINS,
    SKIP,
    Model,
    names,
    picks,
)


class QueueAndCache(RuleBasedStateMachine):
    version_of_queue: QueueVersion = V1_36
    leftover_seconds = 300
    updatable: tuple[str, ...] = ("active", "backoff", "unschedulable", "gated", "in-flight")

    def __init__(self) -> None:
        super().__init__()
        self.world = World(hints=HINTS, version=self.version_of_queue)
        self.table = Table()
        self.cache = Cache(self.table, self.world.clock, lifecycle=self.world.lifecycle)
        self.queue = self.world.queue
        self.models: dict[str, Model] = {}
        self.popped: dict[str, QueuedPod] = {}
        self.nodes: dict[str, int] = {}
        # How often it was woken when there was nothing to pop; None: there may be something.
        self.idle_since_wakes: int | None = None
        self.cycle = 0

    @initialize()
    def first_nodes(self):
        for name in ("n1", "n2"):
            self.node_event(name)

    # --- the model's own moves -------------------------------------------------------------------

    def at(self, *places: str) -> list[Model]:
        return [m for m in self.models.values() if m.place in places]

    def ends_ns(self, m: Model) -> int:
        return m.ends_ns()

    def backing_off(self, m: Model) -> bool:
        return m.ends_ns() >= self.world.clock.now_ns() // SECOND * SECOND

    def early(self) -> list[Model]:
        """Pods that may be popped though their backoff is not over."""
        return [m for m in self.at("backoff") if m.rejected or m.pending]

    def leave_backoff(self, m: Model) -> None:
        """A pod in backoff was asked about at the gate on its way in."""
        m.place = "active"

    def enter(self, m: Model, place: str) -> None:
        """Enter active or backoff, or be refused at the gate."""
        if m.name in self.world.gates:
            m.rejected.add("Gate")
            m.place = "gated"
        else:
            m.place = place

    def requeue(self, m: Model, outcome: int) -> None:
        if outcome == SKIP:
            if m.place != "gated":
                m.place = "unschedulable"
        elif outcome == AFTER and self.backing_off(m):
            self.enter(m, "backoff")
        else:
            self.enter(m, "active")

    def happened(self, event: int | ClusterEvent) -> None:
        for m in self.models.values():
            if m.in_flight:
                m.meanwhile.append(event)

    def one(self, pick: int, *places: str) -> Model | None:
        """One of the pods in these places whose API object is still there, if any."""
        found = [m for m in self.at(*places) if not m.deleted]
        return found[pick % len(found)] if found else None

    # --- what the API shows ----------------------------------------------------------------------

    def add(self, name: str, priority: int) -> None:
        if name in self.models:
            return
        m = Model(name, "", self.world.clock.now_ns(), priority)
        self.models[name] = m
        self.enter(m, "active")
        self.world.add(m.pod())

    def update(self, pick: int, relabel: bool) -> None:
        m = self.one(pick, *self.updatable)
        if m is None:
            return
        old = m.pod()
        m.labels += relabel
        self.updated(m, relabel)
        self.queue.update(old, m.pod())

    def updated(self, m: Model, relabel: bool) -> None:
        if m.in_flight:
            # What it means depends on the rejectors of the attempt, known only at its end.
            m.meanwhile.append(OWN if relabel else SKIP)
        elif m.place in ("unschedulable", "gated"):
            cures = relabel and "Own" in m.rejected | m.pending
            self.requeue(m, (NOW if "Own" in m.pending else AFTER) if cures else SKIP)

    def delete(self, pick: int) -> None:
        m = self.one(pick, *PLACES)
        if m is None:
            return
        if m.place == "bound":
            self.cache.remove_pod(m.pod())
            del self.models[m.name]
            return
        self.queue.delete(m.pod())
        if m.place == "assumed":
            self.cache.forget_pod(m.pod())
            m.place = "in-flight"
        if m.place == "in-flight":
            m.deleted = True
        else:
            del self.models[m.name]

    def cluster_event(self, event: ClusterEvent) -> None:
        self.queue.move_all(event, None, None)
        for m in self.at("unschedulable", "gated"):
            if m.place == "unschedulable" or event == POD_DELETE:
                outcome = self.outcome(m, event)
                if outcome != SKIP:
                    self.requeue(m, outcome)
        self.happened(event)

    def outcome(self, m: Model, event: ClusterEvent) -> int:
        return m.outcome(event)

    def node_event(self, name: str) -> None:
        """A node appears, changes, or goes; its pods stay known."""
        version = self.nodes.get(name, 0)
        if not version:
            self.cache.add_node(node(name, version="1"))
            self.nodes[name] = 1
            self.cluster_event(NODE_ADD)
        elif version == 1:
            self.cache.update_node(node(name, version="1"), node(name, version="2"))
            self.nodes[name] = 2
            self.cluster_event(NODE_LABEL)
        else:
            self.cache.remove_node(node(name))
            del self.nodes[name]

    def toggle_gate(self, name: str) -> None:
        if self.world.gates.pop(name, None) is None:
            self.world.close_gate(name)

    # --- attempts --------------------------------------------------------------------------------

    def pop(self) -> None:
        queued = self.queue.pop()
        active, early = self.at("active"), self.early()
        if queued is None:
            assert not active
            assert not early
            self.idle_since_wakes = self.world.wakes
            return
        m = self.models[queued.pod.name]
        if active:
            assert (-m.priority, m.since_ns) == min((-x.priority, x.since_ns) for x in active)
            assert m in active
        else:
            order = [(x.ends_ns(), -x.priority, x.since_ns) for x in early]
            assert (m.ends_ns(), -m.priority, m.since_ns) == min(order)
            assert m in early
        self.attempt(m, queued)

    def attempt(self, m: Model, queued: QueuedPod) -> None:
        assert queued.pod == m.pod()
        m.place, m.in_flight, m.meanwhile = "in-flight", True, []
        m.attempts += 1
        self.cycle += 1
        assert queued.attempts == m.attempts
        self.popped[m.name] = queued

    def pop_of_its_group(self, name: str) -> None:
        m = self.models.get(name)
        if m is None:
            assert self.queue.pop_specific(pod(name)) is None
            return
        self.activated(m)
        queued = self.queue.pop_specific(m.pod())
        assert (queued is not None) == (m.place == "active")
        if queued is not None:
            self.attempt(m, queued)

    def give_back(self, m: Model, rejected: list[str], pending: list[str]) -> None:
        known = m.in_flight
        m.rejected, m.pending = set(rejected), set(pending)
        own = NOW if "Own" in pending else AFTER if "Own" in rejected else SKIP
        m.meanwhile = [own if event == OWN else event for event in m.meanwhile]
        outcome = self.outcome_on_return(m, known)
        if not (rejected or pending):
            m.errors += 1
        else:
            m.rejections += 1
            m.errors = 0
        m.since_ns = self.world.clock.now_ns()
        m.in_flight = False
        self.requeue(m, outcome)
        queued = self.popped.pop(m.name)
        queued.update(m.pod())
        self.world.fail(queued, *rejected, pending=pending)

    def outcome_on_return(self, m: Model, known: bool) -> int:
        if not (m.rejected or m.pending):
            return AFTER
        return max(map(m.outcome, m.meanwhile), default=SKIP) if known else AFTER

    def fail(self, pick: int, rejected: set[str], pending: set[str]) -> None:
        m = self.one(pick, "in-flight")
        if m is not None:
            self.give_back(m, sorted(rejected), sorted(pending))

    def assume(self, pick: int, node_name: str, permitted: bool) -> None:
        m = self.one(pick, "in-flight")
        if m is None:
            return
        self.cache.assume_pod(m.pod(), node_name)
        m.place, m.node = "assumed", node_name
        if permitted:
            self.queue.end_in_flight(f"uid-{m.name}")
            m.in_flight = False

    def confirm(self, pick: int, elsewhere: bool) -> None:
        m = self.one(pick, "assumed")
        if m is None:
            return
        if elsewhere:
            m.node = "n1"
        m.place, m.in_flight = "bound", False
        self.cache.add_pod(m.pod())
        self.queue.delete(m.pod())
        self.queue.end_in_flight(f"uid-{m.name}")
        del self.popped[m.name]

    def unwind(self, pick: int, rejected: set[str]) -> None:
        m = self.one(pick, "assumed")
        if m is not None:
            self.cache.forget_pod(m.pod())
            m.node = ""
            m.place = "in-flight"
            self.give_back(m, sorted(rejected), [])

    def attempts_of_deleted_pods_end(self) -> None:
        for m in [m for m in self.models.values() if m.deleted]:
            self.queue.end_in_flight(f"uid-{m.name}")
            del self.models[m.name], self.popped[m.name]

    def bound_by_somebody_else(self, pick: int) -> None:
        m = self.one(pick, "active", "backoff", "unschedulable", "gated")
        if m is not None:
            m.place, m.node = "bound", "n2"
            self.cache.add_pod(m.pod())
            self.queue.delete(m.pod())

    # --- time ------------------------------------------------------------------------------------

    def activate(self, name: str) -> None:
        m = self.models.get(name)
        self.queue.activate([m.pod() if m is not None else pod(name)])
        if m is not None:
            self.activated(m)

    def activated(self, m: Model) -> None:
        if m.place in ("unschedulable", "gated"):
            self.enter(m, "active")
        elif m.place == "backoff":
            self.leave_backoff(m)
        elif m.in_flight:
            m.meanwhile.append(AFTER)

    def seconds_pass(self, tenths: int) -> None:
        self.world.clock.advance_ns(tenths * SECOND // 10)
        due_ns = self.world.next_release_ns()
        due = [m for m in self.at("backoff") if not self.backing_off(m)]
        assert (due_ns is not None and due_ns <= self.world.clock.now_ns()) == bool(due)
        self.queue.flush_backoff()
        for m in due:
            self.leave_backoff(m)

    def minutes_pass(self, seconds: int) -> None:
        self.world.clock.advance_ns(seconds * SECOND)
        self.queue.flush_unschedulable_leftover()
        now_ns = self.world.clock.now_ns()
        waiting = self.at("unschedulable", "gated")
        overdue = [m for m in waiting if now_ns - m.since_ns > self.leftover_seconds * SECOND]
        for m in overdue:
            if m.place == "unschedulable":
                self.requeue(m, AFTER)
        if overdue:
            self.happened(AFTER)

    # --- the rules: few, so that each run mixes all of them --------------------------------------

    @rule(
        what=st.sampled_from(["add", "add", "update", "relabel", "delete", "bound"]),
        pick=picks,
        priority=st.integers(0, 2),
    )
    def the_api_shows(self, what, pick, priority):
        if what == "add":
            self.add(NAMES[pick], priority)
        elif what in ("update", "relabel"):
            self.update(pick, what == "relabel")
        elif what == "delete":
            self.delete(pick)
        else:
            self.bound_by_somebody_else(pick)

    @rule(
        what=st.sampled_from(["fail", "pop", "group", "unwind", "assume", "confirm", "end"]),
        pick=picks,
        rejected=st.sets(st.sampled_from(PLUGINS), max_size=2),
        pending=st.one_of(st.just(set()), st.sets(st.sampled_from(PLUGINS), max_size=1)),
        node_name=st.sampled_from(["n1", "n2", "ghost"]),
        flag=st.booleans(),
    )
    def an_attempt_goes_on(self, what, pick, rejected, pending, node_name, flag):
        # What an attempt needs is brought about first, or most rules would find nothing to do.
        if not self.models:
            self.add(NAMES[pick], pick)
        if what == "group":
            self.pop_of_its_group(NAMES[pick])
        elif what == "pop" or not self.at("in-flight", "assumed"):
            self.pop()
        if what in ("confirm", "unwind") and not self.at("assumed"):
            self.assume(pick, node_name, flag)
        if what == "fail":
            self.fail(pick, rejected, pending)
        elif what == "assume":
            self.assume(pick, node_name, flag)
        elif what == "confirm":
            self.confirm(pick, flag)
        elif what == "unwind":
            self.unwind(pick, rejected)
        elif what == "end":
            self.attempts_of_deleted_pods_end()

    @rule(event=st.sampled_from([*EVENTS, "n1", "n2", "ghost"]))
    def the_cluster_changes(self, event):
        if isinstance(event, str):
            self.node_event(event)
        else:
            self.cluster_event(event)

    @rule(name=names, opens=st.booleans())
    def a_plugin_acts(self, name, opens):
        if opens:
            self.toggle_gate(name)
        else:
            self.activate(name)

    @rule(tenths=st.one_of(st.integers(1, 40), st.integers(1000, 3010)))
    def time_passes(self, tenths):
        if tenths < 100:
            self.seconds_pass(tenths)
        else:
            self.minutes_pass(tenths // 10)

    # --- both agree ------------------------------------------------------------------------------

    @invariant()
    def every_pod_is_where_the_model_has_it(self) -> None:
        self.queue.validate()
        self.cache.validate()
        states = {name: self.world.lifecycle.state(f"uid-{name}").value for name in self.models}
        assert states == {name: m.place for name, m in self.models.items()}
        places = self.world.places()
        for m in self.at("active", "backoff", "unschedulable", "gated"):
            assert places.pop(m.name) == m.place
        assert set(places.values()) <= {"in-flight"}
        in_flight = {uid.removeprefix("uid-") for uid in self.queue.pending().in_flight}
        assert in_flight == {m.name for m in self.models.values() if m.in_flight}
        dump = self.cache.dump()
        on_nodes = {f"uid-{m.name}": m.node for m in self.at("assumed", "bound")}
        assert dump.node_of_pod == self.table.placed() == on_nodes
        assert set(dump.assumed) == {f"uid-{m.name}" for m in self.at("assumed")}
        versions = {name: each.metadata.labels["version"] for name, each in dump.nodes.items()}
        assert versions == {name: str(version) for name, version in self.nodes.items()}
        assert set(self.table.nodes) == set(self.nodes)
        ghosts = set(on_nodes.values()) - set(self.nodes)
        counts = self.cache.counts()
        assert counts.nodes == len(self.nodes) + len(ghosts)
        assert (counts.pods, counts.assumed_pods) == (len(on_nodes), len(self.at("assumed")))

    @invariant()
    def whoever_waits_for_a_pod_was_woken(self) -> None:
        if self.idle_since_wakes is not None and (self.at("active") or self.early()):
            assert self.world.wakes > self.idle_since_wakes
            self.idle_since_wakes = None

    @invariant()
    def the_numbers_are_right(self) -> None:
        seen = self.world.seen
        queued = self.at("active", "backoff", "unschedulable", "gated")
        gauges: dict[str, int] = {}
        rejected: dict[str, int] = {}
        for m in queued:
            gauges[m.place] = gauges.get(m.place, 0) + 1
            for plugin in m.rejected | m.pending:
                rejected[plugin] = rejected.get(plugin, 0) + 1
        assert seen.now() == gauges
        assert {plugin: count for plugin, count in seen.rejected.items() if count} == rejected
        assert seen.kept["PodPopped"] == sum(m.in_flight for m in self.models.values())
        assert len(self.world.lifecycle) == len(self.models)
        counts = self.queue.counts()
        in_each = (counts.active, counts.backoff, counts.unschedulable, counts.gated)
        assert in_each == tuple(len(self.at(place)) for place in PLACES[:4])
        assert counts.in_flight == sum(m.in_flight for m in self.models.values())
        assert counts.scheduling_cycle == self.cycle
