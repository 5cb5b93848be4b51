"""The scheduler's side of a mirror: what has changed since the mirror was last told.

Objects are compared by identity, so the scheduler keeps no books about what has changed.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from moorage.api.meta import ApiObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import Clock
from moorage.config.own import LoadedConfiguration
from moorage.service.scheduler import Scheduler
from moorage.what_if.lists import KINDS, Key
from moorage.what_if.messages import First, Moment, Update

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
        The configuration before plugins are enabled, and the values of ``--plugin``.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        *,
        config: LoadedConfiguration,
        plugins: tuple[str, ...],
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._config = config
        self._plugins = plugins
        self._forget()

    def _forget(self) -> None:
        # The versions that the mirror has, by kind and key.
        self._pods: dict[Key, Pod] = {}
        self._assumed: dict[Key, str] = {}
        self._nodes: dict[str, Node] = {}
        self._others: dict[str, dict[Key, ApiObject]] = {name: {} for name in _LISTERS}

    def first(self) -> bytes:
        """Return the first frame of a new mirror, which knows nothing yet."""
        self._forget()
        config = pickle.dumps(self._config)
        return msgspec.msgpack.encode(First(config, self._plugins, self._clock.now_ns()))

    def updates(self) -> Iterator[bytes]:
        """Yield frames with what has changed, all as of the first frame that is taken."""
        core = self._scheduler.core
        assumed = self._assumed_now()
        pods = {info.key: info for info in core.store.all()}
        changed = [key for key, pod in pods.items() if self._pods.get(key) is not pod]
        gone = [key for key in self._pods if key not in pods]
        other = {**self._assumed, **assumed}
        moved = [key for key in other if self._assumed.get(key) != assumed.get(key)]
        known = set(changed)
        changed += [key for key in moved if key in pods and key not in known]
        self._pods, self._assumed = pods, assumed
        # Objects are never changed in place, so encoding them later tells the same state.
        for part in (*self._other_updates(), *self._node_update()):
            if isinstance(part, Update):
                yield msgspec.msgpack.encode(part)
            else:
                lister, objects = part
                raw = [msgspec.Raw(msgspec.msgpack.encode(obj)) for obj in objects]
                yield msgspec.msgpack.encode(Update(others={lister: raw}))
        if gone:
            yield msgspec.msgpack.encode(Update(gone_pods=gone))
        keys = iter(changed)
        while chunk := list(islice(keys, _CHUNK)):
            found = [_on_node(pods[key], assumed.get(key, "")) for key in chunk]
            yield msgspec.msgpack.encode(Update(pods=found))

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
        core, found = self._scheduler.core, {}
        for uid in core.cache.assumed():
            key = core.store.name_of(uid)
            if key is not None and not core.waiting.holds(uid):
                found[key] = core.cache.get_pod(uid).spec.node_name
        return found

    def _node_update(self) -> list[Update]:
        now = {key[1]: node for key, node in self._scheduler.parts.nodes.objects.items()}
        changed = [node for name, node in now.items() if self._nodes.get(name) is not node]
        gone = [name for name in self._nodes if name not in now]
        self._nodes = now
        parts = _chunks(changed)
        return [Update(gone_nodes=gone), *(Update(nodes=part) for part in parts)]

    def _other_updates(self) -> list[Update | tuple[str, list[ApiObject]]]:
        found: list[Update | tuple[str, list[ApiObject]]] = []
        for lister, before in self._others.items():
            objects: Iterable[ApiObject] = getattr(
                self._scheduler.core.snapshot.listers, lister
            ).all()
            now = {(obj.namespace, obj.name): obj for obj in objects}
            changed = [obj for key, obj in now.items() if before.get(key) is not obj]
            gone = [key for key in before if key not in now]
            self._others[lister] = now
            if gone:
                found.append(Update(gone_others={lister: gone}))
            found += [(lister, part) for part in _chunks(changed)]
        return found


def _on_node(pod: Pod, node_name: str) -> Pod:
    """Return a pod as bound to the node that it is assumed on."""
    if not node_name or pod.spec.node_name:
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))


def _chunks(objects: list[Any]) -> list[list[Any]]:
    return [objects[begin : begin + _CHUNK] for begin in range(0, len(objects), _CHUNK)]
