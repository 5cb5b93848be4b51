"""Rules for each write: every invariant is broken by a write made for it."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.errors import TransportError
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call
from moorage.sim.history import History, Placed, Write
from moorage.sim.invariants.at_rest import AT_REST
from moorage.sim.invariants.at_writes import BINDING, broken_by, broken_by_server
from moorage.sim.invariants.evictions import EVICTION
from moorage.sim.invariants.inside import AT_END
from moorage.sim.invariants.kept import KEPT
from moorage.sim.invariants.on_node import REPORTED
from moorage.sim.invariants.seen import Seen
from moorage.sim.invariants.waiting import WAITING
from moorage.sim.served import Served
from moorage.sim.turns import InTurn
from moorage.snapshot.pod_groups import GroupKey, GroupMembers
from moorage.testing.builders import Manifest, node_manifest, pod_manifest
from moorage.testing.builders import pod as typed_pod

LATER = 1000 * NS_PER_SECOND


def a_pod(name: str, node: str = "", **fields: Any) -> Manifest:
    fields.setdefault("cpu", "1")
    made = pod_manifest(name, node_name=node, schedulerName="default-scheduler", **fields)
    made["metadata"]["uid"] = name
    return made


class Past(History):
    """A history whose objects besides pods and nodes are given."""

    def __init__(self) -> None:
        clock = ManualClock()
        served = Served(clock, Streams(1), on_disk=False, on_death=lambda: None)
        super().__init__(served, clock)
        self.kept: dict[str, dict[tuple[str, str], Manifest]] = {}

    def objects(self, qualified: str) -> dict[tuple[str, str], Manifest]:
        return self.kept.get(qualified, {})


def history(*pods: Manifest, nodes: int = 2, **node: Any) -> Past:
    """Return a history with nodes of 2 cpu, each a zone, and pods that were bound long ago."""
    found = Past()
    found.waiting_left_ns = found.pod_gone_ns = found.leaving_before_ns = 0
    for number in range(1, nodes + 1):
        made = node_manifest(f"n{number}", cpu="2", labels={"zone": str(number)}, **node)
        found.nodes[f"n{number}"] = made
    for pod in pods:
        found.pods[pod["metadata"]["uid"]] = pod
        if pod["spec"].get("nodeName"):
            found.placed[pod["metadata"]["uid"]] = Placed(0, "scheduler-0.1")
    return found


def by_scheduler(call: str, before: Manifest, now: Manifest | None) -> Write:
    """Return a write that a scheduler made just now to a path of a pod."""
    path = f"/api/v1/namespaces/default/pods/{before['metadata']['name']}{call}"
    return Write(
        at_ns=LATER, by="scheduler-1.1", path=path, resource="pods", now=now, before=before
    )


def binding(now: Manifest, past: History, *, before: Manifest | None = None) -> Seen:
    """Return the binding of a pod that was written just now."""
    past.pods[now["metadata"]["uid"]] = now
    before = before or a_pod(now["metadata"]["name"])
    write = by_scheduler("/binding", before, now)
    return Seen(write=write, history=past, horizon_ns=8 * NS_PER_SECOND)


def eviction(before: Manifest, past: History, *, told: bool = True) -> Seen:
    if told:
        before["status"] = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    write = by_scheduler("", before, None)
    return Seen(write=write, history=past, horizon_ns=8 * NS_PER_SECOND)


def stored(past: Past, kind: str, *objects: Manifest) -> Past:
    """Add objects of a kind to a history."""
    for obj in objects:
        meta = obj["metadata"]
        past.kept.setdefault(kind, {})[meta.get("namespace", ""), meta["name"]] = obj
    return past


def promised(pod: Manifest) -> Past:
    """Return a history in which a node was promised to a pod long ago."""
    pod["status"] = {"nominatedNodeName": "n1"}
    past = history(pod)
    past.nominated_ns[pod["metadata"]["uid"]] = 0
    return past


def report(pod: Manifest, *, claimed_by: Manifest, claimed_ns: int, node: str = "n1") -> Seen:
    """Return a write about a pod to which node n1 was promised long ago, and which it keeps."""
    past = promised(pod)
    claimed_by["status"] = {"nominatedNodeName": node}
    uid = claimed_by["metadata"]["uid"]
    past.pods[uid], past.nominated_ns[uid] = claimed_by, claimed_ns
    write = by_scheduler("/status", pod, pod)
    return Seen(write=write, history=past, horizon_ns=8 * NS_PER_SECOND, undisturbed=True)


def refusal(promised: str, *, held: float = 2.0) -> Seen:
    """Return the report about a pod that a plugin held, with the node that its status told."""
    before, now = a_pod("p"), a_pod("p")
    before["status"] = {"nominatedNodeName": promised}
    now["status"] = {"conditions": [{"type": "PodScheduled", "status": "False"}]}
    past = history(now)
    past.popped_ns["p"] = LATER - round(held * NS_PER_SECOND)
    write = by_scheduler("/status", before, now)
    return Seen(write=write, history=past, horizon_ns=8 * NS_PER_SECOND, faultless=True)


def of_default(name: str, **fields: Any) -> Manifest:
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


def with_volumes(*pods: Manifest, mode: str = "ReadWriteOnce", zone: str = "1") -> Past:
    """Return a history with claims a and b, bound to volumes of one driver in a zone."""
    past = history(*pods)
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    for name in ("a", "b"):
        claim = {"accessModes": [mode], "volumeName": f"pv-{name}"}
        stored(past, "persistentvolumeclaims", of_default(name, spec=claim))
        source = {"driver": "csi", "volumeHandle": name}
        volume = {"csi": source, "nodeAffinity": {"required": required}}
        stored(past, "persistentvolumes", {"metadata": {"name": f"pv-{name}"}, "spec": volume})
    return past


def using(*claims: str) -> list[Manifest]:
    return [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]


def with_claims(**reserved: list[str]) -> Past:
    """Return a history with resource claims on one device, by the pods they are reserved for."""
    past = history()
    results = [{"driver": "d", "pool": "p", "device": "0"}]
    for name, uids in reserved.items():
        users = [{"uid": uid} for uid in uids]
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
        stored(past, "resourceclaims.resource.k8s.io", of_default(name, status=status))
    return past


def with_budget(past: Past, app: str) -> Past:
    """Add a budget that allows no more disruptions."""
    spec = {"selector": {"matchLabels": {"app": app}}}
    budget = of_default("b", spec=spec, status={"disruptionsAllowed": 0})
    return stored(past, "poddisruptionbudgets.policy", budget)


def with_quotas(*pods: Manifest, **bounds: tuple[str, str]) -> Past:
    """Return a history with elastic quotas: the least and the most cpu of each namespace."""
    past = history(*pods)
    past.quota_changed_ns = 0
    for name, (least, most) in bounds.items():
        meta = {"name": name, "namespace": name}
        quota = {"metadata": meta, "spec": {"min": {"cpu": least}, "max": {"cpu": most}}}
        stored(past, "elasticquotas.scheduling.x-k8s.io", quota)
    return past


WEB = {"app": "web"}
NEAR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
        ]
    }
}
LIMITED = {
    "metadata": {"name": "n1"},
    "spec": {"drivers": [{"name": "csi", "allocatable": {"count": 1}}]},
}
DISK = {"name": "d", "gcePersistentDisk": {"pdName": "d"}}
DEVICE = [{"name": "gpu", "resourceClaimName": "c"}]
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": WEB}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}
EVENLY = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    }
]


def named(node: str) -> Manifest:
    """Return an affinity to the node of this name."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def ending(pod: Manifest) -> Manifest:
    """Return a pod that is being deleted."""
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


TAINT = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
LEAVING = ending(a_pod("p"))

BROKEN = {
    "bound-once": binding(a_pod("p", "n1"), history(), before=a_pod("p", "n2")),
    "node-exists": binding(a_pod("p", "n9"), history()),
    "promised-room": binding(a_pod("p", "n1"), promised(a_pod("q", priority=5, cpu="1500m"))),
    "room": binding(a_pod("p", "n1", cpu="2"), history(a_pod("q", "n1"))),
    "ports": binding(a_pod("p", "n1", host_ports=[80]), history(a_pod("q", "n1", host_ports=[80]))),
    "taints": binding(a_pod("p", "n1"), history(taints=TAINT)),
    "selector": binding(a_pod("p", "n1", node_selector={"zone": "2"}), history()),
    "anti-affinity": binding(
        a_pod("p", "n1", labels=WEB), history(a_pod("q", "n1", labels=WEB, affinity=APART))
    ),
    "spread": binding(
        a_pod("p", "n1", labels=WEB, topologySpreadConstraints=EVENLY),
        history(a_pod("q", "n1", labels=WEB)),
    ),
    "gates": binding(a_pod("p", "n1", gates=["example.com/wait"]), history()),
    "own-pods": binding(
        {**a_pod("p", "n1"), "spec": {**a_pod("p", "n1")["spec"], "schedulerName": "other"}},
        history(),
    ),
    "not-leaving": binding(a_pod("p", "n1"), history(), before=LEAVING),
    "affinity": binding(
        a_pod("p", "n2", affinity=NEAR), history(a_pod("q", "n1", labels={"app": "db"}))
    ),
    "volumes": binding(a_pod("p", "n2", volumes=using("a")), with_volumes()),
    "disks": binding(a_pod("p", "n1", volumes=[DISK]), history(a_pod("q", "n1", volumes=[DISK]))),
    "features": binding(a_pod("p", "n1", hostNetwork=True, hostUsers=False), history()),
    "single-user": binding(
        a_pod("p", "n1", volumes=using("a")),
        with_volumes(a_pod("q", "n1", volumes=using("a")), mode="ReadWriteOncePod"),
    ),
    "volume-limit": binding(
        a_pod("p", "n1", volumes=using("a")),
        stored(
            with_volumes(a_pod("q", "n1", volumes=using("b"))), "csinodes.storage.k8s.io", LIMITED
        ),
    ),
    "device-once": binding(a_pod("p", "n1"), with_claims(c=["p"], d=["q"])),
    "reserved": binding(a_pod("p", "n1", resourceClaims=DEVICE), with_claims(c=["q"])),
    "quota": binding(
        a_pod("p", "n1", namespace="red"),
        with_quotas(a_pod("q", "n2", namespace="red"), red=("2", "1500m")),
    ),
    "victim-quota": eviction(
        a_pod("v", "n1", namespace="red"),
        with_quotas(a_pod("p", namespace="blue"), red=("1", "2"), blue=("1", "2")),
    ),
    "victim-polite": eviction(
        a_pod("v", "n1"), history(a_pod("p", priority=5, cpu="2", preemptionPolicy="Never"))
    ),
    "victim-needed": eviction(a_pod("v", "n1"), history(a_pod("p", priority=5, cpu="3"))),
    "victim-budget": eviction(
        a_pod("v", "n1", labels=WEB),
        with_budget(history(a_pod("p", priority=5, cpu="2"), a_pod("q", "n2")), "web"),
    ),
    "victim-priority": eviction(a_pod("v", "n1", priority=5), history(a_pod("p", priority=5))),
    "victim-spared": msgspec.structs.replace(
        eviction(a_pod("v", "n1"), history(a_pod("p", priority=5), ending(a_pod("q", "n1")))),
        undisturbed=True,
    ),
    "victim-told": eviction(a_pod("v", "n1"), history(a_pod("p", priority=5)), told=False),
    "victim-placed": eviction(a_pod("v"), history(a_pod("p", priority=5))),
    "announced": refusal(""),
    "lesser-promise": report(
        a_pod("p"), claimed_by=a_pod("q", priority=5), claimed_ns=LATER - 9 * NS_PER_SECOND
    ),
}


@pytest.mark.parametrize("name", [each.name for each in (*BINDING, *EVICTION, *REPORTED)])
def test_each_invariant_can_be_broken(name: str) -> None:
    assert [broken for broken, _ in broken_by(BROKEN[name])] == [name]


def test_a_pod_that_names_another_node_breaks_the_rule_of_selectors() -> None:
    seen = binding(a_pod("p", "n1", affinity=named("n2")), history())
    assert [broken for broken, _ in broken_by(seen)] == ["selector"]


def changed(before: Manifest, now: Manifest) -> Write:
    """Return a change of a pod by a user."""
    for version, each in enumerate((before, now)):
        each["metadata"]["resourceVersion"] = str(version)
    return Write(at_ns=LATER, by="user", path="", resource="pods", now=now, before=before)


FINISHED = {**a_pod("p", "n1"), "status": {"phase": "Failed"}}
NAMESAKE = a_pod("p")
NAMESAKE["metadata"]["uid"] = "another"

NOT_KEPT = {
    "place-kept": [
        changed(a_pod("p", "n1"), a_pod("p", "n2")),
        changed(a_pod("p", "n1"), a_pod("p")),
    ],
    "end-kept": [changed(LEAVING, a_pod("p")), changed(FINISHED, a_pod("p", "n1"))],
    "identity-kept": [changed(a_pod("p"), NAMESAKE)],
}


@pytest.mark.parametrize("name", [each.name for each in KEPT])
def test_each_rule_of_the_server_can_be_broken(name: str) -> None:
    for write in NOT_KEPT[name]:
        assert [broken for broken, _ in broken_by_server(write)] == [name]


@pytest.mark.parametrize(
    ("state", "broken"), [({"running": {}}, []), ({"terminated": {}}, ["end-kept"])]
)
def test_a_node_may_report_late_about_a_pod_that_a_user_ended(
    state: dict[str, Any], broken: list[str]
) -> None:
    ended = {"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": state}]}
    revived = changed({**a_pod("p", "n1"), "status": ended}, a_pod("p", "n1"))
    by_agent = msgspec.structs.replace(revived, by="nodes")
    assert [name for name, _ in broken_by_server(by_agent)] == broken


def test_a_pod_that_gets_a_node_breaks_no_rule_of_the_server() -> None:
    assert list(broken_by_server(changed(a_pod("p"), a_pod("p", "n1")))) == []


async def test_a_write_overtakes_a_status_that_has_no_answer() -> None:
    told: list[str] = []
    asked = asyncio.Event()

    class Slow:
        async def request(self, call: Call) -> Answer:
            await asked.wait()
            return Answer(200, {}, b"")

        def stream(self, call: Call) -> Any:
            raise NotImplementedError

        async def close(self) -> None:
            """Do nothing."""

    reused = "/api/v1/namespaces/default/pods/r"
    calls = InTurn(Slow(), told.append, reused.__eq__)
    path = "/api/v1/namespaces/default/pods/"
    async with asyncio.TaskGroup() as tasks:
        for sent in ("p/binding", "p/status", "q/status", "p/status", "r/status", "r/status"):
            tasks.create_task(calls.request(Call("PATCH", path + sent)))
        await aio.sleep(0)
        asked.set()
    assert len(told) == 1
    assert "pods/p/status" in told[0]


@pytest.mark.parametrize(
    ("answers", "failed"),
    [
        ([200], False),
        ([500], True),
        ([200, 500], True),
        ([500, 200], False),
        ([None], True),
        ([404], True),
    ],
)
async def test_a_status_that_may_not_be_written_is_noted(
    answers: list[int | None], failed: bool
) -> None:
    """None stands for an answer that never came."""
    past, left = history(a_pod("p")), list(answers)

    class Faulty:
        async def request(self, call: Call) -> Answer:
            status = left.pop(0)
            if status is None:
                raise TransportError("lost")
            return Answer(status, {}, b"")

        def stream(self, call: Call) -> Any:
            raise NotImplementedError

        async def close(self) -> None:
            """Do nothing."""

    calls = InTurn(Faulty(), list[str]().append, past.reused, past.note_report)
    for _ in answers:
        with contextlib.suppress(TransportError):
            body = b'{"status": {"conditions": []}}'
            path = "/api/v1/namespaces/default/pods/p/status"
            await calls.request(Call("PATCH", path, body=body))
    assert ("default/p" in past.unreported_ns) == failed


@pytest.mark.parametrize(
    ("tried", "failed", "told"),
    [(5, None, True), (5, 4, True), (5, 5, False), (5, 6, False), (None, 6, True)],
)
def test_a_pod_says_why_it_waits_unless_its_last_report_failed(
    tried: int | None, failed: int | None, told: bool
) -> None:
    past = history(a_pod("p"))
    if tried is not None:
        past.popped_ns["p"] = tried
    if failed is not None:
        past.unreported_ns["default/p"] = failed
    (explained,) = [each for each in WAITING if each.name == "explained"]
    cluster: Any = SimpleNamespace(history=past, replicas={})
    assert bool(list(explained.broken(cluster))) == told


ALLOWED = {
    "fits": binding(a_pod("p", "n1"), history(a_pod("q", "n1"))),
    "tolerates": binding(
        a_pod("p", "n1", tolerations=[{"key": "gpu", "operator": "Exists"}]), history(taints=TAINT)
    ),
    "the other zone": binding(
        a_pod("p", "n2", labels=WEB, topologySpreadConstraints=EVENLY),
        history(a_pod("q", "n1", labels=WEB)),
    ),
    "borrowed within the sum of the minimums": binding(
        a_pod("p", "n1", namespace="red"),
        with_quotas(a_pod("q", "n2", namespace="red"), red=("1", "2"), blue=("1", "2")),
    ),
    "borrowed room is given back": eviction(
        a_pod("v", "n1", namespace="red"),
        with_quotas(a_pod("p", namespace="blue"), red=("500m", "2"), blue=("1", "2")),
    ),
    "a lower victim": eviction(a_pod("v", "n1"), history(a_pod("p", priority=5))),
    "a node that was claimed just now": report(
        a_pod("p"), claimed_by=a_pod("q", priority=5), claimed_ns=LATER - NS_PER_SECOND
    ),
    "a node that a lesser pod claimed": report(
        a_pod("p", priority=5), claimed_by=a_pod("q"), claimed_ns=LATER - 9 * NS_PER_SECOND
    ),
    "another node": report(
        a_pod("p"),
        claimed_by=a_pod("q", priority=5),
        claimed_ns=LATER - 9 * NS_PER_SECOND,
        node="n2",
    ),
    "a node that was told": refusal("n1"),
    "a refusal at once": refusal("", held=0.5),
    "a node by its name": binding(a_pod("p", "n1", affinity=named("n1")), history()),
}


@pytest.mark.parametrize("seen", ALLOWED.values(), ids=ALLOWED)
def test_what_is_allowed_breaks_nothing(seen: Seen) -> None:
    assert list(broken_by(seen)) == []


def test_a_scheduler_is_not_blamed_for_what_it_could_not_know() -> None:
    past = history(a_pod("q", "n1", cpu="2"))
    past.placed["q"] = Placed(LATER - NS_PER_SECOND, "scheduler-0.1")
    assert list(broken_by(binding(a_pod("p", "n1", cpu="2"), past))) == []
    past.placed["q"] = Placed(LATER - NS_PER_SECOND, "scheduler-1.1")
    assert [name for name, _ in broken_by(binding(a_pod("p", "n1", cpu="2"), past))] == ["room"]


@pytest.mark.parametrize("called_off", [False, True])
def test_a_gang_may_lack_a_member_whose_place_was_taken_before_it_was_bound(
    called_off: bool,
) -> None:
    member: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}}
    past = history(a_pod("p", "n1", **member), a_pod("q", **member))
    past.excused_groups = set()
    group = of_default("g", spec={"schedulingPolicy": {"gang": {"minCount": 2}}})
    stored(past, "podgroups.scheduling.k8s.io", group)
    if called_off:
        told = {"reason": "Preempted", "involvedObject": {"uid": "q"}}
        stored(past, "events", of_default("e", **told))
    (gangs,) = [each for each in WAITING if each.name == "gangs"]
    broken = [] if called_off else ["group default/g: 1 of 2 pods have a node"]
    cluster: Any = SimpleNamespace(history=past)
    assert list(gangs.broken(cluster)) == broken


class Groups(dict[GroupKey, GroupMembers]):
    """The groups of a scheduler."""

    def all(self) -> Groups:
        return self


def members_of(*, counted: list[str], placed: list[str], there: list[str]) -> Any:
    """Return a cluster whose scheduler counts members of a group as placed."""
    members = GroupMembers()
    for uid in {*counted, *placed, *there}:
        members.pods[uid] = typed_pod(uid)
    members.assigned = dict.fromkeys(counted)
    core = SimpleNamespace(snapshot=SimpleNamespace(groups=Groups({GroupKey("n", "g"): members})))
    replica = SimpleNamespace(
        scheduler=SimpleNamespace(core=core, synced=True), process=SimpleNamespace(dead=False)
    )
    past = history(*(a_pod(uid, "n1" if uid in placed else "") for uid in there))
    return SimpleNamespace(history=past, replicas={"scheduler-0": replica})


@pytest.mark.parametrize(
    ("counted", "placed", "there", "broken"),
    [
        (["p"], ["p"], ["p", "q"], False),
        ([], ["p"], ["p", "q"], True),
        (["p", "q"], ["p"], ["p", "q"], True),
        (["p"], ["p"], [], True),
    ],
)
def test_a_scheduler_counts_the_members_that_have_a_node(
    counted: list[str], placed: list[str], there: list[str], broken: bool
) -> None:
    (rule,) = [each for each in AT_END if each.name == "members"]
    cluster = members_of(counted=counted, placed=placed, there=there)
    assert bool(list(rule.broken(cluster))) == broken


@pytest.mark.parametrize(
    ("told", "undisturbed", "missing"),
    [
        ([("Scheduled", "p"), ("Preempted", "v")], True, 0),
        ([("Scheduled", "p")], True, 1),
        ([("Preempted", "v")], True, 1),
        ([], True, 2),
        ([], False, 0),
    ],
)
def test_events_tell_of_bindings_and_evictions(
    told: list[tuple[str, str]], undisturbed: bool, missing: int
) -> None:
    past = history(a_pod("p", "n1"))
    past.evicted.add("v")
    for number, (reason, uid) in enumerate(told):
        note = of_default(f"e{number}", reason=reason, involvedObject={"uid": uid})
        stored(past, "events", note)
    (rule,) = [each for each in AT_REST if each.name == "events"]
    cluster: Any = SimpleNamespace(history=past, undisturbed=undisturbed)
    assert len(list(rule.broken(cluster))) == missing


@pytest.mark.parametrize(
    ("told", "kept", "broken"), [("n1", "n1", 0), ("", None, 0), ("n1", None, 1), ("", "n1", 1)]
)
def test_a_leader_keeps_the_nodes_that_statuses_promise(
    told: str, kept: str | None, broken: int
) -> None:
    waits = a_pod("p")
    waits["status"] = {"nominatedNodeName": told}
    nominator = SimpleNamespace(node_of={"p": kept}.get)
    core = SimpleNamespace(queue=SimpleNamespace(nominator=nominator))
    leader = SimpleNamespace(leading=True, scheduler=SimpleNamespace(core=core))
    cluster: Any = SimpleNamespace(history=history(waits), replicas={"scheduler-0": leader})
    (rule,) = [each for each in WAITING if each.name == "promises"]
    assert len(list(rule.broken(cluster))) == broken


@pytest.mark.parametrize(("cpu", "broken"), [("1", 0), ("3", 1)])
def test_no_pod_keeps_the_promise_of_a_node_that_is_too_small(cpu: str, broken: int) -> None:
    waits = a_pod("p", cpu=cpu)
    waits["status"] = {"nominatedNodeName": "n1"}
    past = history(waits)
    past.popped_ns["p"] = LATER
    cluster: Any = SimpleNamespace(history=past, undisturbed=True)
    (rule,) = [each for each in WAITING if each.name == "promised-in-vain"]
    assert len(list(rule.broken(cluster))) == broken


@pytest.mark.parametrize("told", [False, True])
def test_a_gang_that_waits_says_why(told: bool) -> None:
    past = history(a_pod("p", schedulingGroup={"podGroupName": "g"}))
    past.popped_ns["p"] = 1
    status = {"conditions": [{"type": "PodGroupScheduled", "status": "False"}]} if told else {}
    stored(past, "podgroups.scheduling.k8s.io", of_default("g", status=status))
    cluster: Any = SimpleNamespace(history=past, undisturbed=True)
    (rule,) = [each for each in WAITING if each.name == "gang-says"]
    assert bool(list(rule.broken(cluster))) != told


@pytest.mark.parametrize(("node", "broken"), [("", 1), ("n1", 0)])
def test_no_claim_is_reserved_for_a_pod_that_waits(node: str, broken: int) -> None:
    past = with_claims(c=["p"])
    past.pods["p"] = a_pod("p", node)
    cluster: Any = SimpleNamespace(history=past, faultless=True)
    (rule,) = [each for each in WAITING if each.name == "reserved-in-vain"]
    assert len(list(rule.broken(cluster))) == broken


def test_room_that_is_kept_for_a_pod_held_back_since_proves_no_lost_wakeup() -> None:
    """A scheduler that has just been started does not know the promise."""
    promised = a_pod("p")
    promised["status"] = {"nominatedNodeName": "n1"}
    held_back = SimpleNamespace(pod=SimpleNamespace(uid="p"), gating_reasons=("gang",))
    pending = SimpleNamespace(gated=[held_back])
    core = SimpleNamespace(queue=SimpleNamespace(pending=lambda: pending))
    leader = SimpleNamespace(leading=True, scheduler=SimpleNamespace(core=core))
    cluster: Any = SimpleNamespace(
        history=history(promised, a_pod("q")),
        replicas={"scheduler-0": leader},
    )
    (lost,) = [each for each in WAITING if each.name == "no-lost-wakeup"]
    assert list(lost.broken(cluster)) == []


@pytest.mark.parametrize("undisturbed", [False, True])
def test_a_faulty_connection_may_hide_the_change_of_a_node(undisturbed: bool) -> None:
    """A change of a node wakes no pod that another's anti-affinity keeps away, as upstream."""
    apart = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    past = history(a_pod("q", "n1", affinity=rules), a_pod("p", labels={"app": "a"}))
    past.node_changed_ns["n2"], past.popped_ns["p"] = NS_PER_SECOND, 6 * NS_PER_SECOND
    (fits_nowhere,) = [each for each in WAITING if each.name == "fits-nowhere"]
    cluster: Any = SimpleNamespace(history=past, undisturbed=undisturbed)
    broken = ["default/p waits, and n2 has room for it"] if undisturbed else []
    assert list(fits_nowhere.broken(cluster)) == broken
