"""Writes conditions outside attempts to groups of Kubernetes: missing members, and placement.

PreEnqueue keeps the members of an incomplete group out of the queue, so no attempt reports a
reason. A task looks at the groups every second and reports a lack that has lasted since the look
before: the pods of a new group arrive one after another. Where members are placed one by one, the
task also reports the groups that have enough places.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from moorage.base import aio
from moorage.service.group_status import GroupReports
from moorage.snapshot.group_labels import CUSTOM_SOURCE, LABEL_SOURCE
from moorage.snapshot.pod_groups import GroupKey, GroupMembers, GroupTerms, PodGroups

_LOOK_SECONDS: Final = 1.0
_MINIMUM: Final = {"": "minCount", CUSTOM_SOURCE: "minMember", LABEL_SOURCE: "min-available"}
"""The name of a group's minimum in manifests, by group source."""


class IncompleteGroups:
    """Looks for groups of Kubernetes that lack pods, and has each lack reported once.

    Parameters
    ----------
    groups
        The groups and their members.
    reports
        Writes conditions and Events.
    one_by_one
        The profiles whose members are placed one by one.
    """

    def __init__(
        self, groups: PodGroups, reports: GroupReports, *, one_by_one: Collection[str] = ()
    ) -> None:
        self._groups = groups
        self._reports = reports
        self._one_by_one = one_by_one
        self._seen: dict[GroupKey, str] = {}
        self._told: dict[GroupKey, str] = {}

    async def run(self) -> None:
        """Look every second until cancelled."""
        while True:
            self.look()
            await aio.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Report new groups with enough places, and each lack that was there at the last look."""
        if self._one_by_one:
            self._report_placed()
        lacking = self._lacking()
        for key, text in lacking.items():
            if self._seen.get(key) == text and self._told.get(key) != text:
                members = self._groups.members(key)
                self._reports.incomplete(key, text, members.waiting_pods()[0])
                self._told[key] = text
        self._seen = lacking
        self._told = {key: text for key, text in self._told.items() if key in lacking}

    def _report_placed(self) -> None:
        for key, members in self._groups.all_groups().items():
            terms = self._groups.source.terms_of(key)
            if terms is None or key.source or not self._is_one_by_one(members):
                continue
            if members.placed >= terms.minimum:
                self._reports.placed(key)

    def _is_one_by_one(self, members: GroupMembers) -> bool:
        first = next(iter(members.pods.values()))
        return first.spec.scheduler_name in self._one_by_one

    def _lacking(self) -> dict[GroupKey, str]:
        source = self._groups.source
        found: dict[GroupKey, str] = {}
        for key, members in self._groups.all_groups().items():
            if key.source or not members.waiting:
                continue
            # A group that is tried as a whole tells of its gates after the attempt.
            one_by_one = self._is_one_by_one(members)
            text = lack_of(key, source.terms_of(key), members, gates=one_by_one)
            if text:
                found[key] = text
        return found


def lack_of(
    key: GroupKey, terms: GroupTerms | None, members: GroupMembers, *, gates: bool = False
) -> str:
    """Return the lack of a group; "" without one.

    Parameters
    ----------
    key, terms, members
        The group.
    gates
        Whether pods with scheduling gates count as missing.
    """
    if terms is None:
        return f"PodGroup {key.full_name} not found"
    number, gated = len(members.pods), len(members.gated) if gates else 0
    if not terms.gang or number - gated >= terms.minimum:
        return ""
    held = f", {gated} of them with scheduling gates" if gated else ""
    number += terms.succeeded
    return (
        f"pod group {key.full_name} lacks pods: {number} {'exists' if number == 1 else 'exist'}"
        f"{held}, {_MINIMUM[key.source]} is {terms.declared_minimum}"
    )
