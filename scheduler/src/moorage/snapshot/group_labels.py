"""Group sources of coscheduling, which name a pod's group by labels; and several sources as one.

`CustomGroups` are PodGroups of scheduling.x-k8s.io, named by a label of the pod. `LabelledGroups`
are the groups of 2020, which have no object: the labels of the first known pod are the demands of
the group. `SeveralSources` asks its sources in order. The sources of coscheduling serve only the
pods of profiles that enable its plugin.

Rules: scheduling spec, gang sections B and C (scheduler-plugins ``pkg/coscheduling``). The plugin
of 2020 kept a record of its groups. Here the terms come from the first member that still exists; a
group without pods is forgotten at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

from moorage.api.coscheduling import (
    GROUP_LABEL,
    NAME_LABEL,
    OLD_GROUP_LABEL,
    SCHEDULING_GROUP,
    VOLCANO_GROUP,
    CoschedulingGroup,
    group_naming,
    minimum_of,
)
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.requests import to_units
from moorage.snapshot.group_topology import topology_of
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_groups import (
    GroupKey,
    GroupMembers,
    GroupSource,
    GroupTerms,
    SucceededMembers,
)
from moorage.snapshot.sub_groups.annotation import sub_groups_of

CUSTOM_SOURCE: Final = "custom"
LABEL_SOURCE: Final = "labels"
VOLCANO_SOURCE: Final = "volcano"
"""Groups of Volcano, which no plugin schedules; their pods are told so."""

_SOURCES: Final = {
    SCHEDULING_GROUP: "",
    GROUP_LABEL: CUSTOM_SOURCE,
    NAME_LABEL: LABEL_SOURCE,
    VOLCANO_GROUP: VOLCANO_SOURCE,
}
"""The source of a group, by what names it."""

MembersOf: TypeAlias = Callable[[GroupKey], GroupMembers]


class CustomGroups:
    """The group source of the custom resource: a label names a PodGroup of the pod's namespace.

    Parameters
    ----------
    lister
        The PodGroups of scheduling.x-k8s.io/v1alpha1.
    members_of
        The members of a group; the first member tells its priority.
    """

    def __init__(self, lister: Lister[CoschedulingGroup], members_of: MembersOf) -> None:
        self._lister = lister
        self._members_of = members_of

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Return the group the pod's label names."""
        labels = pod.metadata.labels
        name = labels.get(GROUP_LABEL) or labels.get(OLD_GROUP_LABEL)
        return GroupKey(pod.metadata.namespace, name, CUSTOM_SOURCE) if name else None

    def terms_of(self, key: GroupKey) -> GroupTerms | None:
        """Return the demands of the PodGroup, None while there is no such object."""
        group = self._lister.get(key.name, key.namespace)
        if group is None:
            return None
        spec = group.spec
        first = _first(self._members_of(key))
        annotations, owner = group.metadata.annotations, f"PodGroup {key.full_name}"
        topology = topology_of(annotations)
        parts, fault = sub_groups_of(annotations, owner, spec.min_member)
        return GroupTerms(
            key=key,
            uid=group.metadata.uid,
            topology_key=topology.required or "",
            preferred_topology_key=topology.preferred or "",
            fault=topology.fault(owner) or fault,
            minimum=spec.min_member,
            gang=True,
            priority=0 if first is None else first.priority,
            wait_seconds=float(spec.schedule_timeout_seconds or 0),
            resources=amounts(spec.min_resources),
            created=group.metadata.creation_timestamp or "",
            parts=parts,
        )


class LabelledGroups:
    """The group source of 2020: two labels on each pod, its group's name and minimum.

    Parameters
    ----------
    members_of
        The members of a group; the first member tells its demands.
    """

    def __init__(self, members_of: MembersOf) -> None:
        self._members_of = members_of

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Return the group of a pod that has both labels, and a valid minimum."""
        name = pod.metadata.labels.get(NAME_LABEL)
        if not name or minimum_of(pod) is None:
            return None
        return GroupKey(pod.metadata.namespace, name, LABEL_SOURCE)

    def terms_of(self, key: GroupKey) -> GroupTerms | None:
        """Return the demands of the first known member, None without members."""
        first = _first(self._members_of(key))
        if first is None:
            return None
        annotations, owner = first.metadata.annotations, f"pod {first.full_name}"
        topology = topology_of(annotations)
        minimum = minimum_of(first) or 1
        parts, fault = sub_groups_of(annotations, owner, minimum)
        return GroupTerms(
            key=key,
            topology_key=topology.required or "",
            preferred_topology_key=topology.preferred or "",
            fault=topology.fault(owner) or fault,
            minimum=minimum,
            gang=True,
            priority=first.priority,
            wait_seconds=0.0,
            parts=parts,
        )


class SeveralSources:
    """A `GroupSource` made of several sources; the first source that knows a pod counts.

    Parameters
    ----------
    sources
        The sources by the `GroupKey.source` of their groups, in the order in which they are asked.
    open_to
        The ``schedulerName`` of each profile, by source, for sources that serve some profiles only.
    succeeded
        The members that have succeeded; they count towards the minimum of their group.
    """

    def __init__(
        self,
        sources: Mapping[str, GroupSource],
        open_to: Mapping[str, Collection[str]],
        succeeded: SucceededMembers,
    ) -> None:
        self._sources = dict(sources)
        self._succeeded = succeeded
        profiles = dict.fromkeys(name for names in open_to.values() for name in names)
        self._everybody = tuple(each for name, each in sources.items() if name not in open_to)
        self._by_profile = {
            profile: tuple(
                each
                for name, each in sources.items()
                if name not in open_to or profile in open_to[name]
            )
            for profile in profiles
        }

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Return the group of a pod from the first source that has a group for it."""
        for source in self._by_profile.get(pod.spec.scheduler_name, self._everybody):
            key = source.key_of(pod)
            if key is not None:
                return key
        return None

    def terms_of(self, key: GroupKey) -> GroupTerms | None:
        """Return the demands of a group, None while it does not exist."""
        source = self._sources.get(key.source)
        terms = None if source is None else source.terms_of(key)
        return None if terms is None else self._succeeded.missing(terms)


def named_group(pod: Pod) -> GroupKey | None:
    """Return the group that a pod names in any form, whether groups of this form are scheduled."""
    named = group_naming(pod)
    if named is None:
        return None
    by, name = named
    return GroupKey(pod.metadata.namespace, name, _SOURCES[by])


def amounts(resources: Mapping[str, str | int | float]) -> tuple[tuple[str, int], ...]:
    """Return quantities in the scheduler's units by name; invalid quantities are left out."""
    amounts_by_name: list[tuple[str, int]] = []
    for name in sorted(resources):
        try:
            amounts_by_name.append((name, to_units(name, parse_quantity(resources[name]))))
        except ValueError:
            continue
    return tuple(amounts_by_name)


def _first(members: GroupMembers) -> Pod | None:
    return next(iter(members.pods.values()), None)
