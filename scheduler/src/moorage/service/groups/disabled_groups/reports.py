"""Reports each group that no plugin schedules, on the group and on one member: what would do it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import encode
from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.meta import Condition, ObjectReference
from moorage.api.pod import Pod
from moorage.api.pod_group import GROUP_SCHEDULING, GROUPS_NOT_SCHEDULED
from moorage.api.resources import POD_GROUPS, ResourceType
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock, rfc3339
from moorage.base.errors import MoorageError, NotFoundError
from moorage.client.event_series import EventNote
from moorage.client.events import EventRecorder
from moorage.client.requests import MERGE_PATCH
from moorage.client.writes import Client
from moorage.config.gate_table import V1_36
from moorage.service.binding.pod_writes import PodWrites, reference
from moorage.service.groups.disabled_groups.index import DisabledGroups
from moorage.service.groups.group_status import CONDITIONS
from moorage.snapshot.group_labels import CUSTOM_SOURCE
from moorage.snapshot.group_sources import API_SOURCE
from moorage.snapshot.pod_groups import GroupKey

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
_REPORTS_A_LOOK: Final = 20
"""A guess: a cluster with a thousand such groups should not be flooded with writes."""
_ON: Final = "GroupsScheduled"
_RESOURCES: Final[dict[str, ResourceType]] = {
    API_SOURCE: POD_GROUPS,
    CUSTOM_SOURCE: COSCHEDULING_POD_GROUPS,
}


class DisabledGroupReports:
    """Writes conditions and Events about groups that are not scheduled.

    Parameters
    ----------
    index
        The groups.
    client
        The API verbs.
    writes, recorder
        Conditions of pods, and Events.
    clock, tasks
        For transition times, and the writes about groups.
    version
        The emulated version of Kubernetes.
    """

    def __init__(
        self,
        index: DisabledGroups,
        client: Client,
        *,
        writes: PodWrites,
        recorder: EventRecorder,
        clock: Clock,
        tasks: TaskOwner,
        version: str = V1_36,
    ) -> None:
        self._index = index
        self._types = {API_SOURCE: CONDITIONS[version], CUSTOM_SOURCE: GROUP_SCHEDULING}
        self._client = client
        self._writes = writes
        self._recorder = recorder
        self._clock = clock
        self._tasks = tasks
        self._objects: dict[GroupKey, None] = {}
        self._reported: dict[GroupKey, str] = {}
        self._logged: dict[str, None] = {}

    async def run(self) -> None:
        """Look every second until cancelled."""
        while True:
            self.look()
            await aio.sleep(_LOOK_SECONDS)

    def take_object(self, key: GroupKey, exists: bool) -> None:
        """Take in that the object of a group exists, or is gone."""
        if exists:
            self._objects[key] = None
        else:
            self._objects.pop(key, None)

    def look(self) -> None:
        """Report each group once, and take conditions back that are no longer true."""
        self._index.update()
        members = self._index.members()
        due = [key for key, (reason, _) in members.items() if self._reported.get(key) != reason]
        for key in due[:_REPORTS_A_LOOK]:
            reason, pods = members[key]
            self._reported[key] = reason
            self._report(key, reason, pods)
        alone = [key for key in self._objects if key not in self._reported]
        for key in alone[:_REPORTS_A_LOOK]:
            self._reported[key] = reason = self._index.reason_for_object(key)
            if reason:
                self._log(key, reason)
                self._report_object(key, reason, controller=self._index.first_profile)
        kept = members.keys() | self._objects.keys()
        self._reported = {key: text for key, text in self._reported.items() if key in kept}
        self._take_back()

    def _report(self, key: GroupKey, reason: str, pods: Sequence[Pod]) -> None:
        """Report a group to its object, and to the first member unless a member was told before."""
        self._log(key, reason)
        if any(_says(pod, reason) for pod in pods):
            return
        # A member without a node is one that somebody will look at.
        first = min(pods, key=lambda pod: (bool(pod.spec.node_name), pod.key))
        self._report_member(first, reason)
        self._report_object(key, reason, controller=first.spec.scheduler_name)

    def _log(self, key: GroupKey, reason: str) -> None:
        """Log the first group of each source; others may be many, and have their Events."""
        if key.source not in self._logged:
            self._logged[key.source] = None
            _log.warning("%s", reason)

    def _report_member(self, pod: Pod, reason: str) -> None:
        wanted = Condition(
            type=GROUP_SCHEDULING,
            status="False",
            reason=GROUPS_NOT_SCHEDULED,
            message=reason,
            observed_generation=pod.metadata.generation,
        )
        self._writes.report_status(pod, wanted, nominated=None)
        self._record(reference(pod), reason, controller=pod.spec.scheduler_name)

    def _record(self, regarding: ObjectReference, note: str, *, controller: str) -> None:
        self._recorder.record_event(
            EventNote(
                regarding=regarding,
                controller=controller,
                type="Warning",
                reason=GROUPS_NOT_SCHEDULED,
                action="Scheduling",
                note=note,
            )
        )

    def _report_object(self, key: GroupKey, reason: str, *, controller: str) -> None:
        if key.source in _RESOURCES:
            write = self._write_object(key, reason, controller)
            self._tasks.spawn(write, name=f"report of pod group {key.full_name}")

    async def _write_object(self, key: GroupKey, reason: str, controller: str) -> None:
        """Write condition and Event to the object of a group; it need not exist or be readable."""
        resource = _RESOURCES[key.source]
        try:
            group: Any = await self._client.get(resource, key.name, namespace=key.namespace)
            meta = group["metadata"]
            regarding = ObjectReference(
                kind=resource.kind,
                api_version=str(group.get("apiVersion") or resource.api_version),
                namespace=key.namespace,
                name=key.name,
                uid=meta["uid"],
                resource_version=meta["resourceVersion"],
            )
            self._record(regarding, reason, controller=controller)
            condition = {
                "type": self._types[key.source],
                "status": "False",
                "reason": GROUPS_NOT_SCHEDULED,
                "message": reason,
                "lastTransitionTime": rfc3339(self._clock.now_ns()),
                "observedGeneration": meta.get("generation") or 0,
            }
            await self._patch_conditions(resource, group, [condition])
        except NotFoundError:
            return  # a pod may name a group that does not exist
        except MoorageError as problem:
            _log.info("pod group %s could not be told: %s", key.full_name, problem)

    async def _patch_conditions(
        self, resource: ResourceType, obj: Any, wanted: list[dict[str, Any]]
    ) -> None:
        """Set conditions of an object; those of their types that it has are replaced."""
        types = {GROUP_SCHEDULING, *(each["type"] for each in wanted)}
        before = (obj.get("status") or {}).get("conditions") or []
        conditions = [*(each for each in before if each.get("type") not in types), *wanted]
        if conditions == before:
            return
        meta = obj["metadata"]
        await self._client.patch(
            resource,
            meta["name"],
            encode({"status": {"conditions": conditions}}),
            namespace=meta["namespace"],
            subresource="status",
            content_type=MERGE_PATCH,
        )

    def _take_back(self) -> None:
        """Say to members and groups of before a restart that their groups are scheduled now."""
        for pod, key in self._index.take_outdated():
            old = next(each for each in pod.status.conditions if each.type == GROUP_SCHEDULING)
            now = msgspec.structs.replace(old, status="True", reason=_ON, message="")
            self._writes.report_status(pod, now, nominated=None)
            if key.source == CUSTOM_SOURCE:
                name = f"report of pod group {key.full_name}"
                self._tasks.spawn(self._clear_object(key), name=name)

    async def _clear_object(self, key: GroupKey) -> None:
        resource = _RESOURCES[key.source]
        try:
            found: Any = await self._client.get(resource, key.name, namespace=key.namespace)
            await self._patch_conditions(resource, found, [])
        except MoorageError as problem:
            _log.info("pod group %s could not be told: %s", key.full_name, problem)


def _says(pod: Pod, reason: str) -> bool:
    return any(
        each.type == GROUP_SCHEDULING and each.message == reason for each in pod.status.conditions
    )
