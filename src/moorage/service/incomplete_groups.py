"""Tells the groups of Kubernetes that lack pods, or their PodGroup; their members are not tried.

PreEnqueue keeps the members of an incomplete group out of the queue, so no attempt reports a
reason. A task looks at the groups every second and reports a lack that has lasted since the look
before: the pods of a new group arrive one after another.
"""

from __future__ import annotations

from typing import Final

from moorage.base import aio
from moorage.service.group_status import GroupReports
from moorage.snapshot.pod_groups import GroupKey, GroupTerms, PodGroups

_LOOK_SECONDS: Final = 1.0


class IncompleteGroups:
    """Looks for groups of Kubernetes that lack pods, and has each lack reported once.

    Parameters
    ----------
    groups
        The groups and their members.
    reports
        Writes conditions and Events.
    """

    def __init__(self, groups: PodGroups, reports: GroupReports) -> None:
        self._groups = groups
        self._reports = reports
        self._seen: dict[GroupKey, str] = {}
        self._told: dict[GroupKey, str] = {}

    async def run(self) -> None:
        """Look every second until cancelled."""
        while True:
            self.look()
            await aio.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Report each lack that was there at the last look and was not reported yet."""
        lacking = self._lacking()
        for key, text in lacking.items():
            if self._seen.get(key) == text and self._told.get(key) != text:
                members = self._groups.members(key)
                self._reports.incomplete(key, text, members.waiting_pods()[0])
                self._told[key] = text
        self._seen = lacking
        self._told = {key: text for key, text in self._told.items() if key in lacking}

    def _lacking(self) -> dict[GroupKey, str]:
        source = self._groups.source
        found: dict[GroupKey, str] = {}
        for key, members in self._groups.all().items():
            if key.source or not members.waiting:
                continue
            text = lack_of(key, source.terms_of(key), len(members.pods))
            if text:
                found[key] = text
        return found


def lack_of(key: GroupKey, terms: GroupTerms | None, pods: int) -> str:
    """Return what a group lacks; "" for nothing."""
    if terms is None:
        return f"PodGroup {key.full_name} not found"
    if not terms.gang or pods >= terms.minimum:
        return ""
    verb = "exists" if pods == 1 else "exist"
    return f"pod group {key.full_name} lacks pods: {pods} {verb}, minCount is {terms.minimum}"
