"""The way out of an incomplete group: the members that it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.api.codec import to_dict
from moorage.api.pod import Pod, PodStatus
from moorage.explain.answer import WayOut
from moorage.explain.groups import Together
from moorage.explain.ways.found import MEMBER, Found


def missing_members(group: Together) -> Iterator[Found]:
    """Yield the number of further members like this pod with which the group is placed."""
    lacking = group.lacking
    if not lacking:
        return
    more = [_copy(group.pod, index) for index in range(1, lacking + 1)]
    if not group.fits(more=more):
        return
    pods = "1 more pod" if lacking == 1 else f"{lacking} more pods"
    text = f"{pods} like this one in its group {group.terms.key.full_name}"
    create = tuple(map(_manifest, more))
    yield Found(MEMBER, WayOut(kind="member", text=text, nodes=1, node="", create=create))


def _copy(pod: Pod, index: int) -> Pod:
    name = f"{pod.name}-more-{index}"
    metadata = msgspec.structs.replace(pod.metadata, name=name, uid=f"{pod.uid}-{index}")
    return msgspec.structs.replace(pod, metadata=metadata, status=PodStatus())


def _manifest(pod: Pod) -> dict[str, Any]:
    plain = to_dict(pod)
    metadata = {
        key: value
        for key, value in plain["metadata"].items()
        if key in {"name", "namespace", "labels", "annotations"}
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": plain["spec"]}
