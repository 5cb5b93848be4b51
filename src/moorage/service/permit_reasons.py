"""The reason why a group waits, if its members are placed one by one (``groupMode: permit``).

A failed attempt knows the reason of one member. Members that waited at Permit come back only with
the news that they were turned away. `PermitReasons` completes both messages, and tells the group.
Where members are tried together, `moorage.service.group_attempt` does this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.framework.diagnosis import Diagnosis
from moorage.framework.group import FAILED_RECENTLY
from moorage.framework.profile import Profile
from moorage.framework.status import Status
from moorage.service.group_status import GroupReports
from moorage.service.incomplete_groups import lack_of
from moorage.snapshot.pod_groups import GroupKey, GroupMembers, GroupTerms, PodGroups
from moorage.state.queued_pod import QueuedPod

_FORGET_MIN: Final = 64  # groups without members are not looked for before; a guess


class PermitReasons:
    """Completes the messages of members with the reason of their group.

    Parameters
    ----------
    groups
        The groups and their members.
    reports
        Writes conditions and Events of groups.
    holders
        For each profile whose members are placed one by one: the plugin that holds the members at
        Permit, by group source.
    """

    def __init__(
        self, groups: PodGroups, reports: GroupReports, holders: Mapping[str, Mapping[str, str]]
    ) -> None:
        self._groups = groups
        self._reports = reports
        self._holders = holders
        self._reasons: dict[GroupKey, str] = {}
        self._forget_at = _FORGET_MIN

    def message_of(
        self, queued: QueuedPod, status: Status, diagnosis: Diagnosis | None, message: str
    ) -> str:
        """Return the message for a pod whose attempt failed; tell the reason to its group.

        Parameters
        ----------
        queued
            The pod.
        status, diagnosis, message
            The failure, as `FailureHandler.handle` has it.
        """
        holders = self._holders.get(queued.profile)
        key = None if holders is None else self._groups.key_of(queued.pod)
        terms = None if key is None else self._groups.source.terms_of(key)
        if holders is None or key is None or terms is None or not terms.gang:
            return message
        members = self._groups.members(key)
        if members.placed >= terms.minimum:
            self._reasons.pop(key, None)
            return message
        missing = lack_of(key, terms, members, gates=True)
        if missing:
            note = self._keep(key, missing)
        elif _by_its_group(status, diagnosis, holders.get(key.source, "")):
            note = self._reasons.get(key, "")
            return _joined(message, note) if note else message
        else:
            note = f"pod group {key.full_name}: {_places(members, terms)}"
            self._keep(key, f"{note}, {_without(queued, members)} none: {message}")
        self._reports.waits(key, self._reasons[key], queued.pod)
        return _joined(message, note)

    def _keep(self, key: GroupKey, reason: str) -> str:
        self._reasons[key] = reason
        if len(self._reasons) >= self._forget_at:
            here = self._groups.all()
            self._reasons = {each: text for each, text in self._reasons.items() if each in here}
            self._forget_at = 2 * len(self._reasons) + _FORGET_MIN
        return reason


def holders_at_permit(profiles: Mapping[str, Profile]) -> dict[str, Mapping[str, str]]:
    """Return what `PermitReasons` takes as holders."""
    return {
        name: profile.group_holders
        for name, profile in profiles.items()
        if profile.handle.group_mode == "permit" and profile.group_holders
    }


def _by_its_group(status: Status, diagnosis: Diagnosis | None, holder: str) -> bool:
    """Whether a member failed for its group alone: turned away at Permit, or tried too soon."""
    if FAILED_RECENTLY in status.message:
        return True
    return (
        diagnosis is not None
        and not diagnosis.pre_filter_message
        and diagnosis.unschedulable_plugins == {holder}
    )


def _places(members: GroupMembers, terms: GroupTerms) -> str:
    return f"{members.placed} of {terms.minimum} pods needed have a node"


def _without(queued: QueuedPod, members: GroupMembers) -> str:
    others = len([uid for uid in members.waiting if uid != queued.uid])
    name = queued.pod.full_name
    return f"{name} and {others} more have" if others else f"{name} has"


def _joined(message: str, note: str) -> str:
    return f"{message} {note}" if message.endswith(".") else f"{message}. {note}"
