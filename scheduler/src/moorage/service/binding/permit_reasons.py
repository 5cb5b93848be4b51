"""The reason why a group waits, if its members are placed one by one (``groupMode: permit``).

A failed attempt knows the reason of one member. Members that waited at Permit come back only with
the news that they were turned away. `PermitReasons` completes both messages, and tells the group.
Where members are tried together, `moorage.service.groups.group_attempt` does this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.framework.diagnosis import Diagnosis
from moorage.framework.group import FAILED_RECENTLY
from moorage.framework.profile import Profile
from moorage.framework.status import Status
from moorage.service.groups.group_status import GroupReports
from moorage.service.groups.incomplete_groups import lack_of
from moorage.snapshot.pod_groups import GroupKey, GroupMembers, GroupTerms, PodGroups
from moorage.state.queued_pod import QueuedPod

_FORGET_MIN: Final = 64  # groups without members are not looked for before; a guess


class _Reason(msgspec.Struct):
    """Why a group waits.

    Parameters
    ----------
    text
        The reason.
    placed
        The number of members that had a node.
    reported
        The uids of the members that reported since.
    """

    text: str
    placed: int
    reported: set[str] = msgspec.field(default_factory=set)


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
        self._reasons: dict[GroupKey, _Reason] = {}
        self._forget_at = _FORGET_MIN

    def tried_too_soon(self, queued: QueuedPod, status: Status) -> bool:
        """Whether a pod was refused only because its group failed a moment ago."""
        return FAILED_RECENTLY in status.message and self._gang_of(queued) is not None

    def repeats(self, queued: QueuedPod, status: Status) -> bool:
        """Whether a rejection tells nothing that is not reported already.

        A group that waits wakes itself with the room that its members give back, because another
        member may come first then. Each time another member may be the one without a node. The
        reason that counts the most members with a node stays.
        """
        if queued.has_news or not status.rejected:
            return False
        key = self._gang_of(queued)
        reason = None if key is None else self._reasons.get(key)
        if key is None or reason is None or queued.uid not in reason.reported:
            return False
        return self._groups.members(key).placed <= reason.placed

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
        key = self._gang_of(queued)
        terms = None if key is None else self._groups.source.terms_of(key)
        if key is None or terms is None:
            return message
        members, holder = self._groups.members(key), self._holders[queued.profile].get(key.source)
        if not self._groups.missing_for(terms):
            self._reasons.pop(key, None)
            return message
        missing = lack_of(key, terms, members, gates=True)
        if missing:
            note = self._keep_reason(key, missing, members).text
        elif _by_its_group(status, diagnosis, holder or ""):
            reason = self._reasons.get(key)
            if reason is None:
                return message
            reason.reported.add(queued.uid)
            return _joined(message, reason.text)
        else:
            note = f"pod group {key.full_name}: {_places(members, terms)}"
            self._keep_reason(key, f"{note}, {_without(queued, members)} none: {message}", members)
        self._reasons[key].reported.add(queued.uid)
        if not (missing and key.source):  # a lack of pods is reported once it lasts
            self._reports.waits(key, self._reasons[key].text, queued.pod)
        return _joined(message, note)

    def _gang_of(self, queued: QueuedPod) -> GroupKey | None:
        """Return the group of a pod that is tried by itself; None where it needs no other pod."""
        if queued.profile not in self._holders:
            return None
        key = self._groups.key_of(queued.pod)
        terms = None if key is None else self._groups.source.terms_of(key)
        return key if terms is not None and terms.gang else None

    def _keep_reason(self, key: GroupKey, text: str, members: GroupMembers) -> _Reason:
        """Keep the reason of a group; a new one is to be reported by every member."""
        reason = self._reasons.get(key)
        if reason is None or reason.text != text:
            reason = self._reasons[key] = _Reason(text, members.placed)
        if len(self._reasons) >= self._forget_at:
            here = self._groups.all_groups()
            self._reasons = {each: kept for each, kept in self._reasons.items() if each in here}
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
    return f"{terms.share(members.placed)} pods needed have a node{terms.succeeded_note}"


def _without(queued: QueuedPod, members: GroupMembers) -> str:
    others = len([uid for uid in members.waiting if uid != queued.uid])
    name = queued.pod.full_name
    return f"{name} and {others} more have" if others else f"{name} has"


def _joined(message: str, note: str) -> str:
    return f"{message} {note}" if message.endswith(".") else f"{message}. {note}"
