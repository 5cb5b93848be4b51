"""The consequences of changes, as data."""

from __future__ import annotations

from collections import Counter
from typing import Literal, TypeAlias

import msgspec

from moorage.api.mentions import NodeName, PodName, Prose, SubjectPod
from moorage.what_if.fullness import UseChange


class Start(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that gets a node.

    Parameters
    ----------
    pod, node
        The pod, and its node.
    is_new
        Whether the change made the pod.
    owner
        The pod's owner as ``kind/name``; "" for none.
    group
        ``namespace/name`` of the pod's group; "" for none.
    """

    pod: SubjectPod
    node: NodeName
    is_new: bool = False
    owner: str = ""
    group: str = ""


class Move(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that leaves its node, and the pod that its owner makes instead.

    Parameters
    ----------
    pod, from_node
        The pod, and the node it leaves.
    successor, to_node
        The new pod and its node.
    evicted_by
        The preemptor, "" where the change itself made the pod leave.
    owner, group
        As of `Start`.
    """

    pod: SubjectPod
    from_node: NodeName
    successor: PodName
    to_node: NodeName
    evicted_by: PodName = ""
    owner: str = ""
    group: str = ""


class Waiting(msgspec.Struct, frozen=True, rename="camel"):
    """A pod without a node.

    Parameters
    ----------
    pod
        The pod.
    reason
        Why it has no node.
    was
        ``new``: the change made it. ``pending``: it had no node before. Otherwise the pod that it
        replaces, and its node: ``default/web-1 on node-3``.
    evicted_by
        The preemptor of the pod that it replaces, "" for none.
    owner, group
        As of `Start`.
    """

    pod: SubjectPod
    reason: Prose
    was: Prose
    evicted_by: PodName = ""
    owner: str = ""
    group: str = ""


class Loss(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that is gone, and nothing is known to make another.

    Parameters
    ----------
    pod, node
        The pod, and the node it was on.
    evicted_by
        The preemptor, "" where the change itself made the pod leave.
    unknown_owner
        The controller of the pod, such as ``ConfigMap samples``, where nobody knows whether it
        makes pods again; "" for other pods.
    job_failure
        Which Job has failed, and why, so that it makes no other pod; "" for other pods.
    owner, group
        As of `Start`.
    """

    pod: SubjectPod
    node: NodeName
    evicted_by: PodName = ""
    unknown_owner: str = ""
    job_failure: Prose = ""
    owner: str = ""
    group: str = ""


class End(msgspec.Struct, frozen=True):
    """A pod that ends as it is wanted: the change deletes it, or its node is not wanted any more.

    Parameters
    ----------
    pod
        The pod.
    owner, group
        As of `Start`.
    """

    pod: SubjectPod
    owner: str = ""
    group: str = ""


class NotEvicted(msgspec.Struct, frozen=True):
    """A pod that a drain does not evict, because its disruption budget never allows it.

    Parameters
    ----------
    pod, node
        The pod and its node.
    reason
        The budget, and why it never allows it.
    owner, group
        As of `Start`.
    """

    pod: SubjectPod
    node: NodeName
    reason: Prose
    owner: str = ""
    group: str = ""


DrainFlag: TypeAlias = Literal["--ignore-daemonsets", "--force", "--delete-emptydir-data"]


class FlagNeed(msgspec.Struct, frozen=True):
    """A flag without which `kubectl drain` refuses, and the pods that need it."""

    flag: DrainFlag
    pods: tuple[PodName, ...]


class ChangeComparison(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The consequences of a change.

    Parameters
    ----------
    anyway
        Pods that start without the change, too.
    starts, moves, lost
        Pods that start; pods that move; pods that are gone and nothing makes another.
    newly_pending
        Pods without a node that had one, or that the change made.
    still_pending
        Pods without a node that had none before.
    ended
        Pods that the change deletes, and pods of DaemonSets whose node does not want them any more.
    not_evicted
        Pods that a drain cannot evict: `kubectl drain` would wait.
    drain_flags
        The flags that `kubectl drain` needs.
    order_matters
        Whether it would come out differently if pods that leave at one moment were made again in
        another order.
    volumes_anywhere
        Volume claims, as namespace and name, whose volumes a driver makes before a pod is placed,
        nobody knows where: they are taken to be usable on every node.
    job_pods
        The pods of Jobs on nodes, if any pod waits: they are taken not to end, and pods that wait
        may start when they do.
    is_quiet
        Whether everything came to rest; if not, pods are tried again and again.
    nodes, zones
        How full nodes and zones are before and after; only those whose use changes.
    """

    anyway: tuple[Start, ...]
    starts: tuple[Start, ...]
    moves: tuple[Move, ...]
    lost: tuple[Loss, ...]
    newly_pending: tuple[Waiting, ...]
    still_pending: tuple[Waiting, ...]
    ended: tuple[End, ...]
    is_quiet: bool
    nodes: tuple[UseChange, ...] = ()
    zones: tuple[UseChange, ...] = ()
    not_evicted: tuple[NotEvicted, ...] = ()
    drain_flags: tuple[FlagNeed, ...] = ()
    order_matters: bool = False
    volumes_anywhere: tuple[Prose, ...] = ()
    job_pods: tuple[PodName, ...] = ()

    @property
    def worse(self) -> tuple[str, ...]:
        """Return a sentence for each deterioration; empty without one."""
        leaving: list[Move | Waiting | Loss] = [*self.moves, *self.newly_pending, *self.lost]
        evicted = sum(bool(each.evicted_by) for each in leaving)
        texts = []
        failures = Counter(each.job_failure for each in self.lost if each.job_failure)
        texts += [f"{_pods(count)} lost: {why}" for why, count in sorted(failures.items())]
        unknown = [each.unknown_owner for each in self.lost if each.unknown_owner]
        ownerless = len(self.lost) - failures.total() - len(unknown)
        if ownerless:
            texts.append(f"{_pods(ownerless)} lost: no owner makes another")
        if unknown:
            owners = ", ".join(sorted(set(unknown)))
            texts.append(
                f"{_pods(len(unknown))} may be lost: {owners} is not known to make another"
            )
        if self.not_evicted:
            texts.append(f"{_pods(len(self.not_evicted))} not evicted: kubectl drain would wait")
        if self.newly_pending:
            texts.append(f"{_pods(len(self.newly_pending))} without a node")
        if evicted:
            texts.append(f"{_pods(evicted)} evicted for pods of higher priority")
        return tuple(texts)


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
