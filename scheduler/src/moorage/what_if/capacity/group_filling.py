"""Fills a model with further pod groups: copies of a group, placed whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api.coscheduling import SUB_GROUPS, minimum_of
from moorage.api.pod import Pod
from moorage.base.errors import UsageError
from moorage.snapshot.group_labels import CUSTOM_SOURCE, LABEL_SOURCE
from moorage.snapshot.pod_groups import GroupKey
from moorage.virtual.live_objects import fresh
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import Key

# The listers of the objects that define groups, by group source; labels need no object.
_LISTERS: Final[Mapping[str, str]] = {
    "": "pod_groups",
    CUSTOM_SOURCE: "coscheduling_groups",
}


class GroupFilling:
    """Adds copies of pod groups.

    Parameters
    ----------
    model
        Has the objects that define the groups.
    """

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._copies = 0

    def group_of(self, pod: Pod) -> GroupKey | None:
        """Return the group of a pod, None for a pod on its own."""
        return self._model.half.core.snapshot.groups.key_of(pod)

    def minimum_of(self, pod: Pod) -> int:
        """Return how many members the group of a pod needs before any is bound.

        Raises
        ------
        UsageError
            The group's object is not there, or the group has sub-groups.
        """
        key = self.group_of(pod)
        assert key is not None, "a pod of a group"
        known = self._model.half.core.snapshot.groups.terms_of(pod)
        if SUB_GROUPS in pod.metadata.annotations or (known is not None and known.parts):
            raise UsageError(
                f"the group {key.full_name} of pod {pod.name} has sub-groups: capacity counts "
                "groups of like pods only; ask what-if about its pods"
            )
        if key.source == LABEL_SOURCE:
            return minimum_of(pod) or 1
        terms = self._model.half.core.snapshot.groups.terms_of(pod)
        if terms is None:
            raise UsageError(
                f"the group {key.full_name} of pod {pod.name} does not exist; apply it first"
            )
        return terms.minimum

    def place(self, members: Sequence[Pod]) -> tuple[dict[str, int], str]:
        """Add one more group with these members, and let time pass.

        Parameters
        ----------
        members
            Pods of one group; they are copied, and the group as well.

        Returns
        -------
        tuple
            How many members each node takes, and ""; or no node, and why a member has none.
        """
        key = self.group_of(members[0])
        assert key is not None, "a pod of a group"
        self._copies += 1
        name = f"{key.name[:200]}-capacity-{self._copies}"
        self._copy_object(key, name)
        evicted = len(self._model.evictions)
        added = [
            self._model.add_pod(_member(pod, key, name, number))
            for number, pod in enumerate(members)
        ]
        self._model.settle()
        now = [self._model.current(pod) for pod in added]
        by_node: dict[str, int] = {}
        for pod in now:
            if pod is not None and pod.spec.node_name:
                by_node[pod.spec.node_name] = by_node.get(pod.spec.node_name, 0) + 1
        if sum(by_node.values()) == len(added) and len(self._model.evictions) == evicted:
            return by_node, ""
        return {}, self._reason(added)

    def _reason(self, members: Iterable[Pod]) -> str:
        reasons = self._model.reasons()
        found = (reasons[pod.uid] for pod in members if pod.uid in reasons)
        return next(found, "room for the group is there only if other pods are evicted")

    def _copy_object(self, key: GroupKey, name: str) -> None:
        """Add the object that defines the copy, if objects define groups of this source."""
        lister = _LISTERS.get(key.source)
        if lister is None:
            return
        known: Mapping[Key, Any] = self._model.objects.lister(lister)
        like = known[key.namespace, key.name]
        metadata = msgspec.structs.replace(like.metadata, name=name, uid=f"uid-{name}")
        copied = msgspec.structs.replace(like, metadata=metadata)
        self._model.put_object(lister, (key.namespace, name), copied)


def _member(pod: Pod, key: GroupKey, name: str, number: int) -> Pod:
    """Return a copy of a pod as a member of the copied group."""
    new = fresh(pod, name=f"{name}-{number}")
    labels = {
        label: name if value == key.name and "pod-group" in label else value
        for label, value in new.metadata.labels.items()
    }
    spec = new.spec
    if spec.scheduling_group is not None:
        group = msgspec.structs.replace(spec.scheduling_group, pod_group_name=name)
        spec = msgspec.structs.replace(spec, scheduling_group=group)
    metadata = msgspec.structs.replace(new.metadata, labels=labels)
    return msgspec.structs.replace(new, metadata=metadata, spec=spec)
