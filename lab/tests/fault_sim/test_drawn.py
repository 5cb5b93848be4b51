"""Scripts that are drawn: every kind of fault and of user occurs in them, and strikes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from moorage.base.clock import NS_PER_SECOND
from moorage.base.rng import Streams
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import AnyAct, Script
from moorage_lab.fault_sim.fault_run import Outcome, play
from moorage_lab.fault_sim.network_faults import WIRE_FAULTS, NetworkFaults, Spell, WireFault
from moorage_lab.fault_sim.scenarios import IN_TURN, scenario
from moorage_sandbox.testing.builders import node_manifest, pod_manifest

SEEDS = range(1, 201)


def kinds(act: AnyAct) -> Iterator[str]:
    """Yield the names of what an act is, as in the sentences of a world that can be replayed."""
    match act:
        case acts.Disturb():
            yield act.fault
        case acts.Stop() | acts.Kill():
            who = "agents" if act.process == "nodes" else "scheduler"
            how = _how(act)
            yield f"{who} {how}"
            if act.steps:
                yield f"{who} {how} at an await"
        case acts.Depose():
            yield "lease lost"
        case acts.Jump():
            yield "clock ahead" if act.seconds > 0 else "clock back"
        case acts.Outage():
            yield "restart without its watch cache" if act.forgets else "restart"
        case acts.Crash():
            yield f"crash {act.how}{' and power cut' * act.power}"
        case acts.Create():
            yield f"creates {act.object['kind']} {act.object['apiVersion'].partition('/')[0]}"
            yield from _pod_features(act.object)
        case acts.Patch():
            yield f"changes {act.kind} {act.subresource}".strip()
        case acts.Delete():
            yield f"deletes {act.kind}" + " at an await" * bool(act.process)
        case _:
            yield type(act).__name__.lower()


def _how(act: acts.Stop | acts.Kill) -> str:
    if isinstance(act, acts.Kill):
        return act.signal
    return "asleep" if act.asleep else "stopped"


# What a pod can ask for, by the field of its spec that asks.
_FEATURES = {
    "topologySpreadConstraints": "spread",
    "affinity": "affinity",
    "volumes": "volumes",
    "resourceClaims": "claims",
    "priorityClassName": "priority",
    "schedulingGates": "gates",
    "schedulingGroup": "gang, new",
    "tolerations": "tolerations",
    "nodeSelector": "node selector",
}


def _pod_features(pod: dict[str, object]) -> Iterator[str]:
    if pod["kind"] != "Pod":
        return
    spec, meta = pod["spec"], pod["metadata"]
    assert isinstance(spec, dict)
    assert isinstance(meta, dict)
    features = [name for field, name in _FEATURES.items() if spec.get(field)]
    features += ["gang, old"] * ("pod-group" in str(meta.get("labels")))
    yield from (f"pod with {name}" for name in features or ["nothing"])


FAULTS = (
    *WIRE_FAULTS,
    "feigned",
    "scheduler stopped",
    "scheduler stopped at an await",
    "scheduler asleep",
    "scheduler asleep at an await",
    "scheduler KILL",
    "scheduler KILL at an await",
    "scheduler TERM",
    "scheduler TERM at an await",
    "lease lost",
    "clock ahead",
    "clock back",
    "restart",
    "restart without its watch cache",
    "agents stopped",
    "agents KILL",
    "misbehave",
    "fulldisk",
    *(f"crash {how}{cut}" for how in ("kill", "torn", "broken") for cut in ("", " and power cut")),
)

USERS = (
    "pod with nothing",
    *(f"pod with {name}" for name in (*_FEATURES.values(), "gang, old")),
    "creates Deployment apps",
    "creates StatefulSet apps",
    "creates Job batch",
    "creates ElasticQuota scheduling.x-k8s.io",
    "creates ResourceQuota v1",
    "creates PodDisruptionBudget policy",
    "creates PersistentVolumeClaim v1",
    "creates ResourceClaim resource.k8s.io",
    "changes Deployment",
    "changes Node",
    "changes Node status",
    "changes Pod",
    "changes Pod resize",
    "changes Pod status",
    "changes ElasticQuota",
    "deletes Pod",
    "deletes Pod at an await",
    "deletes Node",
    "deletes PodGroup",
    "drain",
    "autoscale",
    "reload",
    "join",
    "bind",
)


@pytest.fixture(scope="module")
def drawn() -> Counter[str]:
    """Return in how many of the scripts of a hunt each kind occurs."""
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        script = scenario(IN_TURN[seed % len(IN_TURN)]).script(seed)
        counts.update({kind for act in script.acts for kind in kinds(act)})
    return counts


@pytest.mark.parametrize("kind", [*FAULTS, *USERS])
def test_a_hunt_of_two_hundred_scripts_has_every_kind(drawn: Counter[str], kind: str) -> None:
    assert drawn[kind] > 0


def test_the_table_of_kinds_has_every_fault_that_is_drawn(drawn: Counter[str]) -> None:
    named = {"creates", "changes", "deletes", "pod"}
    others = {kind for kind in drawn if kind.split()[0] not in named} - {"look"}
    assert others <= {*FAULTS, *USERS}


def outcome_under(fault: WireFault) -> Outcome:
    """Play three pods while a fault strikes every second call or line of the scheduler."""
    rate = 0.5 if fault != "list-stale" else 1.0
    creations: list[AnyAct] = [
        acts.Create(at=5.0 + number, object=pod_manifest(f"p{number}", cpu="100m"))
        for number in range(8)
    ]
    strike = acts.Disturb(at=4.0, process="scheduler-0", fault=fault, rate=rate, seconds=20.0)
    again = acts.Outage(at=6.5, seconds=0.0, forgets=True)
    return play(
        Script(
            seed=1,
            nodes=[node_manifest("n", cpu="4")],
            acts=[strike, *creations, again],
            rest_seconds=90.0,
        )
    )


@pytest.mark.parametrize("fault", WIRE_FAULTS)
def test_a_fault_of_a_connection_strikes_and_no_pod_is_lost(fault: WireFault) -> None:
    outcome = outcome_under(fault)
    assert [(each.invariant, each.text) for each in outcome.breaches] == []
    assert outcome.fault_counts[fault] > 0
    assert outcome.bound == 8


@pytest.mark.parametrize(("seconds", "arrival"), [(4.3, 6.0), (5.9, 6.0), (6.1, 8.0)])
def test_batched_changes_are_told_in_one_moment(seconds: float, arrival: float) -> None:
    faults = NetworkFaults(Streams(1).stream("weather"))
    now_ns = round(seconds * NS_PER_SECOND)
    assert faults.batched(now_ns) == 0.0
    faults.add(Spell("watch-batched", 1.0, 10 * NS_PER_SECOND))
    assert faults.batched(now_ns) == arrival


PLUGIN_FAULTS = (
    *(f"plugin-{how}" for how in ("raises", "hangs", "nonsense", "refuses", "waits", "slow")),
    *(
        f"extender-{how}"
        for how in ("slow", "gone", "broken", "error", "nonsense", "lies", "refuses")
    ),
)


@pytest.fixture(scope="module")
def plugin_fault_counts() -> dict[str, int]:
    """Return how often each plugin fault happened in two scripts that hold every invariant."""
    counts: dict[str, int] = {}
    for setup in ("broken plugin", "extenders"):
        creations: list[AnyAct] = [
            acts.Create(at=5.0 + number, object=pod_manifest(f"p{number}", cpu="100m"))
            for number in range(30)
        ]
        worse = acts.Misbehave(at=5.0, rate=2.0, seconds=30.0)
        nodes = [node_manifest(f"n{number}", cpu="4") for number in range(3)]
        script = Script(
            seed=1, nodes=nodes, acts=[worse, *creations], rest_seconds=90.0, setup=setup
        )
        outcome = play(script)
        assert outcome.breaches == ()
        assert outcome.bound == 30
        counts |= outcome.fault_counts
    return counts


@pytest.mark.parametrize("kind", PLUGIN_FAULTS)
def test_plugins_and_extenders_misbehave_in_every_way(
    plugin_fault_counts: dict[str, int], kind: str
) -> None:
    assert plugin_fault_counts[kind] > 0


def test_nothing_misbehaves_while_a_script_says_so() -> None:
    creation = acts.Create(at=5.0, object=pod_manifest("p", cpu="100m"))
    well = acts.Misbehave(at=4.0, rate=0.0, seconds=60.0)
    nodes = [node_manifest("n", cpu="4")]
    script = Script(
        seed=1, nodes=nodes, acts=[well, creation], rest_seconds=20.0, setup="broken plugin"
    )
    outcome = play(script)
    assert outcome.bound == 1
    assert not [kind for kind in outcome.fault_counts if kind.startswith("plugin-")]


def test_a_pod_that_a_plugin_held_is_judged_by_when_its_node_was_chosen() -> None:
    """A node is cordoned while PreBind hangs, of every pod that comes (found by seed 51041)."""
    cordon = acts.Patch(
        at=20.0, kind="Node", name="n", namespace="", changes={"spec": {"unschedulable": True}}
    )
    pods: list[AnyAct] = [
        acts.Create(at=5.0 + number / 4, object=pod_manifest(f"p{number}", cpu="10m"))
        for number in range(60)
    ]
    nothing = acts.Look(at=60.0)
    script = Script(
        seed=1,
        nodes=[node_manifest("n", cpu="4")],
        acts=[*pods, cordon, nothing],
        rest_seconds=60.0,
        setup="broken plugin",
    )
    outcome = play(script)
    assert outcome.fault_counts["plugin-hangs"] > 0
    assert outcome.bound > 0
    assert outcome.breaches == ()
