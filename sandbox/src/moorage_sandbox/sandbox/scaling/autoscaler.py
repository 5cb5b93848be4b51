"""A stand-in for cluster-autoscaler: adds nodes for pending pods, and removes empty nodes.

Its conditions and Events are those of cluster-autoscaler; docs/how-to/grow-and-shrink.md has the
differences. It looks every second, takes the smallest shape that fits, and removes empty nodes
only: no pod is evicted, so annotations such as ``cluster-autoscaler.kubernetes.io/safe-to-evict``
make no difference.
"""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api.codec import from_dict, to_dict
from moorage.api.meta import ObjectReference
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import ConflictError, NotFoundError
from moorage.base.rng import Streams
from moorage.client.event_series import EventNote
from moorage.client.events import EventRecorder
from moorage.client.node_writes import create_nodes
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.writes import Client
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.nodeshapes.new_nodes import highest_number
from moorage.virtual.deciding_half import ClusterInputs
from moorage_sandbox.nodeagent.pod_life import reference
from moorage_sandbox.sandbox.scaling.groups import Bounds, NodeGroup
from moorage_sandbox.sandbox.scaling.growth import Growth, GrowthPlan, NewNode, waits_for_node
from moorage_sandbox.sandbox.scaling.idle import IdleNodes
from moorage_sandbox.sandbox.scaling.removal import load_by_node, newest_first
from moorage_sandbox.sandbox.scaling.resize import delete_node
from moorage_sandbox.sandbox.scaling.watched import WatchedCluster

NAME: Final = "cluster-autoscaler"
TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
_KEEP: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_SCAN_SECONDS: Final = 1.0
# A scan takes at most this part of the time, however large the cluster.
_SCAN_SHARE: Final = 10
_PROVISION_SECONDS_MAX: Final = 900  # max-node-provision-time
_TAINTED_SECONDS: Final = 5  # node-delete-delay-after-taint
_NOT_READY: Final = "node.kubernetes.io/not-ready"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules by which a cluster may grow and shrink.

    Parameters
    ----------
    bounds
        The least and the greatest number of nodes.
    groups
        The groups that new nodes may be of, smallest shape first.
    idle_seconds
        How long a node has to be empty before it is removed.
    config, registry
        The scheduler's configuration and plugins, whose Filters are asked.
    """

    bounds: Bounds
    groups: list[NodeGroup]
    config: LoadedConfiguration
    registry: Registry
    idle_seconds: float = 60.0


class Autoscaler:
    """Keeps a cluster as large as its pods need.

    Parameters
    ----------
    client
        Verbs of the server.
    rules
        The rules of growing and shrinking.
    """

    def __init__(self, client: Client, rules: Rules, *, clock: Clock, streams: Streams) -> None:
        self._client = client
        # No extender is called for a node that is only thought of.
        scheduler = msgspec.structs.replace(rules.config.scheduler, extenders=[])
        self._config = msgspec.structs.replace(rules.config, scheduler=scheduler)
        self._rules = rules
        self._clock = clock
        self._cluster = WatchedCluster(client.transport, clock=clock, streams=streams)
        rng = streams.stream("autoscaler/events")
        self._recorder = EventRecorder(client, host=NAME, clock=clock, rng=rng)
        self._idle = IdleNodes(rules.idle_seconds)
        self._highest = 0
        # Created nodes that were not ready yet -> their template, and when they were created.
        self._upcoming: dict[str, tuple[Node, int]] = {}
        # Nodes tainted before their removal -> when, monotonic nanoseconds.
        self._tainted: dict[str, int] = {}
        # The last plan that creates no nodes, and what it was made from.
        self._planned: tuple[tuple[int, tuple[str, ...]], Growth] | None = None
        # Uid of a pod -> the reasons that its last Event gave.
        self._last_reasons: dict[str, str] = {}

    async def run(self) -> None:
        """Watch the cluster and change it until cancelled.

        Raises
        ------
        ApiError
            The server refused a change.
        """
        await aio.together(self._cluster.run(), self._recorder.run(), self._scan_for_ever())

    async def _scan_for_ever(self) -> None:
        await self._cluster.synced()
        while True:
            began_ns = self._clock.monotonic_ns()
            await self.scan()
            took = (self._clock.monotonic_ns() - began_ns) / NS_PER_SECOND
            await aio.sleep(max(_SCAN_SECONDS, _SCAN_SHARE * took))

    async def scan(self) -> None:
        """Look at the cluster once: add nodes that are needed, remove nodes that are not."""
        self._follow_upcoming()
        growth = self._plan()
        await self._add(growth)
        await self._remove(growth.used)

    # --- growing ------------------------------------------------------------------------------

    def _nodes(self) -> dict[str, Node]:
        """Return the nodes there are, those that are starting as they will be."""
        return self._cluster.objects.nodes | {
            name: template for name, (template, _) in self._upcoming.items()
        }

    def _follow_upcoming(self) -> None:
        """Forget upcoming nodes that are ready, or that do not get ready in time."""
        late_ns = self._clock.monotonic_ns() - _PROVISION_SECONDS_MAX * NS_PER_SECOND
        found = self._cluster.objects.nodes
        for name, (_, created_ns) in [*self._upcoming.items()]:
            if _is_ready(found.get(name)) or created_ns < late_ns:
                del self._upcoming[name]

    def _plan(self) -> Growth:
        nodes, bounds = self._nodes(), self._rules.bounds
        self._highest = max(self._highest, highest_number(nodes))
        pending = [pod for pod in self._cluster.objects.pending_pods if waits_for_node(pod)]
        missing = bounds.least - len(nodes)
        if missing > 0:
            return Growth(self._to_least(missing), [], frozenset())
        if not pending:
            return Growth([], [], frozenset())
        made_from = self._cluster.changes, tuple(self._upcoming)
        if self._planned is None or self._planned[0] != made_from:
            self._planned = made_from, self._grow(pending, nodes)
        return self._planned[1]

    def _grow(self, pending: list[Pod], nodes: dict[str, Node]) -> Growth:
        """Put the deciding half over the cluster's objects, and find nodes for pending pods."""
        objects = self._cluster.objects.copy()
        objects.nodes.update(nodes)
        plan = GrowthPlan(
            ClusterInputs(objects=objects, registry=self._rules.registry, config=self._config),
            self._rules.groups,
            daemon_sets=self._cluster.daemon_sets.values(),
            number=self._highest + 1,
            room=self._rules.bounds.most - len(nodes),
        )
        return plan.grow(pending)

    def _to_least(self, missing: int) -> list[NewNode]:
        """Return the nodes that bring the cluster to its least size: of the smallest shape."""
        smallest = [
            each for each in self._rules.groups if each.shape is self._rules.groups[0].shape
        ]
        first = self._highest + 1
        return [NewNode(first + index, smallest[index % len(smallest)]) for index in range(missing)]

    async def _add(self, growth: Growth) -> None:
        now_ns, before = self._clock.monotonic_ns(), self._nodes()
        for new in growth.nodes:
            template = new.group.template(new.number)
            node = from_dict(Node, template)
            self._upcoming[node.name] = node, now_ns
            self._highest = max(self._highest, new.number)
        await create_nodes(self._client, [new.group.template(new.number) for new in growth.nodes])
        if growth.nodes:
            self._tell_growth(growth, before)
        else:
            self._tell_refused(growth)

    def _tell_growth(self, growth: Growth, before: dict[str, Node]) -> None:
        changes = []
        for group in self._rules.groups:
            added = sum(new.group is group for new in growth.nodes)
            if added:
                size = sum(group.fits_node(node) for node in before.values())
                most = self._rules.bounds.most
                changes.append(f"{{{group.name} {size}->{size + added} (max: {most})}}")
        text = f"pod triggered scale-up: [{' '.join(changes)}]"
        for new in growth.nodes:
            for pod in new.pods:
                self._last_reasons.pop(pod.uid, None)
                self._emit_event(reference(pod), "TriggeredScaleUp", text)

    def _tell_refused(self, growth: Growth) -> None:
        reasons_by_uid = {pod.uid: reasons for pod, reasons in growth.refused}
        for pod, reasons in growth.refused:
            if self._last_reasons.get(pod.uid) != reasons:
                text = f"pod didn't trigger scale-up: {reasons}"
                self._emit_event(reference(pod), "NotTriggerScaleUp", text)
        self._last_reasons = reasons_by_uid

    def _emit_event(self, regarding: ObjectReference, reason: str, text: str) -> None:
        self._recorder.record_event(
            EventNote(
                regarding=regarding,
                controller=NAME,
                instance=NAME,
                type="Normal",
                reason=reason,
                action="Scaling",
                note=text,
            )
        )

    # --- shrinking ----------------------------------------------------------------------------

    async def _remove(self, used: frozenset[str]) -> None:
        """Taint nodes that have been empty for long, and delete tainted nodes that still are."""
        objects, now_ns = self._cluster.objects, self._clock.monotonic_ns()
        loads = load_by_node(objects.pods.values())
        empty = {
            name: node
            for name, node in objects.nodes.items()
            if not loads[name]
            and name not in used
            and node.metadata.annotations.get(_KEEP) != "true"
        }
        due = self._idle.due(empty, now_ns)
        for name, since_ns in [*self._tainted.items()]:
            if name not in empty:
                await self._release(name)
            elif now_ns - since_ns >= _TAINTED_SECONDS * NS_PER_SECOND:
                await self._delete(empty[name])
        left = len(self._nodes()) - len(self._tainted) - self._rules.bounds.least
        waiting = [empty[name] for name in due if name not in self._tainted]
        for node in newest_first(waiting)[: max(0, left)]:
            await self._taint(node)

    async def _taint(self, node: Node) -> None:
        seconds = self._clock.now_ns() // NS_PER_SECOND
        taint: dict[str, object] = {
            "key": TO_BE_DELETED,
            "value": str(seconds),
            "effect": "NoSchedule",
        }
        if await self._write_taints(node, [*_others(node), taint]):
            self._tainted[node.name] = self._clock.monotonic_ns()

    async def _release(self, name: str) -> None:
        """Take the taint from a node that is needed again."""
        del self._tainted[name]
        node = self._cluster.objects.nodes.get(name)
        if node is not None:
            await self._write_taints(node, _others(node))

    async def _write_taints(self, node: Node, taints: list[dict[str, object]]) -> bool:
        """Write the taints of a node, unless it has changed since; return whether it is done."""
        version = node.metadata.resource_version
        body = {"metadata": {"resourceVersion": version}, "spec": {"taints": taints or None}}
        try:
            await self._client.patch(NODES, node.name, patch_body(body), content_type=MERGE_PATCH)
        except (ConflictError, NotFoundError):
            return False
        return True

    async def _delete(self, node: Node) -> None:
        del self._tainted[node.name]
        await delete_node(self._client, node.name)
        self._cluster.objects.nodes.pop(node.name, None)  # the watch tells the same soon
        regarding = ObjectReference(
            api_version="v1", kind="Node", name=node.name, uid=node.metadata.uid
        )
        self._emit_event(regarding, "ScaleDown", "node removed by cluster autoscaler")


def _others(node: Node) -> list[dict[str, object]]:
    """Return the taints of a node but the one of this program."""
    return [to_dict(each) for each in node.spec.taints if each.key != TO_BE_DELETED]


def _is_ready(node: Node | None) -> bool:
    if node is None or any(each.key == _NOT_READY for each in node.spec.taints):
        return False
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
