"""The stage of each pod, and why a bound pod is not ready."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.explain.answer import Where
from moorage.explain.standing import standing
from moorage.explain.workloads.answer import Stage
from moorage.service.core import Core

_BY_WHERE: Final = {
    Where.UNSERVED: Stage.PENDING,
    Where.GATED: Stage.GATED,
    Where.PERMIT: Stage.PERMIT,
    Where.BINDING: Stage.BINDING,
    Where.FINISHED: Stage.ENDED,
    Where.TERMINATING: Stage.TERMINATING,
}
_NODE: Final = "; its node is "
_READY: Final = "Ready"
_USUAL: Final = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons of containers that every pod has while it starts."""


class PodStage(msgspec.Struct, frozen=True):
    """The stage of a pod, and why it does not get further.

    Parameters
    ----------
    pod
        The pod.
    stage
        The stage.
    cause
        The cause; empty where the stage says all, or where the nodes have to be asked.
    """

    pod: Pod
    stage: Stage
    cause: str = ""


def stage_of(core: Core, pod: Pod) -> PodStage:
    """Return the stage of a pod; nothing is tried."""
    if pod.metadata.deletion_timestamp and pod.spec.node_name:
        return PodStage(pod, Stage.TERMINATING)
    position = standing(core, pod)
    if position is None:
        return PodStage(pod, Stage.PENDING)
    if position.where is Where.BOUND:
        return _bound(core, pod)
    stage = _BY_WHERE[position.where]
    if stage in {Stage.BINDING, Stage.TERMINATING, Stage.ENDED}:
        return PodStage(pod, stage)
    return PodStage(pod, stage, position.sentence.split(_NODE)[0])


def _bound(core: Core, pod: Pod) -> PodStage:
    if core.snapshot.row_of(pod.spec.node_name) is None:
        return PodStage(pod, Stage.NOT_READY, "its node does not exist")
    ready = next((each for each in pod.status.conditions if each.type == _READY), None)
    if ready is not None and ready.status == "True":
        return PodStage(pod, Stage.READY)
    return PodStage(pod, Stage.NOT_READY, _not_ready(pod, "" if ready is None else ready.reason))


def _not_ready(pod: Pod, condition_reason: str) -> str:
    """Return why a bound pod is not ready, from its containers; the node says so, nothing else."""
    status = pod.status
    of_init = [("init container", each) for each in status.init_container_statuses]
    containers = [*of_init, *(("container", each) for each in status.container_statuses)]
    for word, each in containers:
        waiting = None if each.state is None else each.state.waiting
        if waiting is not None and waiting.reason and waiting.reason not in _USUAL:
            return f"{word} {each.name} waits: {waiting.reason}"
    for word, each in containers:
        ended = None if each.state is None else each.state.terminated
        if ended is not None and ended.exit_code:
            return f"{word} {each.name} ended with exit code {ended.exit_code}: {ended.reason}"
    running = [each for each in status.container_statuses if each.state and each.state.running]
    unready = [each.name for each in running if not each.ready]
    if unready:
        return f"container {unready[0]} runs, and its readiness probe has not passed"
    if condition_reason == "ReadinessGatesNotReady":
        return "its containers are ready, and a readiness gate is not"
    return "its containers are being started on the node"
