"""History of the API server's objects: what it holds and who wrote it, write by write.

The history sees a write at the moment at which the server makes it, before any watcher. Invariants
ask it, so no part of the cluster is asked to judge itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from moorage.api.resources import (
    CSI_NODES,
    ELASTIC_QUOTAS,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
)
from moorage.base.clock import Clock
from moorage_lab.fault_sim.served import Served
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.watch_log import Change

Obj = dict[str, Any]
FINISHED = frozenset({"Succeeded", "Failed"})

_FOLLOWED = (PODS, NODES, CSI_NODES, ELASTIC_QUOTAS, PERSISTENT_VOLUMES)


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a pod or a node.

    Parameters
    ----------
    at_ns
        Monotonic time, nanoseconds.
    by
        Process that wrote.
    path
        Path of its call.
    resource
        ``pods`` or ``nodes``.
    now, before
        The object after and before; None where there is none.
    """

    at_ns: int
    by: str
    path: str
    resource: str
    now: Obj | None
    before: Obj | None


class Placed(msgspec.Struct, frozen=True):
    """When a pod was bound, and by which process."""

    at_ns: int
    by: str


class History:
    """The pods and nodes of a server, with what happened to them.

    Parameters
    ----------
    served
        The server.
    clock
        Time of the loop.

    Attributes
    ----------
    pods
        Pods by uid, in the order of their creation.
    nodes
        Nodes by name.
    placed
        Of each bound pod, by uid: when, and by whom.
    node_changed_ns
        When each node last came, went, or changed in what a scheduler reads, its CSINode included,
        by name.
    ever_placed
        Uids of the pods that have got a node, those that are gone included.
    pod_gone_ns
        When a bound pod last left, finished or asked for something else, nanoseconds.
    waiting_left_ns
        When a pod without a node last got one, or left, nanoseconds.
    relabelled_ns
        When the labels of each pod changed, by uid, nanoseconds.
    leaving_ns, leaving_before_ns
        When a pod with a node last began to end, and when the one before, nanoseconds.
    quota_changed_ns
        When an elastic quota last came, went or changed, nanoseconds.
    volume_changed_ns
        When a PersistentVolume last came, went or changed, nanoseconds.
    member_gone_ns
        When a member without a node last left each group, by ``namespace/name``, nanoseconds.
    excused_groups
        Groups, by ``namespace/name``, that may be in part on nodes: a member left while one had a
        node, or a scheduler bound a member and may not have known yet that another had left.
    writes_of_others
        Number of changes of pods and nodes that no scheduler made.
    popped_ns
        When a scheduler last took each pod out of its queue, by uid, nanoseconds.
    pops
        Number of pods that schedulers took out of their queues.
    popped_at
        The value of `pops` when each pod was last taken out, by uid; tells the order within a
        moment.
    tried_after
        The pod that its scheduler took out of the queue right before each pod, "" for none, by uid.
    nominated_ns
        When each pod was last nominated to another node than before, by uid, nanoseconds.
    nominated_by
        The process that nominated each pod last, by uid.
    promised_before
        The node that was promised to each pod before the one of now, "" for none, by uid.
    left_ns
        When each pod began to end, by uid, nanoseconds.
    tried_binding
        Uids of the pods that each process tried to bind, by its name, whatever became of it.
    created_ns
        When each pod was made, by uid, nanoseconds.
    first_popped_ns
        When a scheduler first took each pod out of its queue, by uid, nanoseconds.
    evicted
        Uids of the pods that schedulers evicted.
    evicted_on_ns
        When a scheduler last evicted a pod from each node, by name, nanoseconds.
    versions
        Every version of each pod and node, by its ``resourceVersion``.
    last_nodes
        The last version of each node, by name; those that are gone included.
    """

    def __init__(self, served: Served, clock: Clock) -> None:
        self._served = served
        self._clock = clock
        self._versions_read = dict.fromkeys((each.qualified for each in _FOLLOWED), 0)
        self.pods: dict[str, Obj] = {}
        self.nodes: dict[str, Obj] = {}
        self.placed: dict[str, Placed] = {}
        self.node_changed_ns: dict[str, int] = {}
        self.ever_placed: set[str] = set()
        self.pod_gone_ns = 0
        self.waiting_left_ns = 0
        self.relabelled_ns: dict[str, int] = {}
        self.leaving_ns = self.leaving_before_ns = 0
        self.quota_changed_ns = 0
        self.volume_changed_ns = 0
        self.popped_ns: dict[str, int] = {}
        self.pops = 0
        self.popped_at: dict[str, int] = {}
        self.tried_after: dict[str, str] = {}
        self.nominated_ns: dict[str, int] = {}
        self.nominated_by: dict[str, str] = {}
        self.promised_before: dict[str, str] = {}
        self.left_ns: dict[str, int] = {}
        self.tried_binding: dict[str, set[str]] = {}
        self.created_ns: dict[str, int] = {}
        self._pods_named: dict[str, int] = {}
        self.first_popped_ns: dict[str, int] = {}
        self.evicted: set[str] = set()
        self.evicted_on_ns: dict[str, int] = {}
        self.versions: dict[str, Obj] = {}
        self.last_nodes: dict[str, Obj] = {}
        self.member_gone_ns: dict[str, int] = {}
        self.excused_groups: set[str] = set()
        self.writes_of_others = 0

    @property
    def history_now_ns(self) -> int:
        """Monotonic time, nanoseconds."""
        return self._clock.monotonic_ns()

    def server_objects(self, qualified: str) -> dict[tuple[str, str], Obj]:
        """Return the server's objects of a kind by namespace and name, as they are now."""
        objects = {}
        for record in self._served.store.shelf(qualified).records():
            obj = record.decode()
            meta = obj["metadata"]
            objects[meta.get("namespace", ""), meta["name"]] = obj
        return objects

    def reused(self, path: str) -> bool:
        """Return whether several pods have had this path in the API, one after another."""
        return self._pods_named.get(_name_in(path), 0) > 1

    def note_try(self, by: str, path: str) -> Obj | None:
        """Note that a binding is sent, which may fail or be lost; return its pod."""
        *_, namespace, _, name, _ = path.split("/")
        for uid, pod in self.pods.items():
            if (pod["metadata"]["namespace"], pod["metadata"]["name"]) == (namespace, name):
                self.tried_binding.setdefault(by, set()).add(uid)
                return pod
        return None

    def catch_up(self, by: str, path: str) -> list[Write]:
        """Take in what the server wrote since the last look; return it, oldest first."""
        changes: list[tuple[int, str, Any]] = []
        for resource, version in self._versions_read.items():
            log = self._served.store.shelf(resource).log
            for change in log.since(version, 1_000_000) or ():
                changes.append((change.version, resource, change))
                self._versions_read[resource] = change.version
        changes.sort(key=lambda each: each[0])
        return [
            write
            for version, resource, change in changes
            for write in self._taken(
                resource, change, *(self._served.author(version) or (by, path))
            )
        ]

    def begin_anew(self, revived: Iterable[tuple[str, Change, str, str]]) -> list[Write]:
        """Go on with the next server.

        Parameters
        ----------
        revived
            Resource, change, program and path of each write that the next server has and the last
            one had told nobody of.
        """
        writes = [write for each in revived for write in self._taken(*each)]
        self.forget_log()
        return writes

    def _taken(self, resource: str, change: Change, by: str, path: str) -> list[Write]:
        """Take in one change; return it if it is of a pod or a node."""
        deleted = change.type == "DELETED"
        differs = deleted or _spec(change.record) != _spec(change.previous)
        if resource == ELASTIC_QUOTAS.qualified and differs:
            self.quota_changed_ns = self.history_now_ns
        if resource == PERSISTENT_VOLUMES.qualified:
            self.volume_changed_ns = self.history_now_ns
        if resource == CSI_NODES.qualified and differs:
            # A CSINode has the name of its node, and says how many volumes the node takes.
            self.node_changed_ns[change.record.decode()["metadata"]["name"]] = self.history_now_ns
        if resource not in (PODS.qualified, NODES.qualified):
            return []
        write = Write(
            at_ns=self._clock.monotonic_ns(),
            by=by,
            path=path,
            resource=resource,
            now=None if deleted else change.record.decode(),
            before=None if change.previous is None else change.previous.decode(),
        )
        self._take_write(write)
        self.writes_of_others += not by.startswith("scheduler")
        return [write]

    def forget_log(self) -> None:
        """Continue from the newest version told: the server has forgotten what was before."""
        for resource in self._versions_read:
            self._versions_read[resource] = self._served.store.published_version

    def _take_write(self, write: Write) -> None:
        obj = write.now or write.before or {}
        self.versions[obj["metadata"]["resourceVersion"]] = obj
        if write.resource == NODES.qualified:
            self._take_node(write, obj["metadata"]["name"])
            return
        uid = obj["metadata"]["uid"]
        if node_of(obj) and _leaves(write.now) and not _leaves(write.before):
            self.leaving_before_ns, self.leaving_ns = self.leaving_ns, write.at_ns
        if _leaves(write.now) and not _leaves(write.before):
            self.left_ns[uid] = write.at_ns
        if nominated_of(write.now or {}) not in ("", nominated_of(write.before or {})):
            self.nominated_ns[uid] = write.at_ns
            self.nominated_by[uid] = write.by
            self.promised_before[uid] = nominated_of(write.before or {})
        if write.before is None:
            self.created_ns[uid] = write.at_ns
            self._pods_named[name_of(obj)] = self._pods_named.get(name_of(obj), 0) + 1
        if write.now is None:
            self._leaves(uid, write.at_ns)
            return
        if node_of(write.now) and not node_of(write.before or {}):
            self.placed[uid] = Placed(write.at_ns, write.by)
            self.ever_placed.add(uid)
            self.waiting_left_ns = write.at_ns
        before = (write.before or write.now)["metadata"].get("labels")
        if write.now["metadata"].get("labels") != before:
            self.relabelled_ns[uid] = write.at_ns
        resized = write.now["spec"] != (write.before or write.now)["spec"]
        if node_of(write.before or {}) and (is_finished(write.now) or resized):
            self.pod_gone_ns = write.at_ns
        self.pods[uid] = write.now

    def _leaves(self, uid: str, at_ns: int) -> None:
        """Take in that a pod has been removed."""
        gone = self.pods.pop(uid, None)
        for moments in (self.relabelled_ns, self.nominated_ns, self.left_ns, self.popped_ns):
            moments.pop(uid, None)
        self.tried_after.pop(uid, None)
        self.popped_at.pop(uid, None)
        self.placed.pop(uid, None)
        group = group_of(gone or {})
        if gone is not None and node_of(gone):
            self.pod_gone_ns = at_ns
            self.excused_groups.add(group)
            return
        self.waiting_left_ns = self.member_gone_ns[group] = at_ns
        if any(node_of(pod) and group_of(pod) == group for pod in self.pods.values()):
            self.excused_groups.add(group)

    def _take_node(self, write: Write, name: str) -> None:
        if _read(write.now) != _read(write.before):
            self.node_changed_ns[name] = write.at_ns
        if write.now is None:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = self.last_nodes[name] = write.now

    def on_node(self, name: str) -> list[Obj]:
        """Return the pods that take room on a node."""
        return [pod for pod in self.pods.values() if node_of(pod) == name and not is_finished(pod)]


def _name_in(path: str) -> str:
    """Return ``namespace/name`` of the pod at a path of the API."""
    *_, namespace, _, name = path.split("/")
    return f"{namespace}/{name}"


def node_of(pod: Obj) -> str:
    """Return the node of a pod, "" for none."""
    return str(pod.get("spec", {}).get("nodeName") or "")


def nominated_of(pod: Obj) -> str:
    """Return the node that is promised to a pod, "" for none."""
    return str(pod.get("status", {}).get("nominatedNodeName") or "")


def priority_of(pod: Obj) -> int:
    """Return the priority of a pod, 0 for none."""
    return int(pod["spec"].get("priority") or 0)


def group_of(pod: Obj) -> str:
    """Return ``namespace/name`` of the group of Kubernetes that a pod is in, "" for none."""
    name = (pod.get("spec", {}).get("schedulingGroup") or {}).get("podGroupName")
    return f"{pod['metadata']['namespace']}/{name}" if name else ""


def is_finished(pod: Obj) -> bool:
    """Return whether the pod takes no room any more."""
    return pod.get("status", {}).get("phase") in FINISHED


def rejects(write: Write) -> bool:
    """Return whether a node refuses a pod by a write, because it has no room (``OutOfcpu``)."""
    now, before = write.now or {}, write.before or {}
    reason = str(now.get("status", {}).get("reason") or "")
    return reason.startswith("OutOf") and reason != before.get("status", {}).get("reason")


def name_of(obj: Obj) -> str:
    """Return ``namespace/name``, or the name of an object without a namespace."""
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def _leaves(pod: Obj | None) -> bool:
    return pod is None or bool(pod["metadata"].get("deletionTimestamp"))


def _spec(record: Record | None) -> object:
    return None if record is None else record.decode().get("spec")


def _read(node: Obj | None) -> object:
    """Return what a scheduler reads of a node."""
    if node is None:
        return None
    status = node.get("status", {})
    ready = [each["status"] for each in status.get("conditions") or () if each["type"] == "Ready"]
    return node["metadata"].get("labels"), node.get("spec"), status.get("allocatable"), ready
