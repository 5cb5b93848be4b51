"""Takes in the watch events of a live cluster, for the comparison and for the own course.

Each handler first compares, while the state is that before the change, and then hands the change
to the ingest of the deciding half, as in a scheduler (`moorage.service.intake.ingest`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from moorage.api.meta import ApiObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import Clock, rfc3339_micro
from moorage.base.errors import DecodeError
from moorage.shadow.comparison import Comparison
from moorage.shadow.decision_comparer import DecisionComparer
from moorage.shadow.fullness import Fullness, fullness_of
from moorage.shadow.left_pending import LeftPending
from moorage.shadow.moments import Binding
from moorage.shadow.queue_order import BEFORE_THE_FIRST_LIST
from moorage.shadow.replay import Replay
from moorage.shadow.report import Courses, Report, Tally
from moorage.shadow.shadow_cluster import ShadowCluster
from moorage.snapshot.pod_info import PodInfo
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import ClusterObjects, checked_node

_CLAIMS: Final = {
    "persistent_volume_claims": "PersistentVolumeClaim",
    "resource_claims": "ResourceClaim",
}
_TRIED: Final = "PodScheduled"
_REJECTIONS: Final = frozenset({"Unschedulable", "SchedulingGated"})
_NOMINATED: Final = "a nomination changed at about the same time"
_DELETED: Final = "a pod without a node was deleted at about the same time"
_FAILED: Final = "an attempt about another pod failed at about the same time"


class Feed:
    """The changes seen in a live cluster, and the decisions they lead to.

    Parameters
    ----------
    inputs
        The configuration and its plugins, over no objects.
    clock
        The time of the live cluster.
    configuration
        Where the configuration comes from, in words.
    on_comparison
        Takes every comparison as well; None without another reader.
    follows_course
        Whether the configuration's own course is followed.

    Attributes
    ----------
    beside
        Compares.
    tally
        The counts.
    course
        The own course, from `begin_comparing` on; None before, or where none is followed.
    pods, nodes, others
        Take in watch events; `others` by the name of the lister.
    """

    def __init__(
        self,
        inputs: ClusterInputs,
        clock: Clock,
        *,
        configuration: str,
        on_comparison: Callable[[Comparison], None] | None = None,
        follows_course: bool = True,
    ) -> None:
        self._inputs = inputs
        self._clock = clock
        self._configuration = configuration
        self._on_comparison = on_comparison
        self._follows_course = follows_course
        self._started_ns = clock.now_ns()
        self.tally = Tally()
        self.beside = DecisionComparer(inputs, self._take_comparison)
        self._left_pending = LeftPending(self.beside, self._take_comparison)
        self.course: ShadowCluster | None = None
        self.begun = False
        self.pods = PodFeed(self)
        self.replay = Replay(self.beside.order, self.pods.take_binding)
        self.nodes = NodeFeed(self)
        self.others = {name: OtherFeed(self, name) for name in self.beside.half.others}

    def begin_comparing(self, objects: Mapping[str, Mapping[Any, ApiObject]]) -> None:
        """Begin to compare: the first lists are in.

        Parameters
        ----------
        objects
            The listed objects of the other kinds, by the name of their lister.
        """
        self.pass_time()
        self._started_ns = self._clock.now_ns()
        self.beside.begin_comparing()
        if self._follows_course:
            self.course = ShadowCluster(self._world_now(objects))
        self.begun = True

    def pass_time(self) -> None:
        """Take over the time of the live cluster."""
        clock = self.beside.half.clock
        clock.advance_ns(max(0, self._clock.now_ns() - clock.now_ns()))

    def tick(self) -> None:
        """Let what is due happen: differences that stay are reported, the own course goes on."""
        self.pass_time()
        self.replay.release(self.beside.shadow_now_ns)
        self.beside.close()
        if self.begun:
            self._left_pending.look()
        if self.course is not None:
            self.course.pass_time(self._clock.now_ns())

    def report(self) -> Report:
        """Return the report; differences that are still open count as differences."""
        self.tick()
        self.replay.release(self.beside.shadow_now_ns, every=True)
        self.beside.close(every=True)
        self._left_pending.close()
        return self.tally.report(
            started=rfc3339_micro(self._started_ns),
            ended=rfc3339_micro(self._clock.now_ns()),
            configuration=self._configuration,
            profiles=tuple(sorted(self.beside.half.core.profiles)),
            courses=self._courses(),
        )

    def real_fullness(self) -> Fullness:
        """Return how full the live cluster is."""
        core = self.beside.half.core
        pending = sum(
            not pod.spec.node_name and self.beside.serves(pod) for pod in core.store.all_pods()
        )
        return fullness_of(core.snapshot, pending=pending)

    def _courses(self) -> Courses | None:
        if self.course is None:
            return None
        counts = self.course.counts
        return Courses(
            real=self.real_fullness(),
            own=self.course.fullness(),
            own_bound=counts["bound"],
            own_evicted=counts["evicted"],
            own_lost=counts["lost"],
        )

    def _take_comparison(self, comparison: Comparison) -> None:
        self.tally.add(comparison)
        if self._on_comparison is not None:
            self._on_comparison(comparison)

    def _world_now(self, objects: Mapping[str, Mapping[Any, ApiObject]]) -> ClusterInputs:
        """Return the live cluster as a model."""
        core, now_objects = self.beside.half.core, ClusterObjects()
        now_objects.nodes = {
            core.snapshot.names[row]: core.snapshot.node(row)
            for row in range(core.snapshot.num_nodes)
        }
        for pod in core.store.all_pods():
            now_objects.put_pod(pod)
        now_objects.succeeded = core.snapshot.groups.succeeded.all_pods()
        for name, listed in objects.items():
            now_objects.lister(name).update(listed)
        return ClusterInputs(
            objects=now_objects,
            registry=self._inputs.registry,
            config=self._inputs.config,
            seed=self._inputs.seed,
            now_ns=self._clock.now_ns(),
        )


class _Handler:
    """The common part of the handlers: the ingest is told last."""

    def __init__(self, feed: Feed, ingest: Any) -> None:
        self._feed = feed
        self._ingest = ingest

    @property
    def _course(self) -> ShadowCluster | None:
        return self._feed.course

    def on_synced(self) -> None:
        """Note that the first list is in."""
        self._ingest.on_synced()

    def on_undecodable(self, key: tuple[str, str], problem: DecodeError) -> None:
        """Report an object that cannot be read."""
        self._ingest.on_undecodable(key, problem)


class PodFeed(_Handler):
    """Takes in pods: a pod that gets a node was bound by the real scheduler."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(feed, feed.beside.half.pods)
        self._store = feed.beside.half.core.store

    def on_add(self, pod: Pod) -> None:
        """Take in a pod that appeared."""
        rank = self._next_event()
        beside = self._feed.beside
        self._ingest.on_add(pod)
        if not pod.spec.node_name:
            beside.appeared(pod)
        elif self._feed.begun:
            if beside.serves(pod):
                beside.unseen(pod)
            self._compare_change(None, self._info(pod), rank)
        self._appear(pod)

    def on_update(self, old: Pod, new: Pod) -> None:
        """Take in a changed pod; a binding is taken in when its turn has come."""
        rank = self._next_event()
        replay, beside = self._feed.replay, self._feed.beside
        if replay.newest(new.uid) is not None:
            replay.change(new)
            return
        before = self._info(new)
        if before is None or before.pod.spec.node_name or not new.spec.node_name:
            self._update(before, old, new, rank)
            return
        turn = beside.order.turn_of(new.uid)
        if turn is None or not self._feed.begun:
            self._update(before, old, new, rank)
            return
        binding = Binding(before, new.spec.node_name, turn, rank, beside.shadow_now_ns)
        beside.binding_shown(binding)
        if beside.serves(before.pod):
            replay.add(binding, new)
        else:
            self.take_binding(binding, new)
        replay.release(beside.shadow_now_ns)

    def take_binding(self, binding: Binding, newest: Pod, *, overtook: bool = False) -> None:
        """Compare a binding, then take it in with the newest version of its pod."""
        before = binding.pod.pod
        self._feed.beside.bound(binding, overtook=overtook)
        self._feed.beside.order.forget(before.uid)
        self._ingest.on_update(before, newest)
        if self._course is not None and self._readable(newest):
            self._course.change(before, newest)

    def on_delete(self, pod: Pod, *, missed: bool) -> None:
        """Take in that a pod is gone, or finished."""
        rank = self._next_event()
        replay, beside = self._feed.replay, self._feed.beside
        replay.gone(pod.uid)
        before = self._info(pod)
        if before is not None and before.pod.spec.node_name:
            self._compare_change(before, None, rank)
        elif before is not None:
            beside.uncertain(_DELETED)  # the real scheduler may have had a node for it
        self._ingest.on_delete(pod, missed=missed)
        if self._course is not None:
            self._course.end_pod(pod)
        replay.release(beside.shadow_now_ns)

    def _update(self, before: PodInfo | None, old: Pod, new: Pod, rank: int) -> None:
        """Take in a change that is no binding to compare."""
        replay, beside = self._feed.replay, self._feed.beside
        self._ingest.on_update(old, new)
        if before is None:
            if not new.spec.node_name:
                beside.appeared(new)
            self._appear(new)
            return
        if new.spec.node_name:
            beside.order.forget(new.uid)
            if _weight(before.pod) != _weight(new):
                self._compare_change(before, self._info(new), rank)
        else:
            self._rejected(before.pod, new)
        if self._course is not None and self._readable(new):
            self._course.change(before.pod, new)
        replay.release(beside.shadow_now_ns)

    def _rejected(self, before: Pod, new: Pod) -> None:
        """Note what a change of a pod without a node says about the real decisions."""
        if before.status.nominated_node_name != new.status.nominated_node_name:
            self._feed.beside.uncertain(_NOMINATED)
        condition = next((each for each in new.status.conditions if each.type == _TRIED), None)
        if condition is None or condition.status != "False":
            return
        self._feed.replay.rejected(new.uid)
        if condition.reason not in _REJECTIONS and condition not in before.status.conditions:
            self._feed.beside.uncertain(_FAILED)

    def _next_event(self) -> int:
        """Take over the time, and return the rank of this watch event."""
        self._feed.pass_time()
        return self._feed.beside.order.next_rank() if self._feed.begun else BEFORE_THE_FIRST_LIST

    def _info(self, pod: Pod) -> PodInfo | None:
        return self._store.info(pod.metadata.namespace, pod.metadata.name)

    def _compare_change(self, before: PodInfo | None, after: PodInfo | None, rank: int) -> None:
        if before is not None or after is not None:
            beside = self._feed.beside
            beside.moments.pod_changed(before, after, rank=rank, at_ns=beside.shadow_now_ns)

    def _appear(self, pod: Pod) -> None:
        if self._course is not None and self._readable(pod):
            self._course.appear(pod)

    def _readable(self, pod: Pod) -> bool:
        """Whether the ingest has taken this version in."""
        return self._store.get(pod.metadata.namespace, pod.metadata.name) is pod


class NodeFeed(_Handler):
    """Takes in nodes."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(feed, feed.beside.half.nodes)

    def on_add(self, node: Node) -> None:
        """Take in a node that appeared."""
        self._feed.pass_time()
        self._feed.beside.node_changed()
        self._ingest.on_add(node)
        self._put_node(node)

    def on_update(self, old: Node, new: Node) -> None:
        """Take in a changed node; heartbeats change nothing that matters."""
        self._feed.pass_time()
        changed = _decisive(old) != _decisive(new)
        if changed:
            self._feed.beside.node_changed()
        self._ingest.on_update(old, new)
        if changed or old.status.images != new.status.images:
            self._put_node(new)

    def on_delete(self, node: Node, *, missed: bool) -> None:
        """Take in that a node is gone."""
        self._feed.pass_time()
        self._feed.beside.node_changed()
        self._ingest.on_delete(node, missed=missed)
        if self._course is not None and node.name in self._course.objects.nodes:
            self._course.remove_node(node.name)

    def _put_node(self, node: Node) -> None:
        if self._course is None:
            return
        try:
            self._course.put_node(checked_node(node))
        except ValueError:
            return  # the ingest has reported it


class OtherFeed(_Handler):
    """Takes in the objects of any other kind."""

    def __init__(self, feed: Feed, lister: str) -> None:
        super().__init__(feed, feed.beside.half.others[lister])
        self._lister = lister
        self._claims = _CLAIMS.get(lister, "")

    def on_add(self, obj: ApiObject) -> None:
        """Take in an object that appeared."""
        self._feed.pass_time()
        self._ingest.on_add(obj)
        if self._course is not None:
            self._course.put_object(self._lister, (obj.namespace, obj.name), obj)

    def on_update(self, old: ApiObject, new: ApiObject) -> None:
        """Take in a changed object."""
        self._feed.pass_time()
        if self._claims:
            self._feed.beside.claim_changed(self._claims, new.namespace, new.name)
        self._ingest.on_update(old, new)
        if self._course is not None:
            self._course.put_object(self._lister, (new.namespace, new.name), new)

    def on_delete(self, obj: ApiObject, *, missed: bool) -> None:
        """Take in that an object is gone."""
        self._feed.pass_time()
        if self._claims:
            self._feed.beside.claim_gone(self._claims, obj.namespace, obj.name)
        self._ingest.on_delete(obj, missed=missed)
        if self._course is not None:
            self._course.remove(self._lister, (obj.namespace, obj.name))


def _weight(pod: Pod) -> tuple[object, ...]:
    """Return what decisions about other pods depend on."""
    return pod.metadata.labels, pod.metadata.deletion_timestamp, pod.spec


def _decisive(node: Node) -> tuple[object, ...]:
    """Return what decisions depend on, besides images."""
    spec, status = node.spec, node.status
    return spec.unschedulable, spec.taints, status.allocatable, node.metadata.labels
