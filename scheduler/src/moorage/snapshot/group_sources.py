"""The in-tree group source: where a pod names its group, and what makes up the group's demands."""

from __future__ import annotations

from typing import Final

from moorage.api.pod import Pod
from moorage.api.pod_group import PodGroup
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_groups import GroupKey, GroupTerms
from moorage.snapshot.sub_groups.composite import CompositeGroups

API_SOURCE: Final = ""


class ApiGroups:
    """The in-tree group source: ``spec.schedulingGroup`` names a PodGroup of the pod's namespace.

    Parameters
    ----------
    lister
        The PodGroups of scheduling.k8s.io/v1alpha2.
    composites
        The composite groups; None where groups of them are not scheduled. Otherwise a pod's group
        is the composite group at the top.
    """

    def __init__(self, lister: Lister[PodGroup], composites: CompositeGroups | None = None) -> None:
        self._lister = lister
        self._composites = composites

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Return the group that a pod names."""
        named = pod.spec.scheduling_group
        if named is None or not named.pod_group_name:
            return None
        namespace, name = pod.metadata.namespace, named.pod_group_name
        if self._composites is not None:
            return self._composites.root_of(namespace, name)
        return GroupKey(namespace, name)

    def terms_of(self, key: GroupKey) -> GroupTerms | None:
        """Return the demands of a group, None while there is no such object."""
        if key.composite:
            return None if self._composites is None else self._composites.terms_of(key)
        group = self._lister.get(key.name, key.namespace)
        return None if group is None else terms_of(group)


def terms_of(group: PodGroup) -> GroupTerms:
    """Return the demands of a PodGroup."""
    spec = group.spec
    gang = spec.scheduling_policy.gang
    return GroupTerms(
        key=GroupKey(group.metadata.namespace, group.metadata.name),
        uid=group.metadata.uid,
        minimum=1 if gang is None else gang.min_count,
        gang=gang is not None,
        priority=spec.priority or 0,
        topology_key=spec.topology_key,
        evicted_whole=spec.disrupted_whole,
        fault=_fault(group),
        created=group.metadata.creation_timestamp or "",
    )


def _fault(group: PodGroup) -> str:
    """Return why a PodGroup is not scheduled by itself; "" if it may be.

    Placed by itself, a part of a composite group could run without the parts that it needs.
    """
    parent = group.spec.parent_composite_pod_group_name
    if not parent:
        return ""
    name = f"{group.metadata.namespace}/{group.metadata.name}"
    return (
        f'pod group {name} is a part of CompositePodGroup "{parent}": composite groups are not '
        "scheduled without the feature gate CompositePodGroup"
    )
