"""Nominations: who gets one, what keeps it, what others see of it."""

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.state.nominations import NominatingInfo, Nominator
from moorage_sandbox.testing.builders import pod as built
from scheduler.tests.state.build import NODE_ADD, World, pod


def nominations(world: World) -> dict[str, str]:
    world.queue.validate()
    return dict(world.queue.nominator)


BARE = Pod(metadata=ObjectMeta(name="a", namespace="ns", uid="uid-a"))


@pytest.mark.parametrize(
    ("in_api", "given", "info", "expected"),
    [
        pytest.param(
            pod(), pod(nominated="n1"), None, {"uid-a": "n1"}, id="the pod's status names a node"
        ),
        pytest.param(pod(), pod(), None, {}, id="the pod's status names no node"),
        pytest.param(
            pod(), pod(), NominatingInfo("n2"), {"uid-a": "n2"}, id="nominated by an attempt"
        ),
        pytest.param(
            pod(),
            pod(nominated="n1"),
            NominatingInfo("n2"),
            {"uid-a": "n2"},
            id="an attempt's nomination takes precedence over the status",
        ),
        pytest.param(
            pod(),
            pod(nominated="n1"),
            NominatingInfo(""),
            {"uid-a": ""},
            id="withdrawn by an attempt",
        ),
        pytest.param(None, pod(nominated="n1"), None, {}, id="a deleted pod"),
        pytest.param(pod(node="n9"), pod(nominated="n1"), None, {}, id="a bound pod"),
    ],
)
def test_the_queue_nominates_the_node_of_the_attempt_or_of_the_status(
    in_api, given, info, expected
):
    world = World()
    if in_api is not None:
        world.api[in_api.key] = in_api
    world.queue.nominate(given, info)
    assert nominations(world) == expected


@pytest.mark.parametrize(
    ("info", "status", "expected"),
    [
        pytest.param(None, "n1", {"v"}, id="the status shows the nomination: kept"),
        pytest.param(
            NominatingInfo("n1", frozenset({"w"})), "n1", {"v", "w"}, id="more victims there"
        ),
        pytest.param(
            NominatingInfo("n2", frozenset({"w"})), "n1", {"w"}, id="victims on another node"
        ),
        pytest.param(NominatingInfo(""), "n1", set(), id="withdrawn"),
        pytest.param(None, "", None, id="cleared in the status"),
    ],
)
def test_victims_are_known_as_long_as_the_nomination_to_their_node(info, status, expected):
    one = pod(nominated=status)
    nominator = Nominator(lambda _namespace, _name: one)
    assert nominator.victims_of(one.uid) is None
    nominator.add(pod(), NominatingInfo("n1", frozenset({"v"})), queued=None)
    nominator.add(one, info, queued=None)
    assert nominator.victims_of(one.uid) == expected


REPELS = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}],
    }
}
NEAR = {"podAffinity": REPELS["podAntiAffinity"]}


@pytest.mark.parametrize(
    ("affinity", "node_name", "expected"),
    [
        pytest.param(REPELS, "n1", True, id="required anti-affinity"),
        pytest.param(REPELS, "", False, id="required anti-affinity, and no node"),
        pytest.param(NEAR, "n1", False, id="required affinity"),
        pytest.param({"podAntiAffinity": {}}, "n1", False, id="anti-affinity without a term"),
        pytest.param(None, "n1", False, id="no affinity"),
    ],
)
def test_a_nominated_pod_may_repel_until_its_nomination_ends(affinity, node_name, expected):
    one = built("a", affinity=affinity)
    nominator = Nominator(lambda _namespace, _name: one)
    assert not nominator.may_repel()
    nominator.add(one, NominatingInfo(node_name), queued=one)
    nominator.left(one.uid)  # it is tried meanwhile
    assert nominator.may_repel() is expected
    nominator.withdraw_nomination(one)
    assert not nominator.may_repel()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            pod(), pod(labels={"x": "y"}), {"uid-a": "n1"}, id="an update without nomination: kept"
        ),
        pytest.param(None, pod(), {"uid-a": "n1"}, id="a first version without nomination: kept"),
        pytest.param(pod(nominated="n1"), pod(), {}, id="cleared in the status: withdrawn"),
        pytest.param(pod(), pod(nominated="n2"), {"uid-a": "n2"}, id="changed in the status"),
    ],
)
def test_updates_of_a_pod_nominated_by_an_attempt(old, new, expected):
    nominator = Nominator(lambda _namespace, _name: new)
    nominator.add(pod(), NominatingInfo("n1"), queued=None)
    nominator.update(old, new)
    nominator.validate()
    assert dict(nominator) == expected


def test_a_new_pod_is_nominated_as_its_status_says():
    world = World()
    world.add(pod(nominated="n1"))
    assert nominations(world) == {"uid-a": "n1"}


@pytest.mark.parametrize("where", ["active", "backoff", "unschedulable"])
def test_an_update_moves_the_nomination_wherever_the_pod_waits(where):
    world = World()
    world.add(pod(nominated="n1"))
    if where != "active":
        world.fail(world.pop(), "Fit")
    if where == "backoff":
        world.queue.move_all(NODE_ADD, None, None)
    assert world.places() == {"a": where}
    world.queue.update(pod(nominated="n1"), pod(nominated="n2"))
    assert nominations(world) == {"uid-a": "n2"}
    world.queue.delete(pod(nominated="n2"))
    assert nominations(world) == {}


class Log:
    """Reads what the nominator's log tells anew, each name as often as it was told."""

    def __init__(self, world: World) -> None:
        self._log = world.queue.nominator.log
        self._position = self._log.position

    def told(self) -> tuple[int, list[str]]:
        """How many entries are new, and the names in them."""
        names = self._log.since(self._position)
        count, self._position = self._log.position - self._position, self._log.position
        assert names is not None
        return count, names


def test_for_node_gives_the_queued_version_and_the_bare_name_of_a_pod_in_flight():
    world = World()
    log, nominator = Log(world), world.queue.nominator
    world.add(pod(nominated="n1", priority=5))
    assert nominator.for_node("n1") == [pod(nominated="n1", priority=5)]
    assert nominator.for_node("n2") == []
    log.told()
    queued = world.pop()
    assert nominator.for_node("n1") == [BARE]
    assert log.told() == (1, ["n1"])
    world.fail(queued, "Fit")
    assert nominator.for_node("n1") == [pod(nominated="n1", priority=5)]
    assert log.told() == (1, ["n1"])
    world.queue.move_all(NODE_ADD, None, None)
    assert nominator.for_node("n1") == [pod(nominated="n1", priority=5)]
    assert log.told() == (0, [])


def test_the_log_does_not_tell_of_nominations_to_no_node():
    world = World()
    log = Log(world)
    world.add(pod(nominated="n1"))
    queued = world.pop()
    assert log.told() == (2, ["n1"])
    world.queue.nominate(pod(nominated="n1"), NominatingInfo(""))
    assert log.told() == (1, ["n1"])
    world.fail(queued, "Fit")
    world.queue.nominate(pod(), NominatingInfo(""))
    world.queue.delete(pod())
    assert log.told() == (0, [])
    assert nominations(world) == {}


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        pytest.param(["nominate"], "the bare name", id="a pod in flight is nominated"),
        pytest.param(["fail", "nominate"], "the pod", id="a pod that went back is nominated"),
        pytest.param(["nominate", "fail"], "the pod", id="a nominated pod goes back"),
        pytest.param(
            ["nominate", "fail", "pop"], "the bare name", id="a nominated pod is popped again"
        ),
    ],
)
def test_a_nominated_pod_is_counted_by_its_queued_version_or_bare_name(steps, seen):
    world = World()
    world.add(pod(priority=5))
    queued = world.pop()
    for step in steps:
        match step:
            case "nominate":
                world.queue.nominate(queued.pod, NominatingInfo("n1"))
            case "fail":
                world.fail(queued, "Fit")
            case _:
                world.queue.move_all(NODE_ADD, None, None)
                assert world.queue.pop() is not None
    world.queue.validate()
    expected = [BARE] if seen == "the bare name" else [pod(priority=5)]
    assert world.queue.nominator.for_node("n1") == expected


def test_pods_of_a_node_come_in_order_of_nomination():
    world = World()
    for name in "cab":
        world.add(pod(name, nominated="n1"))
    world.queue.nominate(pod("c"), NominatingInfo("n1"))
    assert [each.name for each in world.queue.nominator.for_node("n1")] == ["a", "b", "c"]
    world.queue.nominator.withdraw_nomination(pod("b"))
    assert [each.name for each in world.queue.nominator.for_node("n1")] == ["a", "c"]


def test_the_nomination_of_one_pod():
    world = World()
    world.add(pod(nominated="n1"))
    nominator = world.queue.nominator
    assert (nominator.node_of("uid-a"), nominator.node_of("uid-b")) == ("n1", None)
    assert ("uid-a" in nominator, len(nominator)) == (True, 1)


def test_only_one_is_true_for_the_only_nominated_pod_of_a_node():
    world = World()
    world.add(pod(nominated="n1"))
    alone = world.queue.nominator.only_one
    found = [alone(uid, node) for uid in ("uid-a", "uid-b") for node in ("n1", "n2")]
    assert found == [True, False, False, False]
    world.add(pod("b", nominated="n1"))
    assert [alone(uid, "n1") for uid in ("uid-a", "uid-b")] == [False, False]
    world.queue.nominator.withdraw_nomination(pod())
    assert [alone(uid, "n1") for uid in ("uid-a", "uid-b")] == [False, True]


def test_a_pod_of_the_same_name_is_not_taken_for_the_nominated_one():
    world = World()
    world.add(pod(nominated="n1"))
    world.pop()
    world.add(pod(uid="uid-2"))
    assert world.queue.nominator.for_node("n1") == [BARE]
