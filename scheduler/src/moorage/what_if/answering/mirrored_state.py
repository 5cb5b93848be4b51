"""The scheduler's side of a mirror: what has changed since the mirror was last told.

The logs of changed keys say so (`moorage.snapshot.key_log`), which the listers, the store of pods
and the table of nodes keep. Nodes are compared by identity only after a node came or went, because
the table then gives rows new numbers.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from moorage.api.meta import ApiObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import Clock
from moorage.config.own import LoadedConfiguration
from moorage.service.scheduler import Scheduler
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.listers import Lister
from moorage.virtual.objects import KINDS, Key
from moorage.what_if.answering.messages import First, Moment, Update

# Encoding so many pods takes the scheduler's loop about 2 ms.
_CHUNK: Final = 250
_LISTERS: Final = tuple(kind.lister for kind in KINDS.values())


class MirroredState:
    """A scheduler's state, told to a mirror by what has changed.

    Parameters
    ----------
    scheduler
        The running scheduler.
    clock
        The time.
    config, plugins
        Returns the configuration before plugins are enabled; the values of ``--plugin``.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        *,
        config: Callable[[], LoadedConfiguration],
        plugins: tuple[str, ...],
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._config = config
        self._plugins = plugins
        self._forget()

    def _forget(self) -> None:
        # The content of the mirror: the keys of pods and of other objects, nodes, and assumed pods
        # with their nodes. Positions are those read last in each log; None before the first time.
        self._pods: dict[Key, None] = {}
        self._pods_at: int | None = None
        self._assumed: dict[Key, str] = {}
        self._succeeded: dict[str, Pod] = {}
        self._nodes: dict[str, Node] = {}
        self._nodes_at = 0
        self._structure = -1
        self._others: dict[str, dict[Key, None]] = {name: {} for name in _LISTERS}
        self._others_at: dict[str, int | None] = dict.fromkeys(_LISTERS)

    def first(self) -> bytes:
        """Return the first frame of a new mirror, which knows nothing yet."""
        self._forget()
        config = pickle.dumps(self._config())
        return msgspec.msgpack.encode(First(config, self._plugins, self._clock.now_ns()))

    def updates(self) -> Iterator[bytes]:
        """Yield frames with what has changed, all as of the first frame that is taken."""
        # Objects are never changed in place, so encoding them later tells the same state.
        parts = [
            *self._other_updates(),
            *self._node_updates(),
            *self._succeeded_updates(),
            *self._pod_updates(),
        ]
        for part in parts:
            if isinstance(part, Update):
                yield msgspec.msgpack.encode(part)
            else:
                lister, objects = part
                raw = [msgspec.Raw(msgspec.msgpack.encode(obj)) for obj in objects]
                yield msgspec.msgpack.encode(Update(others={lister: raw}))

    def moment(self) -> Moment:
        """Return what no object shows, as of now."""
        core = self._scheduler.core
        waiting = core.queue.pending()
        queued = [*waiting.active, *waiting.backoff, *waiting.unschedulable, *waiting.gated]
        queued.sort(key=lambda each: each.since_ns)
        profile = next(iter(core.profiles.values()))
        draws = pickle.dumps(profile.handle.streams.copy())
        return Moment(self._clock.now_ns(), draws, [each.pod.uid for each in queued])

    def _assumed_now(self) -> dict[Key, str]:
        """Return the pods that are on their way to a node, and the nodes; not those at Permit."""
        core, assumed = self._scheduler.core, {}
        for uid in core.cache.assumed():
            key = core.store.name_of(uid)
            if key is not None and not core.waiting.holds_pod(uid):
                assumed[key] = core.cache.get_pod(uid).spec.node_name
        return assumed

    def _pod_updates(self) -> list[Update]:
        store, assumed = self._scheduler.core.store, self._assumed_now()
        keys = _changed(store.log, self._pods_at)
        self._pods_at = store.log.position
        if keys is None:
            keys = [*self._pods, *((pod.namespace, pod.name) for pod in store.all_pods())]
        moved = {**self._assumed, **assumed}
        keys += [key for key in moved if self._assumed.get(key) != assumed.get(key)]
        self._assumed = assumed
        gone, pods = list[Key](), list[Pod]()
        for key in dict.fromkeys(keys):
            pod = store.get(*key)
            if pod is not None:
                pods.append(_on_node(pod, assumed.get(key, "")))
                self._pods[key] = None
            elif key in self._pods:
                gone.append(key)
                del self._pods[key]
        return [Update(gone_pods=gone), *(Update(pods=part) for part in _chunks(pods))]

    def _succeeded_updates(self) -> list[Update]:
        now, before = self._scheduler.core.snapshot.groups.succeeded.all_pods(), self._succeeded
        self._succeeded = now
        gone = [uid for uid in before if uid not in now]
        found = [pod for uid, pod in now.items() if uid not in before]
        return [Update(gone_succeeded=gone), *(Update(succeeded=part) for part in _chunks(found))]

    def _node_updates(self) -> list[Update]:
        table = self._scheduler.core.snapshot.table
        structure, position = table.columns.structure, table.node_log.position
        rows = table.node_log.since(self._nodes_at) if structure == self._structure else None
        self._structure, self._nodes_at = structure, position
        gone = list[str]()
        if rows is None:
            now = dict(zip(table.names, table.nodes, strict=True))
            changed = [node for name, node in now.items() if self._nodes.get(name) is not node]
            gone += [name for name in self._nodes if name not in now]
            self._nodes = now
        else:
            changed = [table.nodes[row] for row in rows]
            self._nodes.update((node.name, node) for node in changed)
        return [Update(gone_nodes=gone), *(Update(nodes=part) for part in _chunks(changed))]

    def _other_updates(self) -> list[Update | tuple[str, list[ApiObject]]]:
        updates: list[Update | tuple[str, list[ApiObject]]] = []
        for name, known in self._others.items():
            lister: Lister[Any] = getattr(self._scheduler.core.snapshot.listers, name)
            keys = _changed(lister.log, self._others_at[name])
            self._others_at[name] = lister.log.position
            if keys is None:
                keys = [*known, *((obj.namespace, obj.name) for obj in lister.all())]
            gone, objects = list[Key](), list[ApiObject]()
            for key in dict.fromkeys(keys):
                obj = lister.get(key[1], key[0])
                if obj is not None:
                    objects.append(obj)
                    known[key] = None
                elif key in known:
                    gone.append(key)
                    del known[key]
            if gone:
                updates.append(Update(gone_others={name: gone}))
            updates += [(name, part) for part in _chunks(objects)]
        return updates


def _changed(log: KeyLog[Key], position: int | None) -> list[Key] | None:
    """Return the keys that have changed; None if every key has to be looked at."""
    return None if position is None else log.since(position)


def _on_node(pod: Pod, node_name: str) -> Pod:
    """Return a pod as bound to the node that it is assumed on."""
    if not node_name or pod.spec.node_name:
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))


def _chunks(objects: list[Any]) -> list[list[Any]]:
    return [objects[begin : begin + _CHUNK] for begin in range(0, len(objects), _CHUNK)]
