"""Keeps the objects of a cluster current, for the autoscaler, by watches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from moorage.api.meta import ApiObject, Condition
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import DAEMON_SETS, NODES, PODS, ResourceType
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.follow import Follower
from moorage.client.reflector import Reflector
from moorage.client.transport import Transport
from moorage.service.intake.kinds import WATCHED
from moorage.virtual.objects import ClusterObjects, Key, checked_node, checked_pod
from moorage.workloads.objects import Whole

_FIELDS: Final = "status.phase!=Succeeded,status.phase!=Failed"


class WatchedCluster:
    """The objects of a cluster, as the watches last showed them.

    Attributes
    ----------
    objects
        Nodes, pods that have not finished, and all kinds that a scheduler watches.
    daemon_sets
        DaemonSets by key.
    changes
        How many changes of objects were seen; heartbeats of nodes do not count.
    """

    def __init__(self, transport: Transport, *, clock: Clock, streams: Streams) -> None:
        self._transport, self._clock, self._streams = transport, clock, streams
        self.objects = ClusterObjects()
        self.daemon_sets: dict[Key, Whole] = {}
        self.changes = 0
        objects = self.objects
        self._reflectors = [
            self._reflector(
                NODES, Node, self._node_seen, lambda o: objects.nodes.pop(o.name, None)
            ),
            self._reflector(
                PODS, Pod, self._pod_seen, lambda o: objects.drop_pod(_key(o)), fields=_FIELDS
            ),
            self._in(DAEMON_SETS, Whole, self.daemon_sets),
            *(self._in(each.resource, each.type_, objects.lister(each.lister)) for each in WATCHED),
        ]

    async def run(self) -> None:
        """Watch until cancelled."""
        await aio.together(*(each.run() for each in self._reflectors))

    async def synced(self) -> None:
        """Wait for the first lists."""
        for each in self._reflectors:
            await each.synced.wait()

    def _node_seen(self, node: Node) -> None:
        before = self.objects.nodes.get(node.name)
        try:
            self.objects.nodes[node.name] = checked_node(node)
        except ValueError:
            self.objects.nodes.pop(node.name, None)  # the scheduler leaves it alone, too
        if before is None or _lasting(before) != _lasting(node):
            self.changes += 1

    def _pod_seen(self, pod: Pod) -> None:
        self.changes += 1
        try:
            self.objects.put_pod(checked_pod(pod))
        except ValueError:
            self.objects.drop_pod(_key(pod))

    def _in(
        self, resource: ResourceType, kind: type[Any], objects: dict[Key, Any]
    ) -> Reflector[Any]:
        def put_object(obj: Any) -> None:
            self.changes += 1
            objects[_key(obj)] = obj

        return self._reflector(resource, kind, put_object, lambda obj: objects.pop(_key(obj), None))

    def _reflector(
        self,
        resource: ResourceType,
        kind: type[Any],
        on_object: Callable[[Any], None],
        gone: Callable[[Any], object],
        *,
        fields: str = "",
    ) -> Reflector[Any]:
        def dropped(obj: Any) -> None:
            self.changes += 1
            gone(obj)

        return Reflector(
            self._transport,
            resource,
            kind,
            handler=Follower(on_object, dropped),
            clock=self._clock,
            rng=self._streams.stream(f"autoscaler/{resource.plural}"),
            field_selector=fields,
            optional=resource not in (NODES, PODS),
        )


def _key(obj: ApiObject) -> Key:
    return obj.metadata.namespace or "", obj.metadata.name


def _lasting(node: Node) -> Node:
    """Return a node without what every heartbeat changes."""
    metadata = msgspec.structs.replace(node.metadata, resource_version="")
    found = [(each.type, each.status) for each in node.status.conditions]
    conditions = [Condition(type=kind, status=status) for kind, status in found]
    status = msgspec.structs.replace(node.status, conditions=conditions)
    return msgspec.structs.replace(node, metadata=metadata, status=status)
