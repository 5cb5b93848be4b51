"""Computes the answers to what-if and capacity in rehearsals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.api.resources import by_name
from moorage.base.errors import UsageError
from moorage.what_if.capacity import Kind, need_of, room_in, shapes_of
from moorage.what_if.changes import Scene, readable_node
from moorage.what_if.consequences import Course
from moorage.what_if.course import Tried, scene_of, tried
from moorage.what_if.rehearsal import Rehearsal
from moorage.what_if.room import Need, Room
from moorage.what_if.wire import PODS_MOST, Capacity, CapacityBody, Manifest, WhatIfBody
from moorage.what_if.workloads import OWNERS

Branch: TypeAlias = Callable[[Callable[[Rehearsal], bytes]], bytes]
"""Does work with a rehearsal of its own that has just begun, and returns its bytes."""


def what_if(body: WhatIfBody, branch: Branch) -> Course:
    """Try changes in a rehearsal that has just begun; in two orders where order may matter.

    Parameters
    ----------
    branch
        Gives each order a rehearsal of its own.

    Raises
    ------
    UsageError
        A change cannot be made.
    """

    def in_order(backwards: bool) -> Tried:
        def work(rehearsal: Rehearsal) -> bytes:
            return msgspec.json.encode(tried(rehearsal, body.changes, backwards=backwards))

        return msgspec.json.decode(branch(work), type=Tried)

    first = in_order(False)
    return first.or_in_order_of(in_order(True)) if first.leaves_together else first.course


def capacity(body: CapacityBody, branch: Branch) -> Capacity:
    """Count how many more pods fit, and the nodes that would place the pods that wait.

    Parameters
    ----------
    branch
        Gives each part of the answer a rehearsal of its own.

    Raises
    ------
    UsageError
        There are no such pods, or they cannot be counted.
    """
    room, needs = None, []
    if body.like or body.mix:
        room = msgspec.json.decode(branch(lambda on: _room(body, on)), type=Room)
    if body.needs:
        shapes = [(each.like, _shape(each.manifest)) for each in body.shapes]
        known = msgspec.json.decode(
            branch(lambda on: msgspec.json.encode(shapes_of(on.objects))),
            type=list[tuple[str, Manifest]],
        )
        for shape in (*shapes, *known):
            need = msgspec.json.decode(branch(partial(_need, shape)), type=Need | None)
            if need is None:
                break
            needs.append(need)
    return Capacity(room, tuple(needs))


def _shape(manifest: Manifest) -> Manifest:
    found = readable_node(manifest)
    found.setdefault("status", {})
    return found


def _need(shape: tuple[str, Manifest], rehearsal: Rehearsal) -> bytes:
    return msgspec.json.encode(need_of(rehearsal, shape))


def _room(body: CapacityBody, rehearsal: Rehearsal) -> bytes:
    scene = scene_of(rehearsal)
    kinds = counted(body, scene)
    return msgspec.json.encode(room_in(scene, kinds, most=min(body.most, PODS_MOST)))


def counted(body: CapacityBody, scene: Scene) -> list[Kind]:
    """Return the pods that are asked about.

    Raises
    ------
    UsageError
        There is no such owner, or a manifest is neither a pod nor an owner of pods.
    """
    if body.like:
        return [Kind(_like(body.like, body.namespace, scene))]
    kinds = [_kind(manifest, scene, body.namespace, whole=body.whole) for manifest in body.mix]
    if not body.whole and len(kinds) != 1:
        raise UsageError(f"{len(kinds)} objects are given; --mix counts several together")
    return kinds


def _like(like: str, namespace: str, scene: Scene) -> Pod:
    word, _, name = like.partition("/")
    resource = by_name(word)
    if resource is None or not name:
        raise UsageError(f"--like {like}: write KIND/NAME, such as deployment/web")
    if resource.kind != "Pod":
        return _pod(scene.workloads.template_of(resource.kind, (namespace, name)))
    pod = scene.rehearsal.objects.pods.get((namespace, name))
    if pod is None:
        raise UsageError(f"there is no pod {namespace}/{name}")
    return pod


def _kind(manifest: Mapping[str, Any], scene: Scene, namespace: str, *, whole: bool) -> Kind:
    kind = manifest.get("kind")
    if kind == "Pod":
        return Kind(_pod(scene.admission.stored(manifest, namespace=namespace)))
    if kind not in OWNERS or kind == "DaemonSet":
        raise UsageError(f"a {kind} has no pods to count; give pods, Deployments and their like")
    stored = scene.admission.stored(manifest, namespace=namespace)
    spec = stored.get("spec") or {}
    template = {"metadata": {}, **(spec.get("template") or {})}
    metadata = {
        **template["metadata"],
        "name": f"{stored['metadata']['name']}-pod",
        "namespace": stored["metadata"]["namespace"],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    number = spec.get("replicas", spec.get("parallelism", 1)) if whole else 1
    return Kind(_pod(scene.admission.stored(body)), int(number or 0))


def _pod(body: Mapping[str, Any]) -> Pod:
    return from_dict(Pod, body)
