"""The objects of a model as they are now; each change reaches the deciding half at once.

A change enters through the ingests (`moorage.virtual.deciding_half`), as a watch event would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from moorage.api.meta import ApiObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock, rfc3339
from moorage.base.ids import new_uid
from moorage.base.rng import Random
from moorage.virtual.deciding_half import DecidingHalf
from moorage.virtual.objects import ClusterObjects, Key

# Larger than the versions of a server, so that changes count as newer.
_FIRST_VERSION: Final = 10**15


class PutListener(Protocol):
    """Is called when an object of another kind than Node and Pod was put."""

    def __call__(self, lister: str, key: Key, obj: ApiObject, *, is_new: bool) -> None:
        """Take in the object."""
        ...


class LiveObjects:
    """The objects of one cluster in memory, and the deciding half that knows them.

    Parameters
    ----------
    objects
        The objects at the start, already known to the deciding half; they are changed here.
    half
        The deciding half.
    clock
        The time of the model.
    uids
        The random stream of uids.

    Attributes
    ----------
    listeners
        Called with every pod that has changed, or is gone.
    changes
        Called with the version of a pod before and after a change, None for no version.
    puts
        Called with the lister, key and object of another kind that was put, and whether it is new.
    touched
        The pods that have come, changed or gone since `mark`, by uid in the order of their first
        change: the pod's key, and the pod at the mark, None for a pod that came later.
    """

    def __init__(
        self, objects: ClusterObjects, half: DecidingHalf, clock: ManualClock, uids: Random
    ) -> None:
        self.objects = objects
        self.half = half
        self.listeners: list[Callable[[Pod], None]] = []
        self.changes: list[Callable[[Pod | None, Pod | None], None]] = []
        self.puts: list[PutListener] = []
        self.touched: dict[str, tuple[Key, Pod | None]] = {}
        self._clock = clock
        self._uids = uids
        self._version = _FIRST_VERSION
        # When a pod or a node last came or went, or a pod was bound.
        self._progress_ns = clock.now_ns()

    @property
    def virtual_now_ns(self) -> int:
        """Wall-clock time of the model, nanoseconds since the Unix epoch."""
        return self._clock.now_ns()

    def mark(self) -> None:
        """Begin to note touched pods from now on."""
        self.touched = {}

    # --- pods -----------------------------------------------------------------------------------

    def current(self, pod: Pod) -> Pod | None:
        """Return the newest version of a pod, None if it is gone."""
        return self.version(pod.key, pod.uid)

    def version(self, key: Key, uid: str) -> Pod | None:
        """Return the newest version of a pod by its key and uid, None if it is gone."""
        found = self.objects.pods.get(key)
        return found if found is not None and found.uid == uid else None

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """Return the unfinished pods of a node, by name."""
        return sorted(self.objects.pods_on(node_name), key=lambda pod: pod.key)

    def add_pod(self, pod: Pod) -> Pod:
        """Put a new pod; a uid and the time of creation are filled in."""
        pod = self._with_uid(pod)
        metadata = msgspec.structs.replace(
            pod.metadata,
            resource_version=self.next_version(),
            creation_timestamp=rfc3339(self._clock.now_ns()),
        )
        pod = msgspec.structs.replace(pod, metadata=metadata)
        self.objects.put_pod(pod)
        self.touched.setdefault(pod.uid, (pod.key, None))
        self._note_progress()
        self.half.pods.on_add(pod)
        self._move_pods(pod, None, pod)
        return pod

    def update_pod(self, pod: Pod) -> None:
        """Put a new version of a pod."""
        old = self.objects.pods[pod.key]
        metadata = msgspec.structs.replace(pod.metadata, resource_version=self.next_version())
        new = msgspec.structs.replace(pod, metadata=metadata)
        self.objects.put_pod(new)
        self.touched.setdefault(new.uid, (new.key, old))
        self.half.pods.on_update(old, new)
        self._move_pods(new, old, new)

    def drop_pod(self, pod: Pod) -> None:
        """Remove a pod, if it is still there."""
        current = self.current(pod)
        if current is not None:
            self.objects.drop_pod(pod.key)
            self.touched.setdefault(pod.uid, (pod.key, current))
            self._note_progress()
            self.half.pods.on_delete(current, missed=False)
            self._move_pods(current, current, None)

    def _move_pods(self, pod: Pod, old: Pod | None, new: Pod | None) -> None:
        for change in self.changes:
            change(old, new)
        for listener in self.listeners:
            listener(pod)

    # --- other objects --------------------------------------------------------------------------

    def put_node(self, node: Node) -> None:
        """Add or change a node."""
        old = self.objects.nodes.get(node.name)
        uid = node.metadata.uid or new_uid(self._uids)
        metadata = msgspec.structs.replace(
            node.metadata, uid=uid, resource_version=self.next_version()
        )
        node = msgspec.structs.replace(node, metadata=metadata)
        self.objects.nodes[node.name] = node
        self._note_progress()
        if old is None:
            self.half.nodes.on_add(node)
        else:
            self.half.nodes.on_update(old, node)

    def put_object(self, lister: str, key: Key, obj: ApiObject) -> None:
        """Add or change an object of another watched kind."""
        known = self.objects.lister(lister)
        old = known.get(key)
        known[key] = obj
        ingest = self.half.others.get(lister)
        if ingest is not None:  # or the profiles do not watch this kind
            if old is None:
                ingest.on_add(obj)
            else:
                ingest.on_update(old, obj)
        for listener in self.puts:
            listener(lister, key, obj, is_new=old is None)

    def remove(self, lister: str, key: Key) -> None:
        """Remove an object of another watched kind, if it is there."""
        old = self.objects.lister(lister).pop(key, None)
        ingest = self.half.others.get(lister)
        if old is not None and ingest is not None:
            ingest.on_delete(old, missed=False)

    def drop_node(self, name: str) -> None:
        """Remove a node; what becomes of its pods is not decided here."""
        node = self.objects.nodes.pop(name)
        self._note_progress()
        self.half.nodes.on_delete(node, missed=False)

    # --- leaves ---------------------------------------------------------------------------------

    def _with_uid(self, pod: Pod) -> Pod:
        if pod.uid:
            return pod
        metadata = msgspec.structs.replace(pod.metadata, uid=new_uid(self._uids))
        return msgspec.structs.replace(pod, metadata=metadata)

    def _note_progress(self) -> None:
        self._progress_ns = self._clock.now_ns()

    def next_version(self) -> str:
        """Return a version that is newer than every other one."""
        self._version += 1
        return str(self._version)


def fresh(pod: Pod, *, name: str) -> Pod:
    """Return a pod as its owner would make it again: without node, status and identity."""
    metadata = msgspec.structs.replace(
        pod.metadata, name=name, uid="", deletion_timestamp=None, deletion_grace_period_seconds=None
    )
    spec = msgspec.structs.replace(pod.spec, node_name="")
    status = type(pod.status)(phase="Pending", qos_class=pod.status.qos_class)
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status)
