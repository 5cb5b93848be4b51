"""Which pods name a group that their profile does not schedule, and what would turn groups on."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS, GROUP_LABEL, VOLCANO_GROUP
from moorage.api.pod import Pod
from moorage.api.pod_group import GROUP_SCHEDULING
from moorage.api.resources import POD_GROUPS
from moorage.config.feature_gates import group_flag
from moorage.framework.profile import Profile
from moorage.service.intake.pod_store import PodStore
from moorage.snapshot.group_labels import CUSTOM_SOURCE, VOLCANO_SOURCE, named_group
from moorage.snapshot.group_sources import API_SOURCE
from moorage.snapshot.pod_groups import GroupKey, PodGroups

PodKey = tuple[str, str]

_PODS_A_LOOK: Final = 5000
"""Pods are looked at in portions: so many take the loop about 5 ms."""
_KINDS: Final = {
    API_SOURCE: f"PodGroup of {POD_GROUPS.group}",
    CUSTOM_SOURCE: f"PodGroup of {COSCHEDULING_POD_GROUPS.group}",
    VOLCANO_SOURCE: f"annotation {VOLCANO_GROUP}",
}
_COSCHEDULING: Final = (
    "in every profile, plugins: {multiPoint: {enabled: [{name: Coscheduling}], "
    "disabled: [{name: PrioritySort}]}}"
)
_LABEL: Final = (
    f"make a PodGroup of {COSCHEDULING_POD_GROUPS.group}, and give its pods the label {GROUP_LABEL}"
)


class DisabledGroups:
    """The groups that pods name and that no plugin of the pod's profile schedules.

    Parameters
    ----------
    store
        Every pod; its log says which have changed.
    groups
        The groups that are scheduled.
    profiles
        By schedulerName; the content changes at a reload.
    """

    def __init__(self, store: PodStore, groups: PodGroups, profiles: Mapping[str, Profile]) -> None:
        self._store = store
        self._groups = groups
        self._profiles = profiles
        self._position: int | None = None
        self._changed: dict[PodKey, None] = {}
        self._key_of: dict[PodKey, GroupKey] = {}
        self._pods: dict[GroupKey, dict[PodKey, None]] = {}
        # Pods with a condition although their group is scheduled.
        self._outdated: dict[PodKey, None] = {}

    def reason_for(self, pod: Pod) -> str:
        """Return why the group that a pod names is not scheduled, and what would help; or ""."""
        key, profile = named_group(pod), self._profiles.get(pod.spec.scheduler_name)
        if key is None or profile is None:
            return ""
        scheduled = self._groups.key_of(pod)
        if scheduled is None:
            return _without_source(key, profile)
        if scheduled.source in profile.group_holders:
            return ""
        terms = self._groups.source.terms_of(scheduled)
        if terms is None or not terms.gang:
            return ""
        return _text(
            key,
            f"profile {profile.name} has no plugin GangScheduling",
            group_flag(profile.handle.gates.version),
        )

    def reason_for_object(self, key: GroupKey) -> str:
        """Return why a group is not scheduled that no pod names, and what would help; or ""."""
        if any(key.source in profile.group_holders for profile in self._profiles.values()):
            return ""
        return _without_source(key, self._profiles[self.first_profile])

    @property
    def first_profile(self) -> str:
        """The schedulerName of the first profile."""
        return next(iter(self._profiles))

    def update(self) -> None:
        """Take in pods that have changed since the last call; many need several calls."""
        log = self._store.log
        changed = None if self._position is None else log.since(self._position)
        self._position = log.position
        if changed is None:
            changed = [*self._key_of, *(pod.key for pod in self._store.all_pods())]
        self._changed.update(dict.fromkeys(changed))
        for key in list(islice(self._changed, _PODS_A_LOOK)):
            del self._changed[key]
            self._take_pod(key)

    def members(self) -> dict[GroupKey, tuple[str, list[Pod]]]:
        """Return the groups by name, each with the reason and the pods that name it."""
        groups: dict[GroupKey, tuple[str, list[Pod]]] = {}
        for key in sorted(self._pods):
            pods = [pod for each in sorted(self._pods[key]) if (pod := self._store.get(*each))]
            reason = next(filter(None, map(self.reason_for, pods)), "")
            if reason:
                groups[key] = reason, pods
        return groups

    def take_outdated(self) -> list[tuple[Pod, GroupKey]]:
        """Return the pods with a condition whose groups are scheduled, with the groups; once."""
        outdated, self._outdated = self._outdated, {}
        pods = [pod for each in outdated if (pod := self._store.get(*each)) is not None]
        return [(pod, key) for pod in pods if (key := self._groups.key_of(pod)) is not None]

    def _take_pod(self, pod_key: PodKey) -> None:
        before = self._key_of.pop(pod_key, None)
        if before is not None:
            del self._pods[before][pod_key]
            if not self._pods[before]:
                del self._pods[before]
        pod = self._store.get(*pod_key)
        key = None if pod is None else named_group(pod)
        if pod is None or key is None:
            return
        profile = self._profiles.get(pod.spec.scheduler_name)
        if profile is None:
            return
        scheduled = self._groups.key_of(pod)
        if scheduled is None or scheduled.source not in profile.group_holders:
            self._key_of[pod_key] = key
            self._pods.setdefault(key, {})[pod_key] = None
        elif any(
            each.type == GROUP_SCHEDULING and each.status == "False"
            for each in pod.status.conditions
        ):
            self._outdated[pod_key] = None


def _without_source(key: GroupKey, profile: Profile) -> str:
    if key.source == VOLCANO_SOURCE:
        return _text(key, "groups of Volcano are not read", _LABEL)
    if key.source == API_SOURCE:
        return _text(
            key, "the feature gate GenericWorkload is off", group_flag(profile.handle.gates.version)
        )
    return _text(key, f"profile {profile.name} has no plugin Coscheduling", _COSCHEDULING)


def _text(key: GroupKey, cause: str, remedy: str) -> str:
    kind = _KINDS.get(key.source, "labels")
    return (
        f"pod group {key.full_name} ({kind}) is not scheduled as a group, each of its pods is "
        f"placed on its own: {cause}. To schedule groups: {remedy}; or start the sandbox or "
        "scheduler with --groups"
    )
