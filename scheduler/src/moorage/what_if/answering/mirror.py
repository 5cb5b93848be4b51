"""A mirror: a copy of a running scheduler's state, in another process.

`Mirror` takes in what has changed (`mirrored_state`), and begins a model at the scheduler's
moment.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from moorage.api.codec import encode
from moorage.api.meta import ApiObject
from moorage.api.pod import Pod
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.service.core import Core
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.kinds import checked_manifest, readable
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import KINDS, ClusterObjects, Key, any_empty_dir
from moorage.what_if.answering.messages import Moment, Update
from moorage.what_if.fullness import Fullness

# The scheduler keeps only parts of these objects, so they cannot serve as manifests.
_WITHOUT_MANIFEST: Final = frozenset(
    {"replica_sets", "replication_controllers", "stateful_sets", "jobs"}
)
_KIND_OF: Final = {kind.lister: kind for kind in KINDS.values()}


class Mirror:
    """The copy of a scheduler's state.

    Parameters
    ----------
    config, registry
        The scheduler's configuration, plugins enabled, and every known plugin.
    now_ns
        Wall-clock time, nanoseconds since the Unix epoch.
    """

    def __init__(self, config: LoadedConfiguration, registry: Registry, *, now_ns: int) -> None:
        inputs = ClusterInputs(
            objects=ClusterObjects(), registry=registry, config=config, now_ns=now_ns
        )
        self._model = ClusterModel(inputs)
        # Makes the columns that every answer reads: they follow the nodes from now on, and no fork
        # has to fill them.
        Fullness(self._model.half.core.snapshot)

    def take_changes(self, update: Update) -> None:
        """Take changes in; pods without a node are queued only when a model begins."""
        objects, ingest = self._model.objects, self._model.half.nodes
        for name in update.gone_nodes:
            ingest.on_delete(objects.nodes.pop(name), missed=False)
        for node in update.nodes:
            old = objects.nodes.get(node.name)
            objects.nodes[node.name] = node
            if old is None:
                ingest.on_add(node)
            else:
                ingest.on_update(old, node)
        succeeded = self._model.half.succeeded
        for uid in update.gone_succeeded:
            succeeded.on_delete(objects.succeeded.pop(uid), missed=False)
        for pod in update.succeeded:
            objects.succeeded[pod.uid] = pod
            succeeded.on_add(pod)
        for key in update.gone_pods:
            self._drop_pod(objects.pods[key])
            objects.drop_pod(key)
        for pod in update.pods:
            self._put_pod(pod)
        for lister, gone in update.gone_others.items():
            for key in gone:
                self._model.remove(lister, key)
                kind = _KIND_OF[lister].resource
                objects.manifests.get((kind.group, kind.kind), {}).pop(key, None)
        for lister, items in update.others.items():
            decode = msgspec.msgpack.Decoder(_KIND_OF[lister].type_).decode
            for item in items:
                self._put_other(lister, decode(item))

    def begin_model(
        self,
        moment: Moment,
        manifests: Iterable[Mapping[str, Any]] = (),
        *,
        with_local_data: Iterable[Key] = (),
    ) -> ClusterModel:
        """Return a model at a moment of the scheduler; the mirror is used up.

        Parameters
        ----------
        manifests
            Owners of pods and other objects that the scheduler does not have in full.
        with_local_data
            Pods with a volume of kind emptyDir, which the scheduler does not keep.
        """
        objects = self._model.objects
        objects.with_local_data.update(with_local_data)
        for each in manifests:
            _keep(objects, each)
        rank = {uid: number for number, uid in enumerate(moment.order)}
        # The sort is stable, so pods that are not in the queue come last, the oldest first.
        pending = sorted(objects.pending_pods, key=lambda pod: rank.get(pod.uid, len(rank)))
        draws: Streams = pickle.loads(moment.draws)
        self._model.begin_moment(pending, now_ns=moment.now_ns, draws=draws)
        return self._model

    def at_rest(self, moment: Moment) -> tuple[Core, list[Pod]]:
        """Return the deciding half, and the pods in the queue of a moment; nothing is begun.

        The mirror is used up: its groups know these pods then.
        """
        core, pods = self._model.half.core, {p.uid: p for p in self._model.objects.pending_pods}
        queue = [pods[uid] for uid in moment.order if uid in pods]
        queue = [pod for pod in queue if not pod.spec.scheduling_gates]
        for pod in queue:
            core.snapshot.groups.put_pod(pod)
        return core, queue

    def _put_pod(self, pod: Pod) -> None:
        objects, ingest = self._model.objects, self._model.half.pods
        old = objects.pods.get(pod.key)
        objects.put_pod(pod)
        if old is not None and old.uid == pod.uid and _is_bound(old) and _is_bound(pod):
            ingest.on_update(old, pod)
            return
        if old is not None:
            self._drop_pod(old)
        if _is_bound(pod):
            ingest.on_add(pod)

    def _drop_pod(self, pod: Pod) -> None:
        if _is_bound(pod):
            self._model.half.pods.on_delete(pod, missed=False)

    def _put_other(self, lister: str, obj: ApiObject) -> None:
        key, kind = (obj.namespace, obj.name), _KIND_OF[lister].resource
        self._model.put_object(lister, key, obj)
        if lister not in _WITHOUT_MANIFEST:
            head = {"apiVersion": kind.api_version, "kind": kind.kind}
            text = encode({**head, **msgspec.to_builtins(obj)})
            self._model.objects.manifests.setdefault((kind.group, kind.kind), {})[key] = text


def _keep(objects: ClusterObjects, manifest: Mapping[str, Any]) -> None:
    obj = readable(manifest)
    group, meta = obj["apiVersion"].rpartition("/")[0], obj["metadata"]
    key = (str(meta.get("namespace") or ""), meta["name"])
    if obj["kind"] == "Pod" and not group:
        if any_empty_dir(obj):
            objects.with_local_data.add(key)
        return
    try:
        text = checked_manifest(group, obj["kind"], encode(obj))
    except ValueError as problem:
        raise UsageError(f"{obj['kind']} {meta['name']}: {problem}") from problem
    objects.manifests.setdefault((group, obj["kind"]), {})[key] = text


def _is_bound(pod: Pod) -> bool:
    return bool(pod.spec.node_name)
