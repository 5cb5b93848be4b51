"""Writes conditions outside attempts: missing members of groups, and placement.

PreEnqueue keeps the members of an incomplete group of Kubernetes out of the queue, so no attempt
reports a reason. Members of coscheduling's groups are tried when they arrive, and their conditions
name the members of that moment. A task looks at the groups every second and reports a lack that
has lasted since the look before: the pods of a new group arrive one after another. Where members
are placed one by one, the task also reports the groups of Kubernetes that have enough places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.base import aio
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.runner import run_group_gates
from moorage.framework.status import SUCCESS
from moorage.service.core import Core
from moorage.service.groups.group_status import GroupReports
from moorage.snapshot.group_labels import CUSTOM_SOURCE, LABEL_SOURCE
from moorage.snapshot.pod_groups import GroupKey, GroupMembers, GroupTerms

_LOOK_SECONDS: Final = 1.0
_WRITES_A_LOOK: Final = 50
"""Conditions that are worth a second of waiting for the next member. A guess; without it, a group
of 1000 pods that arrive slowly would cost half a million writes."""
_MINIMUM: Final = {"": "minCount", CUSTOM_SOURCE: "minMember", LABEL_SOURCE: "min-available"}
"""The name of a group's minimum in manifests, by group source."""


class _Lack(msgspec.Struct):
    """The lack of a group.

    Parameters
    ----------
    text
        The lack.
    looks
        For how many looks the lack has been the same.
    """

    text: str
    looks: int = 0


class IncompleteGroups:
    """Looks for groups that lack pods, and has each lack reported once.

    Parameters
    ----------
    core
        The groups, their members, and the plugins of the profiles.
    reports
        Writes conditions and Events.
    one_by_one
        The profiles whose members are placed one by one.
    """

    def __init__(
        self,
        core: Core,
        reports: GroupReports,
        *,
        one_by_one: Collection[str] = (),
    ) -> None:
        self._core = core
        self._groups = core.snapshot.groups
        self._reports = reports
        self._one_by_one = one_by_one
        self._lacks: dict[GroupKey, _Lack] = {}
        self._reported: dict[GroupKey, str] = {}
        # Lacks that ended: conditions of members at Permit may still name them.
        self._ended: dict[GroupKey, str] = {}

    async def run(self) -> None:
        """Look every second until cancelled."""
        while True:
            self.look()
            await aio.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Report new groups with enough places, and each lack that was there at the last look."""
        if self._one_by_one:
            self._report_placed()
        for key in self._reports.take_attempted():
            self._reported.pop(key, None)  # the attempt wrote over the lack
        lacking = lacking_groups(self._core, self._one_by_one)
        lacks = {key: self._since(key, text) for key, text in lacking.items()}
        for key, lack in lacks.items():
            if lack.looks and self._reported.get(key) != lack.text:
                self._report_lack(key, lack)
        self._lacks = lacks
        self._ended |= {key: text for key, text in self._reported.items() if key not in lacks}
        self._reported = {key: text for key, text in self._reported.items() if key in lacks}
        for key, text in list(self._ended.items()):
            if not self._rewrite_members(key, text):
                del self._ended[key]

    def _rewrite_members(self, key: GroupKey, lack: str) -> bool:
        """Rewrite members at Permit that name a lack that ended; tell whether some may name it yet.

        No attempt about a member that waits at Permit writes its condition anew.
        """
        members = self._groups.members(key)
        if key in self._lacks or not members.pods:
            return False
        at_permit = [members.pods[uid] for uid in members.assumed if self._core.waiting.find(uid)]
        rewritten = self._reports.report_places(key, at_permit, lack)
        return rewritten or bool(members.waiting)

    def _since(self, key: GroupKey, text: str) -> _Lack:
        before = self._lacks.get(key)
        return _Lack(text, before.looks + 1 if before and before.text == text else 0)

    def _report_lack(self, key: GroupKey, lack: _Lack) -> None:
        """Report a lack, unless more members than have been waited for would be written to."""
        members = list(members_lacking(self._core, key, lack.text, one_by_one=self._one_by_one))
        outdated = self._reports.outdated(members)
        if lack.looks > len(outdated) // _WRITES_A_LOOK:
            self._reports.incomplete(key, lack.text, members, outdated)
            self._reported[key] = lack.text

    def _report_placed(self) -> None:
        for key, members in self._groups.all_groups().items():
            terms = self._groups.source.terms_of(key)
            if terms is None or key.source or not _is_one_by_one(members, self._one_by_one):
                continue
            if not self._groups.missing_for(terms):
                self._reports.placed(key)


def lacking_groups(core: Core, one_by_one: Collection[str] = ()) -> dict[GroupKey, str]:
    """Return the lack of each group with waiting members that lacks pods.

    Parameters
    ----------
    core
        The groups, their members, and the plugins of the profiles.
    one_by_one
        The profiles whose members are placed one by one.
    """
    groups = core.snapshot.groups
    lacks: dict[GroupKey, str] = {}
    for key, members in groups.all_groups().items():
        terms = groups.source.terms_of(key)
        if not members.waiting or (key.source and terms is None):
            continue  # attempts report a missing PodGroup of coscheduling, without a number
        # A group that is tried as a whole tells of its gates after the attempt.
        text = lack_of(key, terms, members, gates=_is_one_by_one(members, one_by_one))
        if text:
            lacks[key] = text
    return lacks


def members_lacking(
    core: Core, key: GroupKey, lack: str, *, one_by_one: Collection[str] = ()
) -> Iterator[tuple[Pod, str]]:
    """Yield each waiting member of a group that lacks pods, with what an attempt would say now.

    Where members are tried one by one, that is the lack itself.
    """
    nodes = core.snapshot.num_nodes
    for pod in core.snapshot.groups.members(key).waiting_pods():
        name = pod.spec.scheduler_name
        profile = None if name in one_by_one else core.profiles.get(name)
        status = SUCCESS if profile is None else run_group_gates(profile, pod)
        if status.ok:
            yield pod, lack
        else:
            yield pod, Diagnosis(num_nodes=nodes, pre_filter_message=status.message).message


def _is_one_by_one(members: GroupMembers, one_by_one: Collection[str]) -> bool:
    first = next(iter(members.pods.values()))
    return first.spec.scheduler_name in one_by_one


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
        return f"{'CompositePodGroup' if key.composite else 'PodGroup'} {key.full_name} not found"
    if terms.fault and not key.source:
        return terms.fault  # attempts report the faults of coscheduling's groups
    number, gated = len(members.pods), len(members.gated) if gates else 0
    if not terms.gang or not members.pods_missing(terms, ready=gates):
        return ""
    gates_note = f", {gated} of them with scheduling gates" if gated else ""
    number += terms.succeeded
    if terms.parts is not None and (lack := terms.parts.lack(members.pods.values())):
        return f"pod group {key.full_name} lacks pods: {lack}{terms.succeeded_note}{gates_note}"
    return (
        f"pod group {key.full_name} lacks pods: {number} {'exists' if number == 1 else 'exist'}"
        f"{terms.succeeded_note}{gates_note}, {_MINIMUM[key.source]} is {terms.declared_minimum}"
    )
