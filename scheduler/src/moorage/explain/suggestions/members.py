"""The suggestion of an incomplete group: the members that it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import msgspec

from moorage.api.codec import to_dict
from moorage.api.pod import Pod, PodStatus
from moorage.explain.answer import Suggestion
from moorage.explain.groups import Together
from moorage.explain.suggestions.ranked import MEMBER, RankedSuggestion


def missing_members(group: Together) -> Iterator[RankedSuggestion]:
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
