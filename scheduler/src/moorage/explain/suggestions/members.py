"""Suggestions that change a group: the members that it lacks, or a smaller minimum of members."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import msgspec

from moorage.api.codec import to_dict
from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS, CoschedulingGroup
from moorage.api.pod import Pod, PodStatus
from moorage.explain.answer import ObjectChange, Suggestion
from moorage.explain.groups import Together
from moorage.explain.patches import patch_command
from moorage.explain.suggestions.ranked import MEMBER, MINIMUM, RankedSuggestion
from moorage.snapshot.group_labels import CUSTOM_SOURCE
from moorage.snapshot.pod_groups import GroupKey


def group_changes(group: Together) -> Iterator[RankedSuggestion]:
    """Yield the changes of a group with which its pod gets a place together with it."""
    yield from _missing_members(group)
    yield from _smaller_minimum(group)


def _smaller_minimum(group: Together) -> Iterator[RankedSuggestion]:
    """Yield the largest smaller ``minMember`` with which the group and its pod are placed.

    Only a PodGroup of scheduling.x-k8s.io lets its minimum be changed: other groups have it in the
    labels of every pod, or may not change it.
    """
    key = group.terms.key
    there = group.snapshot.listers.coscheduling_groups.get(key.name, key.namespace)
    if key.source != CUSTOM_SOURCE or there is None or there.spec.min_member <= 1:
        return
    minimum, too_many = 1, there.spec.min_member
    # One at first: most groups without a place have no member with a place.
    node = _place_with_minimum(group, there, minimum)
    while node and too_many - minimum > 1:
        middle = (minimum + too_many) // 2
        place = _place_with_minimum(group, there, middle)
        if place:
            node, minimum = place, middle
        else:
            too_many = middle
    if node:
        yield _with_minimum(key, there.spec.min_member, minimum, node)


def _place_with_minimum(group: Together, there: CoschedulingGroup, minimum: int) -> str:
    """Return the pod's node if its group is placed with another minimum; "" where it is not."""
    groups, lister = group.snapshot.groups, group.snapshot.listers.coscheduling_groups
    spec = msgspec.structs.replace(there.spec, min_member=minimum)
    lister.put(msgspec.structs.replace(there, spec=spec))
    try:
        terms = groups.source.terms_of(group.terms.key)
        assert terms is not None, "its object is there"
        return msgspec.structs.replace(group, terms=terms).place()
    finally:
        lister.put(there)


def _with_minimum(key: GroupKey, before: int, minimum: int, node: str) -> RankedSuggestion:
    patch = {"spec": {"minMember": minimum}}
    resource = f"{COSCHEDULING_POD_GROUPS.plural}.{COSCHEDULING_POD_GROUPS.group}"
    change = ObjectChange(
        api_version=COSCHEDULING_POD_GROUPS.api_version,
        kind=COSCHEDULING_POD_GROUPS.kind,
        namespace=key.namespace,
        name=key.name,
        patch=patch,
    )
    suggestion = Suggestion(
        kind="minimum",
        text=f"lower minMember of PodGroup {key.full_name} from {before} to {minimum}",
        nodes=1,
        node=node,
        changes=(change,),
        command=patch_command(key.namespace, f"{resource} {key.name}", patch),
    )
    return RankedSuggestion(MINIMUM, suggestion)


def _missing_members(group: Together) -> Iterator[RankedSuggestion]:
    """Yield the number of further members like this pod with which the group is placed."""
    lacking = group.lacking
    if not lacking:
        return
    more = [_copy(group.pod, name) for name in islice(_free_names(group), lacking)]
    if not group.fits(more=more):
        return
    pods = "1 more pod" if lacking == 1 else f"{lacking} more pods"
    text = f"{pods} like this one in its group {group.terms.key.full_name}"
    create = tuple(map(_manifest, more))
    yield RankedSuggestion(
        MEMBER, Suggestion(kind="member", text=text, nodes=1, node="", create=create)
    )


def _free_names(group: Together) -> Iterator[str]:
    """Yield names that no member of the group has."""
    members = group.snapshot.groups.members(group.terms.key).pods.values()
    taken = {each.name for each in members}
    names = (f"{group.pod.name}-more-{index}" for index in count(1))
    yield from (name for name in names if name not in taken)


def _copy(pod: Pod, name: str) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, name=name, uid=f"{pod.uid}-{name}")
    return msgspec.structs.replace(pod, metadata=metadata, status=PodStatus())


def _manifest(pod: Pod) -> dict[str, Any]:
    plain = to_dict(pod)
    metadata = {
        key: value
        for key, value in plain["metadata"].items()
        if key in {"name", "namespace", "labels", "annotations"}
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": plain["spec"]}
