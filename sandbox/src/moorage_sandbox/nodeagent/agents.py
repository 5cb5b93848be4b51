"""The node agents: two watches, one heap of timers and a few writers serve all nodes.

``sandbox`` and the command ``moorage nodes`` run this. ``pod_life`` decides what happens to pods;
this module passes in versions and moments, and writes the effects. There is no task per node or
pod.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from moorage.api.codec import from_dict, to_dict
from moorage.api.meta import ObjectReference, PartialObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import LEASES, NAMESPACES, NODES, PODS
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import (
    ApiError,
    ConflictError,
    MoorageError,
    NotFoundError,
)
from moorage.base.rng import Streams
from moorage.client.event_series import EventNote
from moorage.client.events import EventRecorder
from moorage.client.follow import Follower
from moorage.client.reflector import Reflector
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.writes import Client
from moorage.nodeshapes.templates import NodeTemplate, name_of, template_of
from moorage_sandbox.nodeagent import node_bodies
from moorage_sandbox.nodeagent.extended_resources import allocatable_changes, reserved_in
from moorage_sandbox.nodeagent.pod_life import Complain, PatchPod, PodEffect, PodLife, RemovePod
from moorage_sandbox.nodeagent.pressure import EVICT_SECONDS, pressures_of
from moorage_sandbox.nodeagent.timers import Timers
from moorage_sandbox.nodeagent.writers import KeyedWriters, worth_repeating

_log = logging.getLogger(__name__)


_LEASE_FACTOR = 4  # a lease lasts four renewals, as a kubelet's
_HEARTBEAT_SECONDS = 300
_COMPARE_SECONDS = 10  # nodeStatusUpdateFrequency of a kubelet
_LEASE, _HEARTBEAT, _EVICTION = "lease", "heartbeat", "eviction"


class NodeAgents:
    """Plays kubelet for a list of nodes.

    Parameters
    ----------
    client
        Verbs of the server to register with.
    nodes
        Templates of the nodes, as ``templates`` makes them.
    renew_seconds
        How often a lease is renewed; it lasts four times as long. The default is a kubelet's.
        Thousands of nodes may renew less often if no node controller requires a renewal within 40
        seconds.
    adopt
        Says of a node of another client whether it is played as well; None to play no such node.

    Attributes
    ----------
    registered
        Set once every node is registered and its pods are watched.
    """

    def __init__(
        self,
        client: Client,
        nodes: Sequence[NodeTemplate],
        *,
        clock: Clock,
        streams: Streams,
        renew_seconds: int = 10,
        adopt: Callable[[Node], bool] | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._streams = streams
        rng = streams.stream("nodeagent")
        self._rng = rng
        now_ns = clock.now_ns()
        self._bodies = {
            name_of(template): node_bodies.node_object(template, index=index, now_ns=now_ns)
            for index, template in enumerate(nodes)
        }
        found = {name_of(template): reserved_in(template) for template in nodes}
        # Only nodes that reserve something.
        self._reserved = {name: reserved for name, reserved in found.items() if reserved}
        self._nodes = {name: from_dict(Node, body) for name, body in self._bodies.items()}
        # Names of the templates: their agents run on when the node is deleted.
        self._own = frozenset(self._bodies)
        self._next_index = len(self._bodies)
        self._life = PodLife(self._nodes)
        # Name of a node that is not played yet -> uid -> pod.
        self._homeless: dict[str, dict[str, Pod]] = {}
        self._timers: Timers[tuple[str, str]] = Timers()
        self._writers = KeyedWriters(clock=clock, rng=rng)
        self._recorder = EventRecorder(client, host="moorage", clock=clock, rng=rng)
        self._renew_seconds = renew_seconds
        self._adopt_if = adopt
        self._wake = asyncio.Event()
        self.registered = asyncio.Event()

    async def run(self) -> None:
        """Register the nodes, then keep them and their pods alive until cancelled.

        Raises
        ------
        ApiError
            The server refused a node (credentials, an invalid object); nothing is running then.
        Exception
            A task failed; the others are stopped, too.
        """
        await aio.together(self._writers.run(), self._recorder.run(), self._play())

    async def _play(self) -> None:
        await self._register_all()
        nodes, pods = self._reflectors()
        await aio.together(nodes.run(), self._watch_pods(nodes, pods), self._keep_time(pods))

    async def _watch_pods(self, nodes: Reflector[Node], pods: Reflector[Pod]) -> None:
        """Watch pods once the server's versions of their nodes are known."""
        await nodes.synced.wait()
        await pods.run()

    def _reflectors(self) -> tuple[Reflector[Node], Reflector[Pod]]:
        nodes = Reflector(
            self._client.transport,
            NODES,
            Node,
            handler=Follower(self._node_seen, self._node_gone),
            clock=self._clock,
            rng=self._streams.stream("nodeagent/nodes"),
        )
        pods = Reflector(
            self._client.transport,
            PODS,
            Pod,
            handler=Follower(self._pod_seen, self._pod_gone),
            clock=self._clock,
            rng=self._streams.stream("nodeagent/pods"),
            field_selector="spec.nodeName!=",
        )
        return nodes, pods

    # --- told by the watches ----------------------------------------------------------------

    def _node_seen(self, node: Node) -> None:
        if node.name in self._nodes:
            self._nodes[node.name] = node
            self._life.on_node(node)
            self._offer_resources(node)
            self._follow_pressure(node)
            self._answer_doubts(node)
        elif node.name in self._own or (self._adopt_if is not None and self._adopt_if(node)):
            self._adopt(node)

    def _offer_resources(self, node: Node) -> None:
        """Make the extended resources allocatable that a client added to a node's capacity."""
        reserved = self._reserved.get(node.name, {})
        changes = allocatable_changes(node.status, reserved)
        if changes:
            patch: dict[str, object] = {"status": {"allocatable": changes}}
            self._writers.submit(node.name, partial(self._patch_status, node.name, patch))

    def _follow_pressure(self, node: Node) -> None:
        """Report the pressure that a node's annotations set, and start evictions."""
        if node_bodies.pressures_moved(node):
            reported = node_bodies.conditions(node, now_ns=self._clock.now_ns())
            patch: dict[str, object] = {"status": {"conditions": reported}}
            self._writers.submit(node.name, partial(self._patch_status, node.name, patch))
        if pressures_of(node) and self._timers.due_ns((node.name, _EVICTION)) is None:
            self._set_timer(node.name, _EVICTION, EVICT_SECONDS)

    def _answer_doubts(self, node: Node) -> None:
        """Report soon where the node controller took the node for dead.

        Notes
        -----
        Kubernetes v1.36 pkg/kubelet/kubelet_node_status.go: a kubelet compares what it reports with
        the API every ten seconds (nodeStatusUpdateFrequency).
        """
        if not any(each.status == "Unknown" for each in node.status.conditions):
            return
        soon_ns = self._clock.now_ns() + _COMPARE_SECONDS * NS_PER_SECOND
        due_ns = self._timers.due_ns((node.name, _HEARTBEAT))
        if due_ns is not None and due_ns > soon_ns:
            self._set_timer(node.name, _HEARTBEAT, _COMPARE_SECONDS)

    def _evict(self, name: str) -> None:
        """Evict a pod if the node is still under pressure, and schedule the next eviction."""
        if pressures_of(self._nodes[name]):
            self._carry_out(self._life.evict(name, now_ns=self._clock.now_ns()))
            self._set_timer(name, _EVICTION, EVICT_SECONDS)

    def _adopt(self, node: Node) -> None:
        """Play a node of another client, and its pods."""
        template = template_of(to_dict(node))
        index, now_ns = self._next_index, self._clock.now_ns()
        self._next_index += 1
        self._bodies[node.name] = node_bodies.node_object(template, index=index, now_ns=now_ns)
        self._reserved[node.name] = reserved_in(template)
        self._nodes[node.name] = node
        self._life.add_node(node)
        self._writers.submit(node.name, partial(self._take_over, node.name))
        for pod in self._homeless.pop(node.name, {}).values():
            self._pod_seen(pod)

    def _node_gone(self, node: Node) -> None:
        """Write no more about a deleted node, and forget it.

        A kubelet registers only when it starts, so a deleted node stays away. Its pods keep
        running until they are deleted, too.

        Notes
        -----
        Kubernetes v1.36 pkg/kubelet/kubelet_node_status.go, registerWithAPIServer.
        """
        if self._nodes.pop(node.name, None) is None:
            return
        del self._bodies[node.name]
        self._reserved.pop(node.name, None)
        for what in (_LEASE, _HEARTBEAT, _EVICTION):
            self._timers.cancel((node.name, what))
        self._life.remove_node(node.name)

    def _pod_seen(self, pod: Pod) -> None:
        if self._adopt_if is not None and not self._life.plays(pod.spec.node_name):
            self._homeless.setdefault(pod.spec.node_name, {})[pod.uid] = pod
            return
        self._carry_out(self._life.on_pod(pod, now_ns=self._clock.now_ns()))

    def _pod_gone(self, pod: Pod) -> None:
        waiting = self._homeless.get(pod.spec.node_name, {})
        if waiting.pop(pod.uid, None) is not None and not waiting:
            del self._homeless[pod.spec.node_name]
        if self._life.on_gone(pod):
            self._wake.set()

    # --- time -------------------------------------------------------------------------------

    async def _keep_time(self, pods: Reflector[Pod]) -> None:
        """Run the timers that are due, then sleep until the next one or until a timer changes."""
        await pods.synced.wait()
        self.registered.set()
        while True:
            now_ns = self._clock.now_ns()
            self._carry_out(self._life.on_due(now_ns))
            for name, what in self._timers.pop_due(now_ns):
                self._beat(name, what)
            self._wake.clear()
            moments = [self._life.next_due_ns(), self._timers.next_due_ns()]
            due_ns = min((moment for moment in moments if moment is not None), default=None)
            wait = None if due_ns is None else max(0, due_ns - self._clock.now_ns())
            try:
                async with asyncio.timeout(None if wait is None else wait / NS_PER_SECOND):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _beat(self, name: str, what: str) -> None:
        if what == _EVICTION:
            self._evict(name)
            return
        beat = self._renew_lease if what == _LEASE else self._heartbeat
        self._writers.submit(name, partial(beat, name))

    def _set_timer(self, name: str, what: str, seconds: float) -> None:
        if name not in self._nodes:
            return  # deleted while its last write went out
        self._timers.set((name, what), self._clock.now_ns() + round(seconds * NS_PER_SECOND))
        self._wake.set()

    # --- pods -------------------------------------------------------------------------------

    def _carry_out(self, effects: Iterable[PodEffect]) -> None:
        for effect in effects:
            if isinstance(effect, PatchPod):
                self._writers.submit(effect.pod.uid, partial(self._patch_pod, effect))
            elif isinstance(effect, RemovePod):
                self._writers.submit(effect.pod.uid, partial(self._remove_pod, effect))
            else:
                self._complain(effect)
        self._wake.set()

    async def _patch_pod(self, effect: PatchPod) -> None:
        """Report the status of a pod; a version that was not seen is read before.

        Another client may have given the pod a terminal phase, which no report may replace.

        Notes
        -----
        Kubernetes v1.36 pkg/kubelet/status/status_manager.go, syncPod: a kubelet reads the pod
        before each write. Here the version is a precondition, so most reports are one call.
        """
        pod = effect.pod
        try:
            while (patch := self._life.patch_of(effect)) is not None:
                try:
                    await self._write_status(pod, patch)
                except ConflictError:
                    newest = from_dict(
                        Pod, await self._client.get(PODS, pod.name, namespace=pod.namespace)
                    )
                    if newest.uid != pod.uid:
                        return
                    self._carry_out(self._life.on_read(newest, now_ns=self._clock.now_ns()))
                    if self._life.patch_of(effect) == patch:
                        raise  # about the newest version: the writer waits, and tries again
                else:
                    return
        except NotFoundError:
            _log.info("pod %s/%s is gone", pod.namespace, pod.name)

    async def _write_status(self, pod: ObjectReference, patch: Mapping[str, object]) -> None:
        written = await self._client.patch(
            PODS, pod.name, patch_body(patch), namespace=pod.namespace, subresource="status"
        )
        version = from_dict(PartialObject, written).metadata.resource_version
        self._life.on_written(pod.uid, version)

    async def _remove_pod(self, effect: RemovePod) -> None:
        try:
            await self._client.delete_pod(effect.pod, grace_seconds=0, check_uid=True)
        except ConflictError:
            _log.info("pod %s/%s is another one now", effect.pod.namespace, effect.pod.name)

    def _complain(self, effect: Complain) -> None:
        self._recorder.record_event(
            EventNote(
                regarding=effect.pod,
                controller="kubelet",
                instance=effect.node_name,
                type="Warning",
                reason=effect.reason,
                action=effect.action,
                note=effect.message,
            )
        )

    # --- nodes ------------------------------------------------------------------------------

    async def _register_all(self) -> None:
        self._writers.submit("", self._create_lease_namespace)
        await self._writers.drain()
        refusals: list[ApiError] = []
        for name in self._bodies:
            self._writers.submit(name, partial(self._register_or_note, name, refusals))
        await self._writers.drain()
        if refusals:
            raise refusals[0]

    async def _create_lease_namespace(self) -> None:
        metadata = {"name": node_bodies.LEASE_NAMESPACE}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        try:
            await self._client.create(NAMESPACES, namespace)
        except ConflictError:
            return

    async def _register_or_note(self, name: str, refusals: list[ApiError]) -> None:
        try:
            await self._register(name)
        except ApiError as error:
            if not worth_repeating(error):
                refusals.append(error)
            raise

    async def _register(self, name: str) -> None:
        """Create the node, or take over the node that exists already."""
        try:
            created = await self._client.create(NODES, self._bodies[name])
        except ConflictError:
            await self._take_over(name)
            return
        node = from_dict(Node, created)
        if node.status.allocatable:
            await self._start_beats(node)
        else:
            await self._report_node(name)

    async def _take_over(self, name: str) -> None:
        """Give an existing node the labels of its template, and report its status."""
        if name not in self._bodies:
            return  # deleted since
        patch = patch_body(node_bodies.labels_patch(self._bodies[name]))
        try:
            await self._client.patch(NODES, name, patch)
            await self._report_node(name)
        except NotFoundError:
            _log.info("node %s was deleted before its agent reported", name)

    async def _report_node(self, name: str) -> None:
        if name not in self._bodies:
            return  # deleted since
        patch = patch_body(node_bodies.status_patch(self._bodies[name]))
        written = await self._client.patch(NODES, name, patch, subresource="status")
        await self._start_beats(from_dict(Node, written))

    async def _start_beats(self, node: Node) -> None:
        name = node.name
        if name not in self._nodes:
            return  # deleted since
        self._nodes[name] = node
        await self._create_lease(name)
        # Spread the heartbeats, or hundreds of nodes would write in the same instant.
        self._set_timer(name, _LEASE, self._rng.uniform(0, self._renew_seconds))
        self._set_timer(name, _HEARTBEAT, self._rng.uniform(0, _HEARTBEAT_SECONDS))

    async def _create_lease(self, name: str) -> None:
        if name not in self._nodes:
            return  # a lease belongs to a node
        uid = self._nodes[name].metadata.uid
        lease = node_bodies.lease_object(name, node_uid=uid, spec=self._lease_spec(name))
        try:
            await self._client.create(LEASES, lease, namespace=node_bodies.LEASE_NAMESPACE)
        except ConflictError:
            return

    def _lease_spec(self, name: str) -> dict[str, object]:
        seconds = _LEASE_FACTOR * self._renew_seconds
        return node_bodies.lease_spec(name, seconds=seconds, now_ns=self._clock.now_ns())

    async def _renew_lease(self, name: str) -> None:
        """Renew a lease once; the next renewal is scheduled even after a failure."""
        if name not in self._nodes:
            return  # deleted since
        patch = {"spec": self._lease_spec(name)}
        try:
            await self._client.patch(
                LEASES,
                name,
                patch_body(patch),
                namespace=node_bodies.LEASE_NAMESPACE,
                content_type=MERGE_PATCH,
            )
        except NotFoundError:
            await self._create_lease(name)
        except MoorageError as error:
            _log.info("lease of %s: %s", name, error)
        finally:
            self._set_timer(name, _LEASE, self._renew_seconds)

    async def _heartbeat(self, name: str) -> None:
        if name not in self._nodes:
            return  # deleted since
        patch = node_bodies.heartbeat_patch(self._nodes[name], now_ns=self._clock.now_ns())
        # Set before the answer comes: a doubt that is told meanwhile must find the timer.
        self._set_timer(name, _HEARTBEAT, _HEARTBEAT_SECONDS)
        try:
            await self._patch_status(name, patch)
        except MoorageError as error:
            _log.info("heartbeat of %s: %s", name, error)
            self._set_timer(name, _HEARTBEAT, _COMPARE_SECONDS)

    async def _patch_status(self, name: str, patch: Mapping[str, object]) -> None:
        try:
            await self._client.patch(NODES, name, patch_body(patch), subresource="status")
        except NotFoundError:
            _log.info("node %s was deleted; its pods are still looked after", name)
