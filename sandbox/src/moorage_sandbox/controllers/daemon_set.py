"""Daemon sets: one pod on each eligible node.

``daemon_steps`` decides the steps; this module watches and writes.

Rules: kubernetes v1.36 pkg/controller/daemon.
"""

from __future__ import annotations

from typing import Final

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import DAEMON_SETS, NODES, PODS
from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import MoorageError
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, ControllerInputs, reference
from moorage.workloads.daemon_steps import (
    REVISION_LABEL,
    Placement,
    Plan,
    place,
    pod_of,
    roll,
    status_due,
)
from moorage.workloads.objects import ViewedPod, Whole
from moorage.workloads.replicas import min_ready_seconds, next_available
from moorage.workloads.revisions import Revision
from moorage_sandbox.controllers.pod_control import PodControl
from moorage_sandbox.controllers.revisions import Revisions

_BURST: Final = 250  # pods created or deleted in one go, as upstream
_PAUSE_SECONDS_MAX: Final = 900  # between two failures on a node, as upstream


class DaemonSetController(Controller):
    """Keeps the pods of daemon sets."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="daemonset-controller", resource=DAEMON_SETS)
        self._sets = around.views.view_of(DAEMON_SETS, Whole)
        self._nodes = around.views.view_of(NODES, Node)
        pods = around.views.view_of(PODS, ViewedPod)
        self._control = PodControl(self, self._sets, pods)
        self._revisions = Revisions(self, around, hash_label=REVISION_LABEL)
        # (set, node) -> (number of failures, monotonic time of the next pod, the failed pod).
        self._failures: dict[tuple[str, str], tuple[int, int, str]] = {}
        self.follow(self._sets)
        self._nodes.tell(self._node_changed)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        """Queue all sets when a node changed in a field that placement depends on."""
        if old is not None and new is not None:
            same = old.metadata.labels == new.metadata.labels
            if same and old.spec.taints == new.spec.taints:
                return
        for key in self._sets.objects:
            self.queue.add(key)

    async def sync(self, key: Key) -> float | None:
        """Create and delete pods, then write the status."""
        daemon_set = self._sets.objects.get(key)
        if daemon_set is None:
            self._control.expectations.forget(key)
            live_uids = {each.metadata.uid for each in self._sets.objects.values()}
            self._failures = {k: v for k, v in self._failures.items() if k[0] in live_uids}
            return None
        pods = await self._control.claim(daemon_set)
        if daemon_set.metadata.deletion_timestamp is not None:
            return None
        history = await self._revisions.ensure_newest(daemon_set)
        revision = _hash_of(history.update)
        nodes = [self._nodes.objects[each] for each in sorted(self._nodes.objects)]
        now_ns = self.clock.now_ns()
        failure: MoorageError | None = None
        if self._control.expectations.fulfilled(key):
            try:
                await self._carry_out(
                    daemon_set, self._plan(daemon_set, nodes, pods, revision), revision
                )
            except MoorageError as problem:
                failure = problem
        await self.write_status(daemon_set, status_due(daemon_set, nodes, pods, revision, now_ns))
        if failure is not None:
            raise failure
        live = {pod.metadata.labels.get(REVISION_LABEL) for pod in pods}
        names = {each.name for each in history.every if _hash_of(each) in live}
        await self._revisions.tidy(daemon_set, history, names | {history.update.name})
        return next_available(pods, min_ready_seconds(daemon_set), now_ns)

    def _plan(self, daemon_set: Whole, nodes: list[Node], pods: list[Pod], revision: str) -> Plan:
        """Return the pods to create and delete; outdated pods only when the numbers are right."""
        now_ns = self.clock.now_ns()
        plan = place(daemon_set, nodes, pods, now_ns)
        if plan.create or plan.delete or plan.failed:
            return plan
        if (daemon_set.spec.get("updateStrategy") or {}).get("type") == "OnDelete":
            return plan
        placement = Placement(daemon_set)
        wanted = [node.name for node in nodes if placement.should_run(node)]
        return roll(daemon_set, pods, wanted, revision, now_ns)

    async def _carry_out(self, daemon_set: Whole, plan: Plan, revision: str) -> None:
        due = [pod for pod in plan.failed if self._may_replace(daemon_set, pod)]
        for pod in due:
            text = f"Found failed daemon pod {pod.namespace}/{pod.name} on node "
            text += f"{pod.spec.node_name}, will try to kill it"
            related = reference(pod, PODS)
            self.emit_event(daemon_set, "FailedDaemonPod", text, kind="Warning", related=related)
        await self._control.delete_pods(daemon_set, [*due, *plan.delete][:_BURST])
        bodies = [pod_of(daemon_set, name, revision) for name in plan.create[:_BURST]]
        await self._control.create_pods(daemon_set, bodies)

    def _may_replace(self, daemon_set: Whole, pod: Pod) -> bool:
        """Whether a failed pod may be replaced now; each failure on a node lengthens the pause."""
        where = (daemon_set.metadata.uid, pod.spec.node_name)
        count, until_ns, uid = self._failures.get(where, (0, 0, ""))
        now_ns = self.clock.monotonic_ns()
        if uid != pod.metadata.uid:
            # A pod that was not seen failing before. Failures of long ago no longer count.
            if now_ns > until_ns + 2 * _PAUSE_SECONDS_MAX * NS_PER_SECOND:
                count = 0
            pause = min(2**count, _PAUSE_SECONDS_MAX) if count else 0
            until_ns = now_ns + pause * NS_PER_SECOND
            self._failures[where] = (count + 1, until_ns, pod.metadata.uid)
        if now_ns < until_ns:
            key = (daemon_set.namespace, daemon_set.name)
            self.queue.add_after(key, (until_ns - now_ns) / NS_PER_SECOND)
            return False
        return True


def _hash_of(revision: Revision) -> str:
    return revision.metadata.labels.get(REVISION_LABEL, "")
