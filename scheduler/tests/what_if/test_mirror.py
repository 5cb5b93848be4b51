"""A mirror of a running scheduler rehearses what a model made of the API server's lists does.

Left out: the process and its pipes (`test_process.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from moorage.what_if.answering.messages import First, Moment, QuestionFrame, Reply, Update
from moorage.what_if.answering.mirror import Mirror
from moorage.what_if.answering.mirrored_state import MirroredState
from moorage.what_if.answering.question import tried_questions
from moorage.what_if.change import Apply, Cordon, Drain
from moorage.what_if.consequences import FlagNeed
from moorage.what_if.course import try_steps
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from tests.scenarios.gangs import coscheduling, of_labels

_NODES = [node_manifest(f"n{number}", cpu="8") for number in range(6)]


def _state(cluster: VirtualCluster, clock: ManualClock) -> MirroredState:
    return MirroredState(cluster.scheduler, clock, config=LoadedConfiguration, plugins=())


def _new_mirror(state: MirroredState, config: LoadedConfiguration | None = None) -> Mirror:
    first = msgspec.msgpack.decode(state.first(), type=First)
    return Mirror(config or LoadedConfiguration(), in_tree_registry(), now_ns=first.now_ns)


def _tell(state: MirroredState, mirror: Mirror) -> list[Update]:
    found = [msgspec.msgpack.decode(frame, type=Update) for frame in state.updates()]
    for update in found:
        mirror.take_changes(update)
    return [each for each in found if each != Update()]


def _moment(state: MirroredState) -> Moment:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state.moment()), type=Moment)


def _names(updates: list[Update]) -> Iterator[str]:
    for update in updates:
        yield from (pod.name for pod in update.pods)
        yield from (f"-{key[1]}" for key in update.gone_pods)
        yield from (node.name for node in update.nodes)
        yield from (f"-{name}" for name in update.gone_nodes)


def test_only_changes_are_told_after_the_first_time() -> None:
    clock = ManualClock()

    async def main() -> tuple[list[str], ...]:
        async with VirtualCluster(clock, nodes=_NODES[:2], seed=3) as cluster:
            await cluster.create_objects(pod_manifest("a"))
            await cluster.create_objects(pod_manifest("waits", cpu="99"))
            await cluster.until(lambda: cluster.scheduler.facts.rejected > 0)
            await aio.sleep(5)
            state = _state(cluster, clock)
            mirror = _new_mirror(state)
            told = [sorted(_names(_tell(state, mirror)))]
            told.append(sorted(_names(_tell(state, mirror))))
            await cluster.client.delete(PODS, "waits", namespace="default")
            await cluster.create_objects(pod_manifest("b"))
            await aio.sleep(5)
            told.append(sorted(_names(_tell(state, mirror))))
            return tuple(told)

    assert run_virtual(main(), clock) == (["a", "n0", "n1", "waits"], [], ["-waits", "b"])


def test_members_that_succeeded_count_in_a_mirror_as_long_as_they_exist() -> None:
    clock, config = ManualClock(), coscheduling()

    async def main() -> list[tuple[int, int]]:
        async with VirtualCluster(clock, nodes=_NODES[:1], config=config, seed=3) as cluster:
            await cluster.create_objects(of_labels("a", least=2), of_labels("b", least=2))
            await cluster.until(lambda: bool(cluster.node_of("a") and cluster.node_of("b")))
            state = _state(cluster, clock)
            mirror = _new_mirror(state, config)
            groups = mirror.begin_model(_moment(state)).half.core.snapshot.groups
            told = list[tuple[int, int]]()

            async def tell_terms() -> None:
                await aio.sleep(5)
                _tell(state, mirror)
                (terms,) = [groups.source.terms_of(key) for key in groups.all_groups()]
                assert terms is not None
                told.append((terms.minimum, terms.succeeded))

            await tell_terms()
            await cluster.client.patch(
                PODS,
                "a",
                patch_body({"status": {"phase": "Succeeded"}}),
                namespace="default",
                subresource="status",
                content_type=MERGE_PATCH,
            )
            await tell_terms()
            await cluster.client.delete(PODS, "a", namespace="default")
            await tell_terms()
            return told

    assert run_virtual(main(), clock) == [(2, 0), (1, 1), (2, 0)]


def test_a_scheduler_that_has_forgotten_its_changes_tells_everything_again() -> None:
    """The logs of changes are bounded; a pod that is gone is told even so."""
    clock = ManualClock()

    async def main() -> list[str]:
        async with VirtualCluster(clock, nodes=_NODES[:1], seed=3) as cluster:
            await cluster.create_objects(pod_manifest("a"), pod_manifest("b"))
            await aio.sleep(5)
            state, log = _state(cluster, clock), cluster.scheduler.core.store.log
            mirror = _new_mirror(state)
            _tell(state, mirror)
            await cluster.client.delete(PODS, "a", namespace="default")
            await aio.sleep(40)
            while log.since(log.position - 1) is None or log.since(0) is not None:
                log.append(("default", "b"))
            return sorted(_names(_tell(state, mirror)))

    assert run_virtual(main(), clock) == ["-a", "b"]


def test_nodes_that_come_change_and_go_are_told_once() -> None:
    clock = ManualClock()

    async def main() -> tuple[list[list[str]], list[str], list[str]]:
        async with VirtualCluster(clock, nodes=_NODES[:4], seed=3) as cluster:
            state = _state(cluster, clock)
            mirror = _new_mirror(state)
            told = [sorted(_names(_tell(state, mirror)))]
            await cluster.patch_object(NODES, "n2", {"metadata": {"labels": {"power": "green"}}})
            await aio.sleep(5)
            told.append(sorted(_names(_tell(state, mirror))))
            await cluster.delete_node("n1")
            await cluster.create_objects(_NODES[5])
            await aio.sleep(5)
            told.append(sorted(_names(_tell(state, mirror))))
            await cluster.patch_object(NODES, "n3", {"metadata": {"labels": {"power": "green"}}})
            await aio.sleep(5)
            told.append(sorted(_names(_tell(state, mirror))))
            table = mirror.begin_model(_moment(state)).half.core.snapshot.table
            labels = [f"{each.name} {each.metadata.labels.get('power')}" for each in table.nodes]
            return told, sorted(labels), sorted(_names(_tell(state, mirror)))

    told, labels, last = run_virtual(main(), clock)
    assert told == [["n0", "n1", "n2", "n3"], ["n2"], ["-n1", "n5"], ["n3"]]
    assert labels == ["n0 None", "n2 green", "n3 green", "n5 None"]
    assert last == []


def test_a_pod_goes_where_the_scheduler_then_binds_it() -> None:
    """The draws and the order on nodes are the scheduler's own, after many updates as well."""
    clock = ManualClock()

    async def main() -> tuple[list[str], list[str]]:
        said, happened = [], []
        async with VirtualCluster(clock, nodes=_NODES, seed=11) as cluster:
            state = _state(cluster, clock)
            first = state.first()
            told: list[bytes] = []
            for number in range(12):
                told += state.updates()
                # Each question uses a mirror up, so the frames so far are taken in afresh.
                began = msgspec.msgpack.decode(first, type=First)
                mirror = Mirror(LoadedConfiguration(), in_tree_registry(), now_ns=began.now_ns)
                for frame in told:
                    mirror.take_changes(msgspec.msgpack.decode(frame, type=Update))
                pod = pod_manifest(f"p{number}", cpu="1")
                course = try_steps(mirror.begin_model(_moment(state)), [Apply(pod)])
                said += [f"{each.pod} {each.node}" for each in course.starts]
                await cluster.create_objects(pod)
                await aio.sleep(5)
                happened.append(f"default/p{number} {cluster.node_of(f'p{number}')}")
        return said, happened

    said, happened = run_virtual(main(), clock)
    assert said == happened
    assert len({line.split()[1] for line in said}) > 2


def test_a_pod_without_a_node_is_tried_and_owners_come_with_the_question() -> None:
    clock = ManualClock()
    owner: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }

    async def main() -> Any:
        async with VirtualCluster(clock, nodes=_NODES[:1], seed=3) as cluster:
            await cluster.create_objects(pod_manifest("waits", cpu="99"))
            await cluster.until(lambda: cluster.scheduler.facts.rejected > 0)
            state = _state(cluster, clock)
            mirror = _new_mirror(state)
            _tell(state, mirror)
            model = mirror.begin_model(_moment(state), [owner])
            course = try_steps(model, [Cordon("n0"), Drain("n0")])
            return course, model.objects.manifest("apps", "ReplicaSet", ("default", "web"))

    course, manifest = run_virtual(main(), clock)
    assert [each.pod for each in course.still_pending] == ["default/waits"]
    assert manifest == owner


def test_an_assumed_pod_holds_its_room() -> None:
    """The scheduler believes that it is on its node before the API server shows that."""
    clock = ManualClock()

    async def main() -> list[Pod]:
        async with VirtualCluster(clock, nodes=_NODES[:1], seed=3) as cluster:
            core = cluster.scheduler.core
            await cluster.create_objects(pod_manifest("a"))
            await cluster.until(lambda: bool(core.cache.assumed()))
            state = _state(cluster, clock)
            found = _tell(state, _new_mirror(state))
            return [pod for update in found for pod in update.pods]

    assert [(pod.name, pod.spec.node_name) for pod in run_virtual(main(), clock)] == [("a", "n0")]


def test_placements_are_the_same_with_and_without_a_mirror() -> None:
    """Reading the state draws nothing, and changes neither queue nor cache."""

    def course(*, told: bool) -> dict[str, str]:
        clock = ManualClock()

        async def main() -> dict[str, str]:
            async with VirtualCluster(clock, nodes=_NODES, seed=5) as cluster:
                state = _state(cluster, clock)
                for number in range(30):
                    await cluster.create_objects(pod_manifest(f"p{number}", cpu="1"))
                    if told:
                        assert list(state.updates())
                        assert state.moment().now_ns == clock.now_ns()
                await aio.sleep(5)
                return cluster.placements()

        return run_virtual(main(), clock)

    assert course(told=True) == course(told=False)


class _LastFrame:
    """Answers every question with nothing, and keeps its frame."""

    frame: QuestionFrame

    async def ask(self, question: Callable[[], bytes]) -> bytes:
        self.frame = msgspec.msgpack.decode(question(), type=QuestionFrame)
        return msgspec.msgpack.encode(Reply(200, b"{}"))


def test_a_drain_that_is_asked_for_without_objects_names_pods_that_lose_local_data() -> None:
    """As the page asks: a scheduler drops volumes of kind emptyDir, so it lists the node's pods."""
    clock = ManualClock()

    async def main() -> tuple[FlagNeed, ...]:
        async with VirtualCluster(clock, nodes=_NODES[:2], seed=3) as cluster:
            for name, node, source in (
                ("scratch", "n0", "emptyDir"),
                ("plain", "n0", "downwardAPI"),
                ("other", "n1", "emptyDir"),
            ):
                volumes = [{"name": "v", source: {}}]
                await cluster.create_objects(pod_manifest(name, node_name=node, volumes=volumes))
            await cluster.until(lambda: len(cluster.scheduler.core.store.all_pods()) == 3)
            state, answering = _state(cluster, clock), _LastFrame()
            question = tried_questions(cluster.scheduler, clock, state, answering)[0]
            await question.ask(b'{"changes": [{"change": "drain", "name": "n0"}]}')
            mirror = _new_mirror(state)
            _tell(state, mirror)
            frame = answering.frame
            model = mirror.begin_model(frame.moment, with_local_data=frame.with_local_data)
            return try_steps(model, [Drain("n0")]).drain_flags

    assert run_virtual(main(), clock) == (
        FlagNeed("--delete-emptydir-data", ("default/scratch",)),
        FlagNeed("--force", ("default/plain", "default/scratch")),
    )
