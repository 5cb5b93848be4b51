"""Makes and deletes the pods of Deployments and their like, as their controllers would.

The plans of the controllers (`moorage.workloads`) are used. A rollout is not played: a change of a
template is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from moorage.api.codec import decode, encode, from_dict
from moorage.api.pod import Pod
from moorage.api.resources import REPLICA_SETS, REPLICATION_CONTROLLERS, ResourceType, by_kind
from moorage.base.errors import UsageError
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import KINDS, Key
from moorage.virtual.owner_kinds import group_of, may_return
from moorage.what_if.owners.jobs import Jobs
from moorage.what_if.owners.protection import Protection
from moorage.what_if.owners.stateful_sets import StatefulSets, with_claims_of_its_own
from moorage.what_if.rules.admission import Admission
from moorage.what_if.rules.bounds import Bounds
from moorage.workloads.daemon_steps import place
from moorage.workloads.daemon_steps import pod_of as daemon_pod
from moorage.workloads.deployment_steps import CreateSet, Sets, part_sets, revision_steps
from moorage.workloads.jobs.job_pods import is_indexed, job_pod
from moorage.workloads.jobs.job_steps import Tally, wanted_active
from moorage.workloads.objects import Whole, owner_reference
from moorage.workloads.pods import deletion_order, is_active, pod_from_template
from moorage.workloads.replicas import wanted
from moorage.workloads.revisions import Revision
from moorage.workloads.stateful_steps import ordinal_of
from moorage.workloads.stateful_steps import pod_of as stateful_pod

_BOUNDS: Final = ("ResourceQuota", "LimitRange")
MADE_MOST: Final = 20_000
"""Most pods that the changes of one question make; each takes 1 ms to be placed or to find none."""


class Workloads:
    """The owners of pods in a model.

    Parameters
    ----------
    model
        Holds the pods.
    admission
        Turns templates into pods.
    bounds
        Has the pods that owners cannot make.

    Attributes
    ----------
    jobs
        The Jobs, which may fail when pods leave.
    protection
        Deletes objects that pods may be using.
    """

    def __init__(self, model: ClusterModel, admission: Admission, bounds: Bounds) -> None:
        self._model = model
        self._admission = admission
        self._bounds = bounds
        self._objects = model.objects
        self.stateful_sets = StatefulSets(model, bounds)
        self.jobs = Jobs(model, bounds)
        self.protection = Protection(model, self.forget_object)
        self._pod_count = 0

    # --- looking --------------------------------------------------------------------------------

    def find(self, kind: str, key: Key) -> Whole:
        """Return an owner.

        Raises
        ------
        UsageError
            There is none of that name; the message names some that are there.
        """
        manifests = self._objects.manifests.get((group_of(kind), kind), {})
        if key not in manifests:
            known = ", ".join("/".join(each) for each in sorted(manifests)[:5]) or "none"
            raise UsageError(
                f"there is no {kind} {key[1]} in namespace {key[0]}; there are: {known}"
            )
        return decode(Whole, manifests[key])

    def check_size(self, kind: str, key: Key) -> None:
        """Refuse to change the size of an owner that a Deployment sizes.

        Raises
        ------
        UsageError
            A Deployment owns it, and its controller takes such a change back.
        """
        manager = self.find(kind, key).metadata.controller
        if manager is not None and manager.kind == "Deployment":
            raise UsageError(
                f"{kind} {key[1]} belongs to Deployment {manager.name}, whose controller takes the "
                f"change back; ask about deployment/{manager.name}"
            )

    def pods_of(self, owner: Whole) -> list[Pod]:
        """Return the active pods of an owner that makes pods itself, by name."""
        uid = owner.metadata.uid
        pods = [
            pod
            for pod in self._objects.pods.values()
            if is_active(pod) and (ref := pod.metadata.controller) is not None and ref.uid == uid
        ]
        return sorted(pods, key=lambda pod: pod.key)

    def template_of(self, kind: str, key: Key) -> dict[str, Any]:
        """Return one more pod of an owner, as it would be stored; it is not put anywhere."""
        owner = self.find(kind, key)
        if kind == "Deployment":
            owner, kind = self._set_of(owner), "ReplicaSet"
        if kind == "DaemonSet":
            raise UsageError("a DaemonSet has one pod for each node; ask about another kind")
        body = self._bodies(kind, owner, 1)[0]
        if kind == "StatefulSet":
            body["spec"] = with_claims_of_its_own(body["spec"], owner)
        return self._admission.stored(body)

    # --- making and deleting --------------------------------------------------------------------

    def put_owner(self, manifest: dict[str, Any]) -> None:
        """Add a new owner, with the pods that it makes."""
        kind, owner = manifest["kind"], self._keep_whole(manifest)
        if kind == "Deployment":
            step = revision_steps(owner, Sets(None, []), create=True)[0]
            assert isinstance(step, CreateSet), "a new deployment has no set yet"
            stored = self._admission.stored(step.body)
            why = self._bounds.fault(REPLICA_SETS.qualified, stored)
            if why:
                raise UsageError(f"Deployment {owner.name} gets no ReplicaSet and no pods: {why}")
            self._bounds.count(REPLICA_SETS.qualified, stored)
            self.put_owner(stored)
        elif kind == "DaemonSet":
            self._daemon_pods(owner)
        elif kind == "StatefulSet":
            replicas = owner.spec.get("replicas")
            self._allow(owner, 1 if replicas is None else int(replicas))
            self.stateful_sets.sync_soon((owner.namespace, owner.name))
        elif kind == "Job":
            self._allow(owner, wanted_active(owner, Tally()))
            self.jobs.sync_soon((owner.namespace, owner.name))
        else:
            self._make(kind, owner, wanted(owner))

    def _allow(self, owner: Whole, count: int) -> None:
        """Count the pods that an owner is to make.

        Raises
        ------
        UsageError
            The changes make more pods than a what-if can place in some seconds.
        """
        self._pod_count += count
        if self._pod_count > MADE_MOST:
            raise UsageError(
                f"the changes make {self._pod_count} pods ({owner.name} {count} of them), and "
                f"a what-if makes at most {MADE_MOST}; to see how many more fit, ask "
                "`moorage capacity`"
            )

    def scale(self, kind: str, key: Key, replicas: int) -> None:
        """Give an owner another number of pods.

        Raises
        ------
        UsageError
            There is no such owner, or it cannot be scaled here.
        """
        owner = self.find(kind, key)
        manifest = self._objects.manifest(group_of(kind), kind, key)
        assert manifest is not None, "it was found"
        manifest["spec"] = {**(manifest.get("spec") or {}), "replicas": replicas}
        if kind == "Deployment":
            self._keep_whole(manifest)
            found = self._set_of(owner)
            self.scale("ReplicaSet", (found.namespace, found.name), replicas)
            return
        self._keep_whole(manifest)
        if kind == "StatefulSet":
            self._allow(owner, replicas)
            self.stateful_sets.sync_soon(key)
            return
        there = self.pods_of(owner)
        self._bounds.forget_refused(owner.metadata.uid, most=max(0, replicas - len(there)))
        if len(there) < replicas:
            self._make(kind, owner, replicas)
            return
        for pod in self._surplus(there, replicas):
            self._model.leave(pod, returns=False)

    def delete_owner(self, kind: str, key: Key) -> None:
        """Delete an owner and everything it owns."""
        owner = self.find(kind, key)
        self.forget_object(group_of(kind), kind, key)
        self._bounds.forget_refused(owner.metadata.uid)
        for each in self._sets_of(owner) if kind == "Deployment" else ():
            self.delete_owner("ReplicaSet", (each.namespace, each.name))
        for pod in self._surplus(self.pods_of(owner), 0):
            self._model.leave(pod, returns=False)

    def forget_object(self, group: str, kind: str, key: Key) -> None:
        """Remove an object that is neither a node nor a pod."""
        old = self._objects.manifest(group, kind, key)
        resource = None if old is None else by_kind(kind, old["apiVersion"])
        if old is not None and resource is not None:
            self._bounds.count(resource.qualified, old, -1)
        self._objects.manifests.get((group, kind), {}).pop(key, None)
        known = KINDS.get((group, kind))
        if known is not None:
            self._model.remove(known.lister, key)
        if kind in _BOUNDS:
            self._fill_up(key[0])

    def keep(self, manifest: dict[str, Any]) -> None:
        """Add or change an object that is neither a node nor a pod."""
        self._keep_whole(manifest)
        if manifest["kind"] in _BOUNDS:
            self._fill_up(manifest["metadata"].get("namespace") or "")

    def nodes_changed(self) -> None:
        """Make the pods of DaemonSets on nodes that lack them, and delete those of other nodes."""
        for key in sorted(self._objects.manifests.get(("apps", "DaemonSet"), {})):
            self._daemon_pods(self.find("DaemonSet", key))

    def make_limited_pods(self) -> None:
        """Make the pods that owners lack where a quota or a limit range may be the reason."""
        bounds = [self._objects.manifests.get(("", kind), {}) for kind in _BOUNDS]
        for namespace in sorted({key[0] for each in bounds for key in each}):
            self._fill_up(namespace)

    def _fill_up(self, namespace: str) -> None:
        """Make the pods that owners lack, after the bounds of their namespace have changed."""
        self._bounds.bounds_changed(namespace)
        for kind in ("ReplicaSet", "ReplicationController"):
            for key in sorted(self._objects.manifests.get((group_of(kind), kind), {})):
                if key[0] == namespace:
                    owner = self.find(kind, key)
                    self._make(kind, owner, wanted(owner))
        for kind, played in (("StatefulSet", self.stateful_sets), ("Job", self.jobs)):
            for key in sorted(self._objects.manifests.get((group_of(kind), kind), {})):
                if key[0] == namespace:
                    played.sync_soon(key)
        for key in sorted(self._objects.manifests.get(("apps", "DaemonSet"), {})):
            if key[0] == namespace:
                self._daemon_pods(self.find("DaemonSet", key))

    # --- leaves ---------------------------------------------------------------------------------

    def _keep_whole(self, manifest: dict[str, Any]) -> Whole:
        group = manifest["apiVersion"].rpartition("/")[0]
        meta, kind = manifest["metadata"], manifest["kind"]
        key, text = (meta.get("namespace") or "", meta["name"]), encode(manifest)
        self._objects.manifests.setdefault((group, kind), {})[key] = text
        known = KINDS.get((group, kind))
        if known is not None:
            self._model.put_object(known.lister, key, decode(known.type_, text))
        return decode(Whole, text)

    def _sets_of(self, deployment: Whole) -> list[Whole]:
        found = self._objects.manifests.get(("apps", "ReplicaSet"), {})
        sets = [
            decode(Whole, text) for key, text in found.items() if key[0] == deployment.namespace
        ]
        uid = deployment.metadata.uid
        return [
            each
            for each in sets
            if any(ref.uid == uid and ref.controller for ref in each.metadata.owner_references)
        ]

    def _set_of(self, deployment: Whole) -> Whole:
        """Return the one replica set whose pods a deployment has."""
        sets = self._sets_of(deployment)
        rolling = [each for each in part_sets(deployment, sets).old if wanted(each)]
        new = part_sets(deployment, sets).new
        if new is None or rolling:
            raise UsageError(
                f"Deployment {deployment.name} is being rolled out, or its ReplicaSet is not "
                "known; ask again when its rollout is over"
            )
        return new

    def _make(self, kind: str, owner: Whole, total: int) -> None:
        """Make pods until an owner has so many."""
        missing = total - len(self.pods_of(owner))
        missing -= len(self._bounds.refused_of(owner.metadata.uid))
        for body in self._bodies(kind, owner, missing):
            self._bounds.make(body)

    def _bodies(self, kind: str, owner: Whole, count: int) -> list[dict[str, Any]]:
        """Return pods to make, as an owner sends them."""
        self._allow(owner, count)
        there = self.pods_of(owner)
        if kind == "StatefulSet":
            taken = {ordinal_of(owner, pod.name) for pod in there}
            free = [n for n in range(len(taken) + count) if n not in taken][:count]
            template = {"spec": {"template": owner.spec.get("template") or {}}}
            revision = from_dict(Revision, {"metadata": {"name": owner.name}, "data": template})
            return [stateful_pod(owner, ordinal, revision) for ordinal in free]
        if kind == "Job":
            return [job_pod(owner, n if is_indexed(owner) else None) for n in range(count)]
        resource: ResourceType = REPLICA_SETS
        if kind == "ReplicationController":
            resource = REPLICATION_CONTROLLERS
        return [
            pod_from_template(
                owner.spec.get("template") or {},
                namespace=owner.namespace,
                owner=owner_reference(owner, resource),
                prefix=f"{owner.name}-",
            )
            for _ in range(count)
        ]

    def _surplus(self, there: Sequence[Pod], replicas: int) -> Sequence[Pod]:
        """Return the pods to delete, in the order of a replica set."""
        rank = Counter(pod.spec.node_name for pod in there if pod.spec.node_name)
        order = deletion_order(there, rank=rank, now_ns=self._model.virtual_now_ns)
        return order[: len(there) - replicas]

    def _daemon_pods(self, owner: Whole) -> None:
        nodes = self._objects.nodes
        leaving = [
            pod
            for pod in self._objects.pods.values()
            if pod.metadata.deletion_timestamp
            and (ref := pod.metadata.controller) is not None
            and ref.uid == owner.metadata.uid
            and may_return(pod, nodes.get(pod.spec.node_name))
        ]  # the model makes their successors
        pods = [*self.pods_of(owner), *leaving]
        plan = place(owner, list(nodes.values()), pods, self._model.virtual_now_ns)
        labels = next(
            (pod.metadata.labels for pod in self.pods_of(owner)),
            {"controller-revision-hash": owner.name},
        )
        revision = labels.get("controller-revision-hash", owner.name)
        self._bounds.forget_refused(owner.metadata.uid)
        for pod in plan.delete:
            self._model.leave(pod, returns=False)
        for name in plan.create:
            self._bounds.make(daemon_pod(owner, name, revision))
