"""Computes the answers to what-if and capacity in models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.api.resources import REPLICA_SETS, by_name
from moorage.base.errors import LimitReachedError, UsageError
from moorage.service.questions.folding.folds import Fold
from moorage.virtual.kinds import kind_of
from moorage.virtual.model import ClusterModel
from moorage.virtual.owner_kinds import OWNERS
from moorage.what_if.answering.forks import forked, result_of
from moorage.what_if.capacity.count import Kind, need_of, room_in, waiting_rows
from moorage.what_if.capacity.room import Need, Room
from moorage.what_if.capacity.shapes import Shape, differences, shapes_to_try
from moorage.what_if.changes import Scene, readable_node
from moorage.what_if.consequences import ChangeComparison
from moorage.what_if.course import Tried, scene_of, tried
from moorage.what_if.limits import Limits
from moorage.what_if.owners.stateful_sets import with_claims_of_its_own
from moorage.what_if.wire import PODS_MOST, Capacity, CapacityBody, Manifest, WhatIfBody
from moorage.workloads.jobs.job_steps import Tally, wanted_active
from moorage.workloads.objects import Whole
from moorage.workloads.replicas import wanted

Branch: TypeAlias = Callable[[Callable[[ClusterModel], bytes]], bytes]
"""Does work with a model of its own that has just begun, and returns its bytes."""

Progress: TypeAlias = Callable[[int, int, str], None]
"""Takes the number of shapes that were tried, of all shapes, and the name of the next one."""
# A part of an answer that does not look at its limits is ended so much later.
_GRACE_SECONDS: Final = 5


def what_if(body: WhatIfBody, branch: Branch, limits: Limits) -> ChangeComparison:
    """Try changes in a model that has just begun; in several orders where order may matter.

    Parameters
    ----------
    branch
        Gives each order a model of its own.
    limits
        The time and the memory for all of them.

    Raises
    ------
    UsageError
        A change cannot be made.
    LimitReachedError
        A limit was reached.
    """

    def in_order(order: int) -> Tried:
        def work(model: ClusterModel) -> bytes:
            model.check = limits.check_limits
            return msgspec.json.encode(tried(model, body.changes, order=order))

        return msgspec.json.decode(branch(work), type=Tried)

    return in_order(0).compared(in_order)


def capacity(
    body: CapacityBody, branch: Branch, limits: Limits, *, progress: Progress | None = None
) -> Capacity:
    """Count how many more pods fit, and the nodes that would place the pods that wait.

    Parameters
    ----------
    branch
        Gives each part of the answer a model of its own.
    limits
        What is not done within them is left out, and the answer says so.
    progress
        Is called before each shape of nodes.

    Raises
    ------
    UsageError
        There are no such pods, or they cannot be counted.
    LimitReachedError
        The time did not suffice to begin.
    """
    room, needs = None, _Needs()
    if body.like or body.mix:
        parts = limits.share(2 if body.needs else 1)
        room = msgspec.json.decode(branch(lambda on: _room(body, on, parts)), type=Room)
    if body.needs:
        wanted = tuple((each.like, _shape(each.manifest)) for each in body.shapes)
        work = partial(_needs, wanted, limits, progress)
        needs = msgspec.json.decode(branch(work), type=_Needs)
    return Capacity(room, needs.needs, needs.left_out, needs.limit, needs.waiting)


class _Needs(msgspec.Struct, frozen=True):
    """The fields of `Capacity` that are about shapes of nodes."""

    needs: tuple[Need, ...] = ()
    left_out: tuple[str, ...] = ()
    limit: str = ""
    waiting: tuple[Fold, ...] = ()


def _needs(
    wanted: tuple[Shape, ...], limits: Limits, progress: Progress | None, model: ClusterModel
) -> bytes:
    """Try each shape in a fork of the one model in which the cluster has settled."""
    model.check = limits.check_limits
    scene_of(model)
    model.settle()
    found = shapes_to_try(model)
    shapes = [*wanted, *found.tried]
    differing = differences([manifest for _, manifest in shapes], found.labels)
    limit = f"{len(found.tried)} shapes of nodes are tried, those of the most nodes"
    limit, left_out, needs = limit * bool(found.left_out), found.left_out, list[Need]()
    for number, shape in enumerate(shapes):
        if progress is not None:
            progress(number, len(shapes), shape[0])
        share = limits.share(len(shapes) - number)
        try:
            limits.check_limits()
            need = _need_in_fork(shape, model, share)
        except LimitReachedError as reached:
            limit = str(reached)
            left_out = [like for like, _ in shapes[number:]] + left_out
            break
        if need is None:
            return msgspec.json.encode(_Needs())  # no pod waits
        needs.append(msgspec.structs.replace(need, differs=differing[number]))
    waiting = waiting_rows(model)
    return msgspec.json.encode(_Needs(tuple(needs), tuple(left_out), limit, waiting))


def _need_in_fork(shape: Shape, model: ClusterModel, limits: Limits) -> Need | None:
    def work() -> bytes:
        model.check = limits.check_limits
        return msgspec.json.encode(need_of(model, shape))

    # The part checks its limits by itself; the alarm is for one that hangs.
    seconds = round(limits.seconds_left) + _GRACE_SECONDS
    return msgspec.json.decode(result_of(forked(work, seconds_most=seconds)), type=Need | None)


def _shape(manifest: Manifest) -> Manifest:
    found = readable_node(manifest)
    found.setdefault("status", {})
    return found


def _room(body: CapacityBody, model: ClusterModel, limits: Limits) -> bytes:
    model.check = limits.check_limits
    scene = scene_of(model)
    kinds = capacity_kinds(body, scene)
    return msgspec.json.encode(room_in(scene, kinds, most=min(body.most, PODS_MOST)))


def capacity_kinds(body: CapacityBody, scene: Scene) -> list[Kind]:
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
    pod = scene.model.objects.pods.get((namespace, name))
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
    owner = from_dict(Whole, stored)
    template = {"metadata": {}, **(owner.spec.get("template") or {})}
    metadata = {
        **template["metadata"],
        "name": f"{stored['metadata']['name']}-pod",
        "namespace": stored["metadata"]["namespace"],
    }
    spec = with_claims_of_its_own(template["spec"], owner)
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    pod = _pod(scene.admission.stored(body))
    if not whole:
        return Kind(pod)
    count = wanted_active(owner, Tally()) if kind == "Job" else wanted(owner)
    shelves = [kind_of(stored).resource.qualified]
    shelves += [REPLICA_SETS.qualified] * (kind == "Deployment")
    return Kind(pod, count, stored, tuple(shelves))


def _pod(body: Mapping[str, Any]) -> Pod:
    return from_dict(Pod, body)
