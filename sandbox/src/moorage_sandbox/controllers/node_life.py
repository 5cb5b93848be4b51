"""Marks silent nodes, taints nodes by condition, and removes pods accordingly.

Three controllers over the same watches: `NodeLifecycle` marks silent nodes and taints nodes by
their conditions, `TaintEviction` deletes pods that do not tolerate a taint, `PodCollector` deletes
pods whose node is gone, and ends pods that are deleted without a node. ``node_steps`` decides the
taints and evictions.

Rules: kubernetes v1.36 pkg/controller/{nodelifecycle,tainteviction,podgc}. One difference: a node
without a heartbeat since the controller's start is left alone. So nodes without an agent (from a
snapshot of another cluster, or created by hand) keep their pods.
"""

from __future__ import annotations

from typing import Final

from moorage.api.lease import Lease
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import LEASES, NODES, PODS
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.base.errors import ConflictError, NotFoundError
from moorage.client.objects import Key, key_of
from moorage.client.requests import patch_body
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.controllers.views import View
from moorage.workloads.node_steps import eviction_in, silent_conditions, status_of, taints_due
from moorage.workloads.objects import Json, ViewedPod
from moorage.workloads.pods import is_finished, time_ns

_GRACE_SECONDS: Final = 50  # without a heartbeat (node-monitor-grace-period)
_QUARANTINE_SECONDS: Final = 40.0  # a node may be created again within (podgc)
_LEASE_NAMESPACE: Final = "kube-node-lease"


class PodsByNode:
    """Index of pods by the node they are bound to.

    Parameters
    ----------
    pods
        The watched pods.
    """

    def __init__(self, pods: View[ViewedPod]) -> None:
        self._pods: dict[str, dict[Key, Pod]] = {}
        pods.tell(self._index_change)

    def on(self, node_name: str) -> list[Pod]:
        """Return the pods of a node, by name."""
        found = self._pods.get(node_name, {})
        return [found[key] for key in sorted(found)]

    def _index_change(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and old.spec.node_name:
            found = self._pods.get(old.spec.node_name, {})
            found.pop(key_of(old), None)
            if not found:
                self._pods.pop(old.spec.node_name, None)
        if new is not None and new.spec.node_name:
            self._pods.setdefault(new.spec.node_name, {})[key_of(new)] = new


class NodeLifecycle(Controller):
    """Marks nodes that are silent, and taints nodes by their conditions."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="node-controller", resource=NODES)
        self._nodes = around.views.view_of(NODES, Node)
        self._leases = around.views.view_of(LEASES, Lease)
        # Node -> time of its last heartbeat, monotonic nanoseconds.
        self._heard: dict[str, int] = {}
        self._nodes.tell(self._node_changed)
        self._leases.tell(self._lease_changed)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            assert old is not None
            self._heard.pop(old.name, None)
            return
        if old is not None and _beat(old) != _beat(new) and status_of(new, "Ready") != "Unknown":
            self._heard[new.name] = self.clock.monotonic_ns()
        self.queue.add(key_of(new))

    def _lease_changed(self, old: Lease | None, new: Lease | None) -> None:
        if new is None or new.namespace != _LEASE_NAMESPACE:
            return
        renewed = new.spec.renew_time
        fresh = old is None and self._is_recent(new)
        if fresh or (old is not None and old.spec.renew_time != renewed):
            first = new.name not in self._heard
            self._heard[new.name] = self.clock.monotonic_ns()
            if first:
                self.queue.add(("", new.name))

    def _is_recent(self, lease: Lease) -> bool:
        age_ns = self.clock.now_ns() - time_ns(lease.spec.renew_time)
        return age_ns < self._grace_seconds(lease.name) * NS_PER_SECOND

    def _grace_seconds(self, name: str) -> float:
        lease = self._leases.objects.get((_LEASE_NAMESPACE, name))
        lasts = lease.spec.lease_duration_seconds if lease is not None else None
        # Agents of very many nodes renew less often; their leases carry the longer duration.
        return max(_GRACE_SECONDS, (lasts or 0) + 10)

    async def sync(self, key: Key) -> float | None:
        """Mark a silent node, and set the taints of the node's conditions."""
        node = self._nodes.objects.get(key)
        if node is None:
            return None
        again = await self._listen(node)
        taints = taints_due(node, self.clock.now_ns())
        if taints is not None:
            await self.patch_object(NODES, node, {"spec": {"taints": taints or None}})
        return again

    async def _listen(self, node: Node) -> float | None:
        """Mark a silent node; return the seconds until another node would be silent."""
        heard_ns = self._heard.get(node.name)
        if heard_ns is None:
            return None
        silent = (self.clock.monotonic_ns() - heard_ns) / NS_PER_SECOND
        left = self._grace_seconds(node.name) - silent
        if left > 0:
            return left
        conditions = silent_conditions(node, self.clock.now_ns())
        if conditions is not None:
            body = {"metadata": {"uid": node.metadata.uid}, "status": {"conditions": conditions}}
            await self.client.patch(NODES, node.name, patch_body(body), subresource="status")
            text = f"Node {node.name} status is now: NodeNotReady"
            self.emit_event(node, "NodeNotReady", text)
        return None


def _beat(node: Node) -> str:
    return max((each.last_heartbeat_time or "" for each in node.status.conditions), default="")


class TaintEviction(Controller):
    """Deletes pods that do not tolerate, or no longer tolerate, the taints of their node."""

    def __init__(self, around: ControllerInputs, by_node: PodsByNode) -> None:
        super().__init__(around, name="taint-eviction-controller", resource=PODS)
        self._pods = around.views.view_of(PODS, ViewedPod)
        self._nodes = around.views.view_of(NODES, Node)
        self._by_node = by_node
        # Pod -> when it was first seen with taints that evict it, wall-clock nanoseconds.
        self._since: dict[Key, int] = {}
        self._pods.tell(self._pod_changed)
        self._nodes.tell(self._node_changed)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            assert old is not None
            self._since.pop(key_of(old), None)
        elif new.spec.node_name and (
            old is None
            or old.spec.node_name != new.spec.node_name
            or old.spec.tolerations != new.spec.tolerations
        ):
            self.queue.add(key_of(new))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None or (old is not None and old.spec.taints == new.spec.taints):
            return
        if old is None and not new.spec.taints:
            return
        for pod in self._by_node.on(new.name):
            self.queue.add(key_of(pod))

    async def sync(self, key: Key) -> float | None:
        """Delete a pod whose time on its node is over."""
        pod = self._pods.objects.get(key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return None
        node = self._nodes.objects.get(("", pod.spec.node_name))
        if node is None:
            return None
        now_ns = self.clock.now_ns()
        since_ns = self._since.setdefault(key, now_ns)
        left = eviction_in(pod, node.spec.taints, since_ns, now_ns)
        if left is None:
            del self._since[key]
        if left != 0:
            return left
        text = f"Marking for deletion Pod {pod.namespace}/{pod.name}"
        self.emit_event(pod, "TaintManagerEviction", text)
        text = "Taint manager: deleting due to NoExecute taint"
        condition = disruption(self.clock.now_ns(), "DeletionByTaintManager", text)
        await mark_and_delete(self, pod, {"conditions": [condition]}, grace_seconds=None)
        return None


class PodCollector(Controller):
    """Deletes pods that no node agent will end: of a deleted node, or deleted before binding.

    Notes
    -----
    kubernetes v1.36 pkg/controller/podgc/gc_controller.go: gcOrphaned, gcUnscheduledTerminating.
    """

    def __init__(self, around: ControllerInputs, by_node: PodsByNode) -> None:
        super().__init__(around, name="pod-garbage-collector", resource=PODS)
        self._nodes = around.views.view_of(NODES, Node)
        self._by_node = by_node
        self._nodes.tell(self._node_changed)
        self._pods = around.views.view_of(PODS, ViewedPod)
        self._pods.tell(self._pod_changed)
        # Node -> since when it has been missing, monotonic nanoseconds.
        self._missing: dict[str, int] = {}

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None and old is not None:
            self.queue.add(("", old.name))
        elif new is not None:
            self._missing.pop(new.name, None)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        bound_before = old is not None and old.spec.node_name
        if new is None:
            return
        if new.spec.node_name and not bound_before:
            self.queue.add(("", new.spec.node_name))
        if _ends_unbound(new):
            self.queue.add(key_of(new))

    async def sync(self, key: Key) -> float | None:
        """End a pod that was deleted before its binding, or the pods of a missing node."""
        if not key[0]:
            return await self._collect_orphans(key)
        pod = self._pods.objects.get(key)
        if pod is not None and _ends_unbound(pod):
            # Its finalizer may wait for the phase Failed.
            await mark_and_delete(self, pod, {"phase": "Failed"}, grace_seconds=0)
        return None

    async def _collect_orphans(self, key: Key) -> float | None:
        """Delete the pods of a node that has been missing for a while."""
        name = key[1]
        pods = [] if key in self._nodes.objects else self._by_node.on(name)
        if not pods:
            self._missing.pop(name, None)
            return None
        now_ns = self.clock.monotonic_ns()
        since_ns = self._missing.setdefault(name, now_ns)
        left = _QUARANTINE_SECONDS - (now_ns - since_ns) / NS_PER_SECOND
        if left > 0:
            return left
        for pod in pods:
            status: Json = {}
            if not is_finished(pod):
                text = "PodGC: node no longer exists"
                condition = disruption(self.clock.now_ns(), "DeletionByPodGC", text)
                status = {"phase": "Failed", "conditions": [condition]}
            await mark_and_delete(self, pod, status, grace_seconds=0)
        return None


def _ends_unbound(pod: Pod) -> bool:
    """Whether a pod is being deleted, has no node, and has not ended yet."""
    deleted = pod.metadata.deletion_timestamp is not None
    return deleted and not pod.spec.node_name and not is_finished(pod)


def disruption(now_ns: int, reason: str, message: str) -> Json:
    """Return the condition DisruptionTarget of a pod that a controller deletes."""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": rfc3339(now_ns),
    }


async def mark_and_delete(
    controller: Controller, pod: Pod, status: Json, *, grace_seconds: int | None
) -> None:
    """Write the reason into a pod's status, and delete the pod, if it still exists."""
    client, uid = controller.client, pod.metadata.uid
    try:
        if status:
            body = patch_body({"metadata": {"uid": uid}, "status": status})
            await client.patch(PODS, pod.name, body, namespace=pod.namespace, subresource="status")
        await client.delete(
            PODS, pod.name, namespace=pod.namespace, uid=uid, grace_seconds=grace_seconds
        )
    except (NotFoundError, ConflictError):
        return
